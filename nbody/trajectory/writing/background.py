"""Threads besides the recording thread: for checksums, and for waiting until the disk confirms the writes."""

import threading
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import chain, pairwise
from typing import TypeVar

from nbody.machine import cores
from nbody.trajectory.structure.opening import Bytes

SYNC_SECONDS = 5.0
"""Seconds between confirmations by the disk: a power cut can lose this much of a run. (A kill loses nothing.)"""


class BackgroundSync:
    """Calls ``sync`` every few seconds while frames are recorded, without delaying them.

    An error is raised once, by the next :meth:`poll` or :meth:`finish`: the system too reports a failed write only once.
    """

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._begun = time.perf_counter()
        self._call: tuple[int, Future[None]] | None = None
        """The frames that the current call confirms, until its result is read."""

    def poll(self, frames: int) -> int | None:
        """Call this after each frame, with the number of frames. Returns how many of them the disk has confirmed, once per
        confirmation. Raises OSError if that failed."""
        if self._call is not None:
            return self.finish() if self._call[1].done() else None
        if time.perf_counter() - self._begun > SYNC_SECONDS:
            self._begun, result = time.perf_counter(), Future[None]()
            # A daemon: a process that ends does not wait for a disk that hangs.
            threading.Thread(target=self._work, args=(result,), name="sync", daemon=True).start()
            self._call = frames, result  # not before: if no thread can be started, finish() must not wait for it
        return None

    def finish(self) -> int | None:
        """Wait for the current call. Returns how many frames it confirmed; raises OSError if it failed."""
        if self._call is None:
            return None
        frames, result = self._call
        wait([result])
        self._call = None
        result.result()
        return frames

    def _work(self, result: "Future[None]") -> None:
        try:
            result.set_result(self._sync())
        except BaseException as error:
            result.set_exception(error)


WORTH_A_THREAD = 1 << 19
"""The fewest bytes for which work gets a thread: with less, on a busy machine, the thread switch takes longer than the
work."""

MOST = 8
"""The most pieces of a checksum. A frame of 20480 particles in float32 takes 0.19 ms in one thread on an H200's host (zlib
1.3), twice as long as writing it, and 0.06 ms in four threads."""

T = TypeVar("T")


class Threads:
    """Large work in threads, small work in the thread that asks for the result.

    For work that releases Python's lock (as zlib.crc32 does), or that runs during a long system call of the owner.
    """

    def __init__(self) -> None:
        self._pieces = min(MOST, cores())
        self._pool: ThreadPoolExecutor | None = None  # made for the first large piece

    def begin(self, work: Callable[[], T], size: int) -> Callable[[], T]:
        """Begin ``work`` on ``size`` bytes. Returns a function that waits for the result. Call it in any case: before it
        returns, the bytes must not be changed."""
        if size < WORTH_A_THREAD:
            return work
        # One more than there are pieces: for the work that waits for them.
        self._pool = self._pool or ThreadPoolExecutor(self._pieces + 1, "frames")
        return self._pool.submit(work).result

    def checksums(self, *lists: Sequence[Bytes]) -> list[list[int]]:
        """zlib.crc32 of each list's C-contiguous arrays or bytes. May be called within such work."""
        begun = [[self._begin_checksums(piece) for piece in self._cut(each)] for each in lists]
        try:
            return [[each for result in results for each in result()] for results in begun]
        except BaseException:
            for result in chain.from_iterable(begun):  # none may go on reading
                with suppress(Exception):
                    result()
            raise

    def _begin_checksums(self, arrays: Sequence[Bytes]) -> Callable[[], list[int]]:
        return self.begin(lambda: [zlib.crc32(array) for array in arrays], _size(arrays))

    def _cut(self, arrays: Sequence[Bytes]) -> list[Sequence[Bytes]]:
        """A list divided into pieces that are worth a thread, at most half of :data:`MOST`, since two lists are large."""
        count = max(1, min(self._pieces // 2, len(arrays), _size(arrays) // WORTH_A_THREAD))
        ends = [len(arrays) * k // count for k in range(count + 1)]
        return [arrays[first:end] for first, end in pairwise(ends)]

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def _size(arrays: Sequence[Bytes]) -> int:
    return sum(memoryview(array).nbytes for array in arrays)
