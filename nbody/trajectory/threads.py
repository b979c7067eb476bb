"""Threads that take checksums, and work out what else belongs to frames, while the frames are written."""

import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, pairwise
from typing import Any, TypeVar

from nbody.machine import cores

WORTH_A_THREAD = 1 << 19
"""Bytes from which on they get a thread. Fewer are a frame that came alone, so the run waits for no checksum; and where
every processor is busy, to hand them over takes longer than to sum them."""

MOST = 8
"""Pieces that checksums are taken in, at most. A frame of 20480 particles in float32 takes 0.19 ms in one thread on an
H200's host (zlib 1.3), twice as long as to write it, and 0.06 ms in four."""

T = TypeVar("T")


class Threads:
    """Work on what is large, in threads of their own; on what is small, in the thread that asks for the result.

    They are for what gives Python's lock away (zlib.crc32 does) or is done while the owner is in a long system call.
    """

    def __init__(self) -> None:
        self._pieces = min(MOST, cores())
        self._pool: ThreadPoolExecutor | None = None  # made for the first large piece

    def begin(self, work: Callable[[], T], size: int) -> Callable[[], T]:
        """Begin ``work`` on so many bytes. Returns what waits for its result, to be called in any case: before that,
        the bytes must not be changed."""
        if size < WORTH_A_THREAD:
            return work
        # One more than there are pieces: for the work that waits for them (it comes first, so one thread makes the pool).
        self._pool = self._pool or ThreadPoolExecutor(self._pieces + 1, "frames")
        return self._pool.submit(work).result

    def checksums(self, *lists: Sequence[Any]) -> list[list[int]]:
        """zlib.crc32 of each of some lists' C-contiguous arrays or bytes. May be part of such a work."""
        begun = [[self._begin_checksums(piece) for piece in self._cut(each)] for each in lists]
        try:
            return [[each for result in results for each in result()] for results in begun]
        except BaseException:
            for result in chain.from_iterable(begun):  # none may go on reading
                with suppress(Exception):
                    result()
            raise

    def _begin_checksums(self, arrays: Sequence[Any]) -> Callable[[], list[int]]:
        return self.begin(lambda: [zlib.crc32(array) for array in arrays], _size(arrays))

    def _cut(self, arrays: Sequence[Any]) -> list[Sequence[Any]]:
        """A list in as many pieces as are worth a thread; half of what there may be, as two lists are large."""
        count = max(1, min(self._pieces // 2, len(arrays), _size(arrays) // WORTH_A_THREAD))
        ends = [len(arrays) * k // count for k in range(count + 1)]
        return [arrays[first:end] for first, end in pairwise(ends)]

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def _size(arrays: Sequence[Any]) -> int:
    return sum(memoryview(array).nbytes for array in arrays)
