"""``nbody docs``: build the manual if that is needed, and open it."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from nbody import child
from nbody.cli.options import text_option
from nbody.cli.streams import print_message, result
from nbody.compute.compiling.cache import folder
from nbody.errors import InputError, RunFailed, last_line, printable
from nbody.install import install_extra

PACKAGE = Path(__file__).resolve().parents[1]


def docs(
    build: Annotated[
        Path | None, text_option("Write the manual into this folder, and do not open it.", metavar="<folder>")
    ] = None,
) -> int:
    """Open the manual in a browser: tutorials, how-tos, every key and component, the Python API, how it works.

    It is built once by Sphinx, without a network, in about half a minute. Where
    there is no screen its path is printed.

    \b
    Examples:
      nbody docs
      nbody docs --build manual
    """
    if lacking := [name for name in ("sphinx", "myst_parser", "furo") if not find_spec(name)]:
        raise InputError(f"the manual is built by {', '.join(lacking)}, not installed here; {install_extra('docs')}")
    if build is not None and build.exists() and not build.is_dir():
        raise InputError(f"--build: {printable(build)} is a file; name a folder")
    target = build or folder() / "manual"
    first = target / "manual" / "index.html"
    if build is not None or not first.exists() or first.stat().st_mtime < _changed():
        print_message("building the manual with Sphinx (half a minute the first time) …")
        done = subprocess.run(**child.python("-m", "nbody.manual", str(target)), capture_output=True, text=True)
        if done.returncode:
            raise RunFailed(f"the manual was not built: {last_line(done.stderr, 'Sphinx failed')}")
    if build is None and (sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        import webbrowser

        webbrowser.open(first.resolve().as_uri())
    result(str(first))
    return 0


def _changed() -> float:
    """When the package was last changed."""
    return max(path.stat().st_mtime for end in ("*.py", "*.md") for path in PACKAGE.rglob(end))
