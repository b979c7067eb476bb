"""What was measured on this machine once, kept in the user's folder for caches: a JSON file for each kind of thing.

A file that is missing, unreadable or made by somebody else holds nothing; where none can be written, nothing is kept. So it
may be removed at any time, to have everything measured again.
"""

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


def file(kind: str) -> Path:
    """Where a kind of thing is kept: ``nbody/<kind>.json``.

    Raises:
        RuntimeError: there is no home.
    """
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "nbody" / f"{kind}.json"


def recall(kind: str) -> dict[str, Any]:
    """All that is kept of a kind, by key."""
    try:
        stored = json.loads(file(kind).read_text())
    except (OSError, ValueError, RuntimeError):
        return {}
    return stored if isinstance(stored, dict) else {}


def keep(kind: str, key: str, value: Any) -> None:
    """Add something, if the file can be written: whole, or not at all."""
    with contextlib.suppress(OSError, RuntimeError):
        target = file(kind)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False) as draft:
            try:
                json.dump(recall(kind) | {key: value}, draft, indent=1)
                draft.close()
                os.replace(draft.name, target)
            except BaseException:
                Path(draft.name).unlink(missing_ok=True)
                raise
