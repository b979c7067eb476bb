"""What the packaged scenarios are about, and copies of them for the user."""

import os.path
from pathlib import Path

from nbody.errors import InputError, did_you_mean, not_written, printable
from nbody.scenario import packaged
from nbody.scenario.source import open_regular
from nbody.whole_file import if_free, whole_file


def summary(name: str) -> str:
    """The first sentence of a packaged scenario's head comment."""
    head = []
    for line in packaged.path_of(name).read_text(encoding="utf-8").splitlines():
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
    known = packaged.names()
    if name not in known:
        raise InputError(f"{printable(name)}: unknown scenario{did_you_mean(name, known)}; one of: {', '.join(known)}")
    path = Path(f"{name}.yaml") if target is None else target
    if os.path.isdir(path):  # Path.is_dir() raises for a name that the system does not allow
        path = path / f"{name}.yaml"
    elif path.suffix not in packaged.SUFFIXES:
        raise InputError(f"{printable(path)}: a scenario ends in .yaml; name such a file, or an existing folder")
    with open_regular(packaged.path_of(name)) as file:
        data = file.read()
    try:
        with whole_file(path, if_free) as draft:
            draft.write_bytes(data)
    except FileExistsError:
        raise InputError(f"{printable(path)}: exists already and is kept; give another name") from None
    except (OSError, ValueError) as error:
        raise not_written(path, error, "give another name or folder") from None
    return path
