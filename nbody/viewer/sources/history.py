"""The frames of a running simulation that can be gone back to, within a bound of memory."""

from bisect import bisect_left
from time import perf_counter

from nbody.viewer.sources.frames import ShownFrame

MEMORY = 2.0**30
"""Bytes for frames in host memory, unless the user chooses: of a run the ones that were shown, of a recording those that are
read ahead."""

COPYING = 0.1
"""The fraction of the time that copying from a device may take: a frame that comes too soon after another is not kept."""

OVERHEAD = 1000
"""Bytes of a frame without its bodies."""

FULL = 0.75
"""The fraction of the older frames that is left, at most, so that thinning out is rare."""

UNSETTLED = 2
"""The last frames stay where they are, on a device too: the present, and the one before it, with which it is compared."""


class History:
    """Frames in the order in which they were shown; they are numbered 0, 1, 2 … when they are added.

    When they fill ``memory`` bytes, the newer half of them stays, and of the older ones those whose number is a multiple of
    ``stride``, which doubles when more than three quarters of them would be left. So older frames are spread evenly over the
    run, and the first one is always there. A frame of the same step as the last one replaces it; one of an earlier
    step begins another run, and all others are forgotten.
    """

    def __init__(self, memory: float = MEMORY) -> None:
        self._memory, self.stride = memory, 1
        self._frames: list[ShownFrame] = []
        self._bytes, self._added, self._copy_at = 0, 0, 0.0

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, k: int) -> ShownFrame:
        return self._frames[k]

    def __setitem__(self, k: int, frame: ShownFrame) -> None:
        """Replace a frame (by one in host memory, unless it is the last)."""
        before, self._frames[k] = self._frames[k], frame
        if 0 <= k < len(self) - UNSETTLED:
            self._bytes += size(frame) - size(before)
        before.release()

    def place(self, number: int) -> int:
        """Where the frame ``number`` is, or would be."""
        return bisect_left(self._frames, number, key=lambda frame: frame.number)

    def add(self, frame: ShownFrame) -> None:
        """Add the newest frame, and number it."""
        frame.number, self._added = self._added, self._added + 1
        if self._frames and frame.step == self._frames[-1].step:
            self[-1] = frame
            return
        if self._frames and frame.step < self._frames[-1].step:
            self._forget(range(len(self)))
            self.stride = 1
        self._frames.append(frame)
        if len(self) > UNSETTLED:
            self._settle(len(self) - UNSETTLED - 1)
        if self._bytes > self._memory:
            self._thin_out()

    def _settle(self, k: int) -> None:
        """Copy a frame to the host, unless this would take too much of the time."""
        frame, began = self._frames[k], perf_counter()
        if began < self._copy_at:
            frame.release()
            del self._frames[k]
            return
        kept = frame.on_host()
        self._frames[k], self._bytes = kept, self._bytes + size(kept)
        if kept is not frame:
            self._copy_at = began + (perf_counter() - began) / COPYING
            frame.release()

    def _thin_out(self) -> None:
        """Forget a part of the older frames."""
        older = range(1, (len(self) - UNSETTLED + 1) // 2)
        while len(left := [k for k in older if self._frames[k].number % self.stride == 0]) > FULL * len(older):
            self.stride *= 2
        self._forget(sorted(set(older).difference(left)))

    def _forget(self, places: "range | list[int]") -> None:
        for k in places:
            if k < len(self) - UNSETTLED:
                self._bytes -= size(self._frames[k])
            self._frames[k].release()
        forgotten = set(places)
        self._frames = [frame for k, frame in enumerate(self._frames) if k not in forgotten]


def size(frame: ShownFrame) -> int:
    """The bytes of a frame in host memory."""
    return OVERHEAD + frame.position.nbytes + frame.velocity.nbytes
