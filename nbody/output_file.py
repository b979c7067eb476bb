"""Checks of the paths that users give for files to write, and the writing of such a file."""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from nbody.errors import InputError, not_written, printable
from nbody.given import path_text
from nbody.whole_file import Notify, if_free, keeping, whole_file

LONGEST_NAME = 240
"""In bytes: file systems allow 255, and the lock, the hidden file and numbered names are longer."""


@dataclass(frozen=True)
class FileKind:
    """What is written: how messages about it begin, what to do if it can't be, its first bytes, an example."""

    what: str
    begin: str
    remedy: str
    signature: bytes
    example: str


def checked_path(path: str | os.PathLike, kind: FileKind, inputs: Iterable[str | os.PathLike] = ()) -> Path:
    """The path to write to, links followed, if a file of this kind can be written there. Creates nothing. ``inputs`` are the
    files that the command reads. Raises InputError: a directory or a device; one of the inputs; a file of another kind; no
    folder to put it in (a missing folder is made if the one above it exists); no permission."""
    start, remedy = f"{kind.begin}{path}", kind.remedy
    if not path_text(path).isprintable():  # terminals, scripts and HDF5 show such a name in different ways
        raise InputError(f"{printable(start)}: a line break or the like is in this name; {remedy}")
    target = resolved(path, start, remedy)
    if len(os.fsencode(target.name)) > LONGEST_NAME:
        raise InputError(f"{start}: the name is longer than {LONGEST_NAME} bytes; {remedy}")
    if target.exists() and not target.is_file():
        what = "a directory" if target.is_dir() else "not an ordinary file"
        raise InputError(f"{start}: is {what}; give the name of a file to write, such as {kind.example}")
    if any(target.exists() and os.path.exists(each) and target.samefile(each) for each in inputs):
        raise InputError(f"{start}: is read by this command; {remedy}")
    folder = target.parent if target.parent.exists() else target.parent.parent
    if target.parts[1:2] in (("proc",), ("sys",)):
        raise InputError(f"{start}: {target.parent} is the kernel's and keeps no files; {remedy}")
    if target.parent.exists() and not target.parent.is_dir():
        raise InputError(f"{start}: {target.parent} is a file and no folder; {remedy}")
    if not folder.is_dir():
        raise InputError(f"{start}: there is no folder {target.parent}; make it first, or {remedy}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{start}: the folder {folder} is not writable; {remedy}")
    data = b""
    with suppress(OSError), target.open("rb") as file:  # none there, or one that can't be read
        data = file.read(len(kind.signature))
    if data not in (b"", kind.signature):  # the name was mistyped
        raise InputError(f"{start}: exists and is no {kind.what}; {remedy}, or move it away")
    return target


def resolved(path: str | os.PathLike, start: str, remedy: str) -> Path:
    """``path``, links followed. Raises InputError if it is no path that can be opened."""
    try:
        target = Path(path).resolve()
        if target.is_symlink():  # Python 3.13 resolves a loop to itself
            raise OSError(errno.ELOOP, "a loop of links")
        target.exists()  # raises for a name that is too long
        return target
    except (OSError, RuntimeError, ValueError) as error:  # the loop before Python 3.13; a NUL byte
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{start}: is not a path that can be opened ({reason}); {remedy}") from error


@contextmanager
def new_file(path: Path, kind: FileKind, overwrite: bool, notify: Notify) -> Iterator[Path]:
    """A path at which to write a file of this kind, which gets its name at the end; links are followed. An older file keeps
    a numbered name unless ``overwrite``; ``notify`` gets a line about it.
    Raises:
        InputError: it can't be written.
        RunFailed: the disk is full, or fails.
    """
    try:
        with whole_file(path.resolve(), os.replace if overwrite else keeping(notify)) as draft:
            yield draft
    except OSError as error:
        raise not_written(f"{kind.begin}{path}", error, kind.remedy) from error


def write_new(path: Path, data: bytes) -> None:
    """Write a file that replaces none. Raises InputError: there is one, or it can't be written."""
    try:
        with whole_file(path, if_free) as draft:
            draft.write_bytes(data)
    except FileExistsError:
        raise InputError(f"{printable(path)}: exists already and is kept; give another name") from None
    except (OSError, ValueError) as error:
        raise not_written(path, error, "give another name or folder") from None


@contextmanager
def as_input_error(path: Path, kind: FileKind) -> Iterator[None]:
    """Turn an OSError inside this block, which prepares a file at ``path``, into an InputError; a full disk too, because
    nothing has been written yet."""
    try:
        yield
    except OSError as error:
        raise InputError(not_written(f"{kind.begin}{path}", error, kind.remedy)) from error
