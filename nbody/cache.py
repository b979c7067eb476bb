"""What is kept between runs, in the user's folder for caches: JSON files of measurements, and files of bytes.

A file that is missing, damaged or foreign holds nothing; where none can be written, nothing is kept. So the folder may be
removed at any time: everything is then measured and compiled again.
"""

import contextlib
import hashlib
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

_HASH = hashlib.sha256
_HASH_BYTES = _HASH().digest_size

UNUSED_DAYS = 90
"""Bytes that nobody has asked for in so many days are removed when others are kept in the same folder."""


def folder() -> Path:
    """Where everything is kept: ``$XDG_CACHE_HOME/nbody``, or ``~/.cache/nbody``.

    Raises:
        RuntimeError: there is no home.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nbody"


def file(kind: str) -> Path:
    """Where a kind of measurement is kept: ``nbody/<kind>.json``.

    Raises:
        RuntimeError: there is no home.
    """
    return folder() / f"{kind}.json"


def recall(kind: str) -> dict[str, Any]:
    """All that is kept of a kind, by key."""
    try:
        stored = json.loads(file(kind).read_text())
    except (OSError, ValueError, RuntimeError):
        return {}
    return stored if isinstance(stored, dict) else {}


def keep(kind: str, key: str, value: Any) -> None:
    """Add a value under its key, if the file can be written: whole, or not at all."""
    with contextlib.suppress(OSError, RuntimeError):
        _replace(file(kind), json.dumps(recall(kind) | {key: value}, indent=1).encode())


def load_bytes(name: str) -> bytes | None:
    """The bytes that were kept under a name; None if there are none, or not exactly those that were written."""
    try:
        path = folder() / name
        content = path.read_bytes()
        with contextlib.suppress(OSError):
            os.utime(path)
    except (OSError, RuntimeError):
        return None
    digest, data = content[:_HASH_BYTES], content[_HASH_BYTES:]
    return data if _HASH(data).digest() == digest else None


def keep_bytes(name: str, data: bytes) -> None:
    """Keep bytes under a name (a path within the folder), with their hash in front: whole, or not at all."""
    with contextlib.suppress(OSError, RuntimeError):
        path = folder() / name
        _replace(path, _HASH(data).digest() + data)
        for other in path.parent.iterdir():
            if time.time() - other.stat().st_mtime > 86400 * UNUSED_DAYS:
                other.unlink(missing_ok=True)


def _replace(target: Path, content: bytes) -> None:
    """Write a file in one step, as other processes see it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as draft:
        try:
            draft.write(content)
            draft.close()
            os.replace(draft.name, target)
        except BaseException:
            Path(draft.name).unlink(missing_ok=True)
            raise
