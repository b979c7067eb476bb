"""Data kept between runs in the user's cache folder: measurements (JSON) and compiled code (bytes).

A file that is missing, damaged or not ours counts as empty; if the folder can't be written, nothing is kept. The folder
can be removed at any time: everything is then measured and compiled again. Compiled code is executed, so it is taken only
from a folder and a file that no other user can write.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbody.whole_file import whole_file

_HASH, _HASH_BYTES = hashlib.sha256, hashlib.sha256().digest_size
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

UNUSED_DAYS = 90
"""Files of bytes that were not read for this many days are removed when another file is written to their folder."""

TIMEOUT = 120.0
"""Seconds for which a process waits for another one that makes the same file."""


def folder() -> Path:
    """The cache folder: ``$XDG_CACHE_HOME/nbody``, or ``~/.cache/nbody``.

    Raises:
        RuntimeError: there is no home.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nbody"


def kernels() -> Path | str:
    """The folder of the compiled kernels; empty if there is no home."""
    try:
        return folder() / "kernels"
    except RuntimeError:
        return ""


def path_of(kind: str) -> Path:
    """The path of the file of one kind of measurement: ``nbody/<kind>.json``.

    Raises:
        RuntimeError: there is no home.
    """
    return folder() / f"{kind}.json"


def cached_values(kind: str) -> dict[str, Any]:
    """All stored values of one kind, by key."""
    try:
        stored = json.loads(path_of(kind).read_text())
    except (OSError, ValueError, RuntimeError):
        return {}
    return stored if isinstance(stored, dict) else {}


def store(kind: str, key: str, value: Any) -> None:
    """Store a value under its key, if the file can be written. The file is replaced as a whole."""
    with contextlib.suppress(OSError, RuntimeError):
        _replace(path_of(kind), json.dumps(cached_values(kind) | {key: value}, indent=1).encode())


def load_bytes(name: str) -> bytes | None:
    """The bytes stored under a name; None if there are none, if their checksum is wrong, or if another user could have
    written them."""
    try:
        path = folder() / name
        if not _is_safe(path.parent):  # before anything in it is opened
            return None
        with path.open("rb") as file:
            content = file.read() if _is_safe(file.fileno()) else b""
        with contextlib.suppress(OSError):
            os.utime(path)
    except (OSError, RuntimeError):
        return None
    digest, data = content[:_HASH_BYTES], content[_HASH_BYTES:]
    return data if _HASH(name.encode() + data).digest() == digest else None


def is_empty(name: str) -> bool:
    """True if there is no file in a folder within the cache folder."""
    try:
        return not any((folder() / name).iterdir())
    except (OSError, RuntimeError):
        return True


def exists(name: str) -> bool:
    """True if there is a file under a name, of whatever content."""
    try:
        return (folder() / name).is_file()
    except RuntimeError:
        return False


def store_bytes(name: str, data: bytes) -> bool:
    """Store bytes with a checksum under a name (a path within the folder). The file is replaced as a whole, and other users
    lose the right to write the folder that it is in. Returns False if it can't be written."""
    try:
        path = folder() / name
        if not _made_safe(path.parent):
            return False
        _replace(path, _HASH(name.encode() + data).digest() + data)
    except (OSError, RuntimeError):
        return False
    for other in path.parent.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - other.stat().st_mtime > 86400 * UNUSED_DAYS:
                _remove(other)
    return True


@contextlib.contextmanager
def by_one_process(name: str) -> Iterator[None]:
    """Inside this block no other process of this machine makes the bytes of the same name, unless it takes longer than
    :data:`TIMEOUT`, or the file system has no locks. Before the block another one may have stored them."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, RuntimeError):
            path = (folder() / name).with_suffix(".lock")
            if _made_safe(path.parent):
                file = stack.enter_context(path.open("wb"))
                if _locked(file.fileno()):
                    stack.callback(_remove, path)
        yield


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # another process may have removed it
        path.unlink()


def _locked(file: int) -> bool:
    """Wait for the lock of a file. Returns False if another process keeps it."""
    ends = time.monotonic() + TIMEOUT
    while time.monotonic() < ends:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.02)
    return False


def is_writable() -> bool:
    """True if compiled code can be stored."""
    name = "kernels/trial"
    if not store_bytes(name, b""):
        return False
    with contextlib.suppress(OSError):
        (folder() / name).unlink()
    return True


def _is_safe(place: Path | int) -> bool:
    """True if only this user, or root, owns and can write a folder or an open file."""
    if os.name != "posix":
        return True
    facts = os.stat(place)
    return facts.st_uid in (0, os.geteuid()) and not facts.st_mode & _OTHERS_WRITE


def _made_safe(place: Path) -> bool:
    """Make a folder that other users can't write. Returns False if one could, and it is not this user's."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = place.stat()
    if os.name == "posix" and facts.st_uid == os.geteuid():
        place.chmod(stat.S_IMODE(facts.st_mode) & ~_OTHERS_WRITE)
    return _is_safe(place)


def _replace(target: Path, content: bytes) -> None:
    """Write a file for this user alone; other processes see the old content or the new one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as draft:
        draft.write_bytes(content)
        draft.chmod(0o600)  # (with a permissive umask others could write it, and it would not be taken)
