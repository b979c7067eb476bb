"""The lock of the one process that writes a recording."""

import contextlib
import fcntl
import os
import re
import stat
import time
from pathlib import Path

from nbody.errors import InputError, printable
from nbody.whole_file import Notify


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
