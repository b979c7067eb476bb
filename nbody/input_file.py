"""Opens the files that users name: ordinary files only. (Opening a pipe could block, and a device may have no end.)"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from nbody.errors import InputError, did_you_mean, printable


def open_regular(path: Path, where: str = "", known: Iterable[str] = ()) -> BinaryIO:
    """Open an ordinary file to read bytes. Raises InputError as :func:`open_descriptor`."""
    file = os.fdopen(open_descriptor(path, where, known=known), "rb")
    try:
        file.peek(1)  # some files of the Linux kernel can be opened but not read
    except OSError as error:
        file.close()
        raise _not_opened(path, where, "read", error) from None
    return file


def open_descriptor(path: str | os.PathLike, where: str = "", writable: bool = False, known: Iterable[str] = ()) -> int:
    """The descriptor of an ordinary file, to read, or to read and write.

    Args:
        where: the beginning of the line of an error.
        writable: links are not followed then.
        known: names that are proposed for a missing file, as those of the files beside it are.

    Raises:
        InputError: the file is missing, a directory, a pipe or a device, or can't be opened.
    """
    start = f"{where}{printable(path)}: "
    access = os.O_RDWR | os.O_NOFOLLOW if writable else os.O_RDONLY
    try:
        _check_kind(os.stat(path), start)
        fd = os.open(path, access | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise InputError(f"{start}there is no such file{_nearest(Path(path), known)}; check the path") from None
    except (OSError, ValueError) as error:
        raise _not_opened(path, where, "written" if writable else "read", error) from error
    try:
        _check_kind(os.fstat(fd), start)  # it may have been replaced meanwhile
    except InputError:
        os.close(fd)
        raise
    return fd


def _check_kind(status: os.stat_result, start: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{start}this is a directory; name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{start}this is a pipe or a device; name an ordinary file")


def _not_opened(path: str | os.PathLike, where: str, verb: str, error: OSError | ValueError) -> InputError:
    reason = getattr(error, "strerror", None) or error
    return InputError(f"{where}{printable(path)}: can't be {verb} ({reason}); check the path and its permissions")


def _nearest(path: Path, known: Iterable[str]) -> str:
    """A hint that names the most similar one of ``known`` and of the files in the same folder with such a suffix
    (``.yml`` and ``.yaml`` are alike)."""
    try:
        beside = [each.name for each in path.parent.iterdir() if each.suffix[:2] == path.suffix[:2]]
    except OSError:
        beside = []
    return did_you_mean(path.name, [*beside, *known])
