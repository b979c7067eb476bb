"""The checksums of frames, computed in threads of their own while the frames are written."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

WORTH_A_THREAD = 1 << 19
"""Bytes from which on they get a thread. Fewer are a frame that came alone, so the run waits for no checksum; and where
every processor is busy, to hand them over takes longer than to sum them."""

THREADS = 4


class Checksums:
    """zlib.crc32 of lists of arrays, those of a long list in threads. (zlib lets other threads run meanwhile.)

    A frame of 20480 particles in float32 takes 0.19 ms in one thread on an H200's host (zlib 1.3), twice as long as to
    write it, and 0.06 ms in four.
    """

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None  # made for the first long list

    @contextmanager
    def of(self, *lists: Sequence[Any]) -> Iterator[list[list[int]]]:
        """A list that holds, once this block is left, the checksums of each list of C-contiguous arrays or bytes."""
        sums: list[list[int]] = []
        begun = [[self._begin(piece) for piece in _pieces(each)] for each in lists]
        try:
            yield sums
        finally:  # in any case: who handed the arrays over may use their memory again
            sums += [[each for result in results for each in result()] for results in begun]

    def _begin(self, arrays: Sequence[Any]) -> Callable[[], list[int]]:
        """Begin with some arrays. Returns what gives their checksums."""
        if _size(arrays) < WORTH_A_THREAD:
            return lambda: _checksums(arrays)
        self._threads = self._threads or ThreadPoolExecutor(THREADS, "checksums")
        return self._threads.submit(_checksums, arrays).result

    def close(self) -> None:
        """End the threads."""
        if self._threads is not None:
            self._threads.shutdown()


def _pieces(arrays: Sequence[Any]) -> list[Sequence[Any]]:
    """A list in halves, if each is worth a thread."""
    half = len(arrays) // 2
    return [arrays[:half], arrays[half:]] if _size(arrays[:half]) >= WORTH_A_THREAD else [arrays]


def _size(arrays: Sequence[Any]) -> int:
    return sum(memoryview(array).nbytes for array in arrays)


def _checksums(arrays: Sequence[Any]) -> list[int]:
    return [zlib.crc32(array) for array in arrays]
