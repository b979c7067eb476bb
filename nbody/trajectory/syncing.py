"""Waiting for the disk, in a thread of its own."""

import threading
import time
from collections.abc import Callable

SYNC_SECONDS = 5.0
"""How often the disk is made to confirm what was written: what a power cut can cost. (A kill costs nothing.)"""


class BackgroundSync:
    """Calls ``sync`` every few seconds while frames are recorded, without holding them up.

    An error is told once, by the next :meth:`poll` or :meth:`finish`: the system reports a failed write to whoever
    waits for it first, and to nobody after.
    """

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._begun = time.perf_counter()
        self._frames: int | None = None  # while one is under way or not looked at: how many it confirms
        self._done = threading.Event()
        self._error: BaseException | None = None

    def poll(self, frames: int) -> int | None:
        """To be called after each frame, with their number. Returns how many of them the disk has confirmed, once for
        each time it has. Raises OSError if it could not."""
        if self._frames is not None and self._done.is_set():
            return self.finish()
        if self._frames is None and time.perf_counter() - self._begun > SYNC_SECONDS:
            self._begun = time.perf_counter()
            self._done.clear()
            # A daemon: a process that is told to end does not wait for a disk that hangs.
            threading.Thread(target=self._work, name="sync", daemon=True).start()
            self._frames = frames  # not before: where no thread can be started, nobody must wait for it
        return None

    def finish(self) -> int | None:
        """Wait for the one under way. Returns how many frames it confirmed; raises OSError if it could not."""
        if self._frames is None:
            return None
        self._done.wait()
        confirmed, self._frames = self._frames, None
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return confirmed

    def _work(self) -> None:
        try:
            self._sync()
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()
