"""Where a run records: checks of the path and the disk space, a new file at that path, and the lock of its one writer."""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from nbody.errors import InputError, not_written, printable
from nbody.given import path_text
from nbody.units import size
from nbody.whole_file import keeping, whole_file

Notify = Callable[[str], object]

SUFFIXES = (".h5", ".hdf5", ".h5md", ".hdf", ".vtkhdf")
"""The names of new recordings end in one of these."""

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


RECORDING = FileKind("recording", "", "give another --output", b"\x89HDF", "output/run.h5")
RESUMED = replace(RECORDING, remedy="copy the recording to another folder, and resume it there")


def check_output(path: str | os.PathLike, kind: FileKind = RECORDING, inputs: Iterable[str | os.PathLike] = ()) -> Path:
    """The path to write to, links followed, if a file of this kind can be written there. Creates nothing. ``inputs`` are the
    files that the command reads.

    Raises:
        InputError: a directory or a device; one of the inputs; a file of another kind; no folder to put it in (a missing
            folder is made if the one above it exists); no permission; another run is writing it.
    """
    start, remedy = f"{kind.begin}{path}", kind.remedy
    if not path_text(path).isprintable():  # terminals, scripts and HDF5 show such a name in different ways
        raise InputError(f"{printable(start)}: a line break or the like is in this name; {remedy}")
    target = _resolved(path, start, remedy)
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
    if not _may_be_replaced(target, kind):
        raise InputError(f"{start}: exists and is no {kind.what}; {remedy}, or move it away")
    writer = writing_process(target)
    if writer:
        raise InputError(f"{start}: is being written by {writer}; wait for it, or {remedy}")
    return target


def check_suffix(path: str | os.PathLike) -> None:
    """Raise an InputError if the name of a new recording does not say that it is HDF5."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{path}: a recording is an HDF5 file; give a name that ends in .h5 (for other programs 'nbody export' makes "
            "files of it)"
        )


def _may_be_replaced(target: Path, kind: FileKind) -> bool:
    """False for a file of another kind: the name was mistyped."""
    try:
        with target.open("rb") as file:
            data = file.read(len(kind.signature))
    except OSError:  # none there, or one that can't be read
        return True
    return not data or data == kind.signature


def check_space(path: str | os.PathLike, needed: int, what: str = "the run", kind: FileKind = RECORDING) -> None:
    """Raise an InputError with the numbers if ``needed`` bytes are not free where ``path`` will be."""
    folder = _resolved(path, f"{path}", kind.remedy).parent
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise InputError(
            f"{path}: {what} needs {size(needed)} and {size(free)} are free on that disk; record fewer frames "
            f"(--every), or {kind.remedy}"
        )


@contextlib.contextmanager
def new_file(path: Path, kind: FileKind, overwrite: bool, notify: Notify) -> Iterator[Path]:
    """A path at which to write a file of this kind, which gets its name at the end (:func:`~nbody.whole_file.whole_file`;
    links are followed). An older file keeps a numbered name unless ``overwrite``; ``notify`` gets a line about it.

    Raises:
        InputError: it can't be written.
        RunFailed: the disk is full, or fails.
    """
    try:
        with whole_file(path.resolve(), os.replace if overwrite else keeping(notify)) as draft:
            yield draft
    except OSError as error:
        raise not_written(f"{kind.begin}{path}", error, kind.remedy) from error


@contextlib.contextmanager
def as_input_error(path: Path, kind: FileKind = RECORDING) -> Iterator[None]:
    """Turn an OSError inside this block, which prepares a file at ``path``, into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{kind.begin}{path}: can't be written ({error.strerror or error}); {kind.remedy}") from error


def _resolved(path: str | os.PathLike, start: str, remedy: str) -> Path:
    try:
        target = Path(path).resolve()
        if target.is_symlink():  # Python 3.13 resolves a loop to itself
            raise OSError(errno.ELOOP, "a loop of links")
        target.exists()  # raises for a name that is too long
        return target
    except (OSError, RuntimeError, ValueError) as error:  # the loop before Python 3.13; a NUL byte
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{start}: is not a path that can be opened ({reason}); {remedy}") from error


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


# --- The lock -------------------------------------------------------------------------------------------------------


def lock_path(path: Path) -> Path:
    """The path of the lock file: ``run.h5.lock`` for ``run.h5``. (A lock on the file itself would block HDF5 readers.)"""
    return path.with_name(path.name + ".lock")


class WriterLock:
    """Held by the one process that writes ``path``. The kernel releases it when that process ends, so an old lock file locks
    nothing.

    Some file systems (NFS, cluster mounts) have no locks. There the lock file itself is the lock: it names its process, and
    is taken over if that process ran on this machine and has ended.
    """

    def __init__(self, path: Path, notify: Notify = lambda line: None) -> None:
        """``notify`` receives one line if the file system has no locks. Raises InputError, with the name of the process, if
        another process holds the lock."""
        self.path = lock_path(path)
        for _ in range(1000):
            self._fd, is_new = _open_lock(self.path)
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(self._fd)
                if owner := writing_process(path):
                    raise InputError(f"{path}: is being written by {owner}; wait for it to end") from error
                time.sleep(0.001)  # a reader was asking which process writes, for some microseconds
                continue
            except OSError as error:
                if not is_new and (owner := _living_owner(self._fd)):
                    os.close(self._fd)
                    raise InputError(
                        f"{path}: is being written by {owner}; wait for it to end, or remove {self.path} if it has ended"
                    ) from error
                notify(
                    f"warning: the file system of {self.path.parent} has no locks ({error.strerror}); {self.path.name} "
                    "keeps other runs out, but two that start in the same moment are not noticed"
                )
                break
            if same_file(self._fd, self.path):  # else its owner removed it between our open and our lock
                break
            os.close(self._fd)
        else:
            raise InputError(f"{path}: is being written by another process; wait for it to end")
        with contextlib.suppress(OSError):  # on a full disk it locks without a name
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)

    def release(self) -> None:
        """Release the lock, and remove the lock file (unless another process has replaced it)."""
        with contextlib.suppress(OSError):
            if same_file(self._fd, self.path):
                os.unlink(self.path)
        os.close(self._fd)


def _open_lock(path: Path) -> tuple[int, bool]:
    """The lock file, opened, and whether it is new."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags | os.O_EXCL, 0o644), True
    except FileExistsError:
        return os.open(path, flags, 0o644), False


def _living_owner(fd: int) -> str:
    """The process that a lock file names; empty if it ran on this machine and has ended."""
    owner = printable(os.pread(fd, 200, 0).decode(errors="replace").strip())
    named = re.fullmatch(r"process (\d{1,9}) on (.*)", owner)
    if named and named[2] == os.uname().nodename:
        try:
            os.kill(int(named[1]), 0)
        except ProcessLookupError:
            return ""
        except PermissionError:
            pass  # another user's
    return owner or "another process"


def same_file(fd: int, path: str | os.PathLike) -> bool:
    """True if the open file ``fd`` is the one that ``path`` names now."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return False


def writing_process(path: Path) -> str:
    """The process that writes ``path`` now (``process 123 on host``); empty if there is none."""
    try:
        fd = os.open(lock_path(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return ""
    except BlockingIOError:
        return printable(os.pread(fd, 200, 0).decode(errors="replace").strip()) or "another process"
    except OSError:  # a file system without locks
        return _living_owner(fd)
    finally:
        os.close(fd)
