"""Reads the frames that are needed next, in threads, within a bound of memory."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from nbody import machine
from nbody.viewer.sources.frames import ShownFrame

MOST_BYTES = 2**30
"""Bytes of frames that are kept, if that is at least :data:`LEAST_FRAMES`."""

LEAST_FRAMES, MOST_FRAMES = 3, 8
"""Frames that are kept: the two that are shown and the next one at least. More than a few do not help a steady playback."""

MOST_THREADS = 4
"""A frame of 1e7 bodies takes 0.2 s to read and check (page cache, zlib 1.2 on Zen 4), so several are read at once."""


class ReadAhead:
    """Frames by number, as ``read`` returns them: those that :meth:`prepare` named are read in threads.

    Args:
        read: returns frame ``k``, in any thread; may raise an error, which :meth:`get` then raises.
        frame_bytes: the size of a frame in memory.
    """

    def __init__(self, read: Callable[[int], ShownFrame], frame_bytes: int) -> None:
        self._read = read
        self.capacity = max(LEAST_FRAMES, min(MOST_FRAMES, MOST_BYTES // max(1, frame_bytes)))
        self._frames: dict[int, Future[ShownFrame]] = {}
        self._threads: ThreadPoolExecutor | None = None

    def prepare(self, numbers: Iterable[int]) -> None:
        """Read these frames in this order, as far as there is room, and forget all others."""
        wanted = list(dict.fromkeys(numbers))[: self.capacity]
        self._forget_all_but(wanted)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(min(MOST_THREADS, machine.cores()), "read-ahead")
        for k in wanted:
            if k not in self._frames:
                self._frames[k] = self._threads.submit(self._read, k)

    def get(self, k: int) -> ShownFrame:
        """Frame ``k``; waits until it has been read. Raises what ``read`` raised."""
        if k in self._frames:
            return self._frames[k].result()
        frame = self._read(k)
        if self._threads is None:  # nothing is prepared: a picture, or a window that was never played
            self._forget_all_but(list(self._frames)[1 - self.capacity :])
            self._frames[k] = Future()
            self._frames[k].set_result(frame)
        return frame

    def waiting(self, k: int) -> bool:
        """True if frame ``k`` is being read, so that :meth:`get` would wait."""
        return k in self._frames and not self._frames[k].done()

    def close(self) -> None:
        """End the threads, after the frames that they are reading."""
        self._forget_all_but([])
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None

    def _forget_all_but(self, numbers: list[int]) -> None:
        for k in set(self._frames).difference(numbers):
            self._frames.pop(k).cancel()
