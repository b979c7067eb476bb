"""The commands that install what is missing, for messages."""

import contextlib
import json
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

from nbody.errors import last_line
from nbody.machine import ROOT


def pip_install(*what: str) -> str:
    """The command that installs packages into this program's environment, even if the shell finds another ``pip``."""
    ours = Path(shutil.which("pip") or "").parent == Path(sys.executable).parent
    return f"{'pip' if ours else f'{sys.executable} -m pip'} install {' '.join(what)}"


NAMES = {"PIL": "pillow", "yaml": "pyyaml"}
"""What packages are called where they are installed from, if not as in Python."""


def missing_package(error: ImportError) -> str:
    """The line about a package of others that can't be imported; empty if the error is not about one."""
    found = error.name or (re.search(r"No module named '([\w.]+)'", str(error)) or ["", ""])[1]
    name = found.partition(".")[0]
    if name in ("", "nbody"):
        return ""
    reason = last_line(error, type(error).__name__)
    return f"the package {name} can't be imported ({reason}): {pip_install(NAMES.get(name, name))}"


def install_extra(name: str) -> str:
    """The command that adds an extra (``cu13``, ``view``) to this installation, from the checkout or the original source."""
    if (ROOT / "pyproject.toml").exists():
        return pip_install("-e", f"'{'.' if Path.cwd() == ROOT else ROOT}[{name}]'")
    with contextlib.suppress(metadata.PackageNotFoundError, TypeError, KeyError, ValueError):
        origin = json.loads(metadata.distribution("nbody").read_text("direct_url.json") or "")
        scheme = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
        return pip_install(f"'nbody[{name}] @ {scheme}{origin['url']}'")
    return pip_install(f"'nbody[{name}]'")
