"""Checks of the output path and the disk space, and the numbered name of an older file."""

import contextlib
import errno
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from nbody.errors import InputError, printable
from nbody.trajectory.lock import writing_process
from nbody.units import size

Notify = Callable[[str], object]

LONGEST_NAME = 240
"""In bytes: file systems allow 255, and the lock, the hidden file and numbered names are longer."""


def check_output(path: str | os.PathLike) -> Path:
    """The path to write to, with links resolved, if a run can be recorded there. Creates nothing.

    Raises:
        InputError: the path is a directory, a device or a file that is not a recording; its folder is missing (a missing
            folder is created if its parent exists); no permission; another run is writing it.
    """
    if not os.fspath(path).isprintable():  # terminals, scripts and HDF5 show such a name in different ways
        raise InputError(f"{printable(path)}: a line break or the like is in this name; give another --output")
    target = _resolved(path)
    if len(os.fsencode(target.name)) > LONGEST_NAME:
        raise InputError(f"{path}: the name is longer than {LONGEST_NAME} bytes; give a shorter --output")
    if target.exists() and not target.is_file():
        what = "a directory" if target.is_dir() else "not an ordinary file"
        raise InputError(f"{path}: is {what}; give the name of a file to write, such as output/run.h5")
    folder = target.parent if target.parent.exists() else target.parent.parent
    if target.parts[1:2] in (("proc",), ("sys",)):
        raise InputError(f"{path}: {target.parent} is the kernel's and keeps no files; give another --output")
    if target.parent.exists() and not target.parent.is_dir():
        raise InputError(f"{path}: {target.parent} is a file and no folder; give another --output")
    if not folder.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}; make it first, or give another --output")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{path}: the folder {folder} is not writable; give another --output")
    if not _may_be_replaced(target):
        raise InputError(f"{path}: exists and is no recording; give another --output, or move it away")
    writer = writing_process(target)
    if writer:
        raise InputError(f"{path}: is being written by {writer}; wait for it, or give another --output")
    return target


def _may_be_replaced(target: Path) -> bool:
    """False for a file that is not a recording: the user may have mistyped the name."""
    try:
        data = target.open("rb").read(8)
    except OSError:  # none there, or one that can't be read
        return True
    return not data or data.startswith(b"\x89HDF")


def check_space(path: str | os.PathLike, needed: int, what: str = "the run") -> None:
    """Raise an InputError with the numbers if ``needed`` bytes are not free on the disk of ``path``."""
    folder = _resolved(path).parent
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise InputError(
            f"{path}: {what} needs {size(needed)} and {size(free)} are free on that disk; record fewer frames "
            "(--every), or give an --output on another disk"
        )


@contextlib.contextmanager
def as_input_error(path: Path) -> Iterator[None]:
    """Turn an OSError inside this ``with`` block, which prepares a file at ``path``, into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: can't be written ({error.strerror or error}); give another --output") from error


def _resolved(path: str | os.PathLike) -> Path:
    try:
        target = Path(path).resolve()
        if target.is_symlink():  # Python 3.13 resolves a loop to itself
            raise OSError(errno.ELOOP, "a loop of links")
        target.exists()  # raises for a name that is too long
        return target
    except (OSError, RuntimeError, ValueError) as error:  # the loop before Python 3.13; a NUL byte
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: is not a path that can be opened ({reason}); give another --output") from error


def keep_older_file(path: Path, notify: Notify) -> Path | None:
    """Give the file at ``path``, if there is one, a second name: the first free name of ``run.1.h5``, ``run.2.h5`` …. Then
    its first name may be replaced. Returns the second name. (After a kill in between, the file has both names.)"""
    for number in itertools.count(1):
        name = path.with_name(f"{path.stem}.{number}{path.suffix}")
        if not path.exists():
            return None
        if not name.exists():
            try:
                os.link(path, name)  # fails if the name has been taken meanwhile; a rename would overwrite it
            except FileExistsError:
                continue
            except OSError:  # a file system without hard links
                os.rename(path, name)
        elif not name.samefile(path):
            continue
        notify(f"{path} existed; it is kept as {name.name}")
        return name
    raise AssertionError("numbers have no end")


def sync_folder(folder: Path) -> None:
    """Return when the disk has confirmed the names in ``folder``. (Does nothing for a folder that can't be read.)"""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
