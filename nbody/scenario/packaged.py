"""The scenarios that come with nbody: by a name or a path that ends in ``scenarios/NAME.yaml``, and copies for the user."""

import os.path
from pathlib import Path

from nbody.errors import InputError, did_you_mean, printable
from nbody.output_file import write_new
from nbody.whole_file import Notify

SUFFIXES = (".yaml", ".yml")

_PACKAGE = Path(__file__).parents[1]
FOLDERS = (_PACKAGE / "scenarios", _PACKAGE.parent / "scenarios")
"""Their possible folders: in the package (in a checkout this is a link), or beside it where links can't be made."""


def names() -> list[str]:
    """The names of the packaged scenarios, sorted."""
    return sorted(path.stem for path in _folder().glob("*.yaml"))


def path_of(name: str) -> Path:
    """The file of a packaged scenario."""
    return _folder() / f"{name}.yaml"


def locate(path: Path, notify: Notify = lambda line: None) -> Path:
    """The file that a scenario argument means.

    An existing file means itself. A bare name (``disk``) means the packaged scenario of this name. So do ``disk.yaml`` and
    ``scenarios/disk.yaml`` if they don't exist; ``notify`` then gets a line that says so. Any other path is returned
    unchanged, and its reader reports the error. Raises InputError: a bare name is neither a file nor a packaged scenario."""
    # (The functions of os.path return False for names that the system does not allow; those of Path raise.)
    bare = path.suffix == "" and path.parent == Path()
    if os.path.isfile(path) or not (bare or path.suffix in SUFFIXES):
        return path
    known = names()
    if path.stem in known and (bare or path.parent.name in ("", "scenarios")):
        if not bare:
            notify(f"{printable(path)} does not exist here: this is the scenario '{path.stem}' that comes with nbody")
        return path_of(path.stem)
    if bare and path.name and not os.path.exists(path):
        start, listed = printable(path), ", ".join(known)
        raise InputError(
            f"{start}: there is no such file, and no scenario of this name{did_you_mean(path.name, known)}; "
            f"name a .yaml file, or one of: {listed}"
        )
    return path


def summary(name: str) -> str:
    """The first sentence of a packaged scenario's head comment."""
    head = []
    for line in path_of(name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("# "):
            break
        head.append(line[2:].strip())
    return " ".join(head).removesuffix(".")


def copy(name: str, target: Path | None = None) -> Path:
    """Copy a packaged scenario with its comments to ``target``: a file, or a folder, by default the current one.

    Returns:
        The new file.

    Raises:
        InputError: there is no such scenario, the file exists already (nothing is ever overwritten), or it can't be
            written.
    """
    known = names()
    if name not in known:
        raise InputError(f"{printable(name)}: unknown scenario{did_you_mean(name, known)}; one of: {', '.join(known)}")
    return write(path_of(name).read_bytes(), name, target)


def write(text: bytes, name: str, target: Path | None = None) -> Path:
    """Write a new scenario to ``target``, by default NAME.yaml, and return its path. Raises InputError as :func:`copy`."""
    path = Path(f"{name}.yaml") if target is None else target
    if os.path.isdir(path):  # Path.is_dir() raises for a name that the system does not allow
        path = path / f"{name}.yaml"
    elif path.suffix not in SUFFIXES:
        raise InputError(f"{printable(path)}: a scenario ends in .yaml; name such a file, or an existing folder")
    write_new(path, text)
    return path


def _folder() -> Path:
    return next((folder for folder in FOLDERS if folder.is_dir()), FOLDERS[0])
