"""Waiting for the disk, in a thread of its own."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

SYNC_SECONDS = 5.0
"""How often the disk is made to confirm what was written: what a power cut can cost. (A kill costs nothing.)"""


class BackgroundSync:
    """Calls ``sync`` every few seconds while frames are recorded, without holding them up."""

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._pool = ThreadPoolExecutor(1, "sync")
        self._begun = time.perf_counter()
        self._pending: tuple[int, Future] | None = None

    def poll(self, frames: int) -> int | None:
        """To be called after each frame, with their number. Returns how many of them the disk has confirmed, once for
        each time it has. Raises OSError if it could not."""
        if self._pending and self._pending[1].done():
            confirmed, future = self._pending
            self._pending = None
            future.result()
            return confirmed
        if not self._pending and time.perf_counter() - self._begun > SYNC_SECONDS:
            self._begun = time.perf_counter()
            self._pending = (frames, self._pool.submit(self._sync))
        return None

    def close(self) -> None:
        """Wait for the thread to end."""
        self._pool.shutdown()
