"""Where the file goes: is the place fit for it, which name an older file keeps, and who is writing."""

import contextlib
import errno
import fcntl
import itertools
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from nbody.errors import InputError, printable
from nbody.units import size

Notify = Callable[[str], object]


def check_output(path: str | os.PathLike) -> Path:
    """The path to write to, links followed, if a run can be recorded there. Creates nothing.

    Raises:
        InputError: a directory or a device; a file that is no recording; no folder to put it in (a missing folder is
            made if the one above it exists); no permission; another run is writing it.
    """
    if not os.fspath(path).isprintable():  # messages, scripts and HDF5 would each show it in another way
        raise InputError(f"{printable(path)}: a line break or the like is in this name; give another --output")
    target = _resolved(path)
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
    writer = being_written(target)
    if writer:
        raise InputError(f"{path}: is being written by {writer}; wait for it, or give another --output")
    return target


def _may_be_replaced(target: Path) -> bool:
    """False for a file that a mistyped name would put a recording in the place of: a scenario, a script."""
    try:
        data = target.open("rb").read(8)
    except OSError:  # none there, or one that can't be read
        return True
    return not data or data.startswith(b"\x89HDF")


def check_space(path: str | os.PathLike, needed: int, what: str = "the run") -> None:
    """Raise an InputError with the numbers if ``needed`` bytes are not free where ``path`` will be."""
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
    """An OSError inside this block, which prepares a file at ``path``, is the user's to mend."""
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


def keep(path: Path, notify: Notify) -> Path | None:
    """Give the file at ``path``, if there is one, a second name, the first free one of ``run.1.h5``, ``run.2.h5`` …, so
    that the first may be replaced; which one. (A run that was killed before it replaced the first has left that name.)"""
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
    """Have the disk confirm the names in ``folder``. (One that may be written and not read can't be asked.)"""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# --- One writer -----------------------------------------------------------------------------------------------------


def lock_path(path: Path) -> Path:
    """The lock's name: ``run.h5.lock`` beside ``run.h5``. (A lock on the file itself would keep HDF5 readers out.)"""
    return path.with_name(path.name + ".lock")


class WriterLock:
    """Held by the one process that writes ``path``. The kernel drops it when that process dies, however it dies, so a
    lock file that was left behind locks nothing."""

    def __init__(self, path: Path) -> None:
        """Raises InputError naming the other process if there is one."""
        self.path, tries = lock_path(path), 1000
        while True:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(self._fd)
                owner, tries = being_written(path), tries - 1
                if owner or not tries:
                    owner = owner or "another process"
                    raise InputError(f"{path}: is being written by {owner}; wait for it to end") from error
                time.sleep(0.001)  # a reader was asking who writes, for some microseconds
                continue
            except OSError:  # a file system without locks, as clusters have: better to run than to refuse
                break
            if same_file(self._fd, self.path):  # else its owner removed it between our open and our lock
                break
            os.close(self._fd)
        with contextlib.suppress(OSError):  # on a full disk it locks without a name
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)

    def release(self) -> None:
        """Give it up, and remove the lock file (if somebody has not, and another process made its own since)."""
        with contextlib.suppress(OSError):
            if same_file(self._fd, self.path):
                os.unlink(self.path)
        os.close(self._fd)


def same_file(fd: int, path: Path) -> bool:
    """True if the open file ``fd`` is what ``path`` names now."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def being_written(path: Path) -> str:
    """Who writes ``path`` now (``process 123 on host``); empty if nobody does."""
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
        return os.pread(fd, 200, 0).decode(errors="replace").strip() or "another process"
    except OSError:  # a file system without locks
        return ""
    finally:
        os.close(fd)
