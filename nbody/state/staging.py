"""How frames leave the GPU while the next steps compute.

    body, velocity, acceleration ─ pack ─► an area on the device ─ copy ─► a slot of a block in pinned memory

What a frame needs is packed into an area, in the form that a recording stores, by the kernel that makes the moves between
two force evaluations (:mod:`nbody.state.moves`). Where every step is recorded, the steps and packings of a whole block are
one graph. When it is done, a second stream copies all of its areas at once, while the first goes on stepping and packs into
others: there are two sides, used in turn. Blocks make a ring. One is free when all its snapshots are released; with all of
them in use the run waits for the slowest: the disk.

One H200, 20480 bodies of a Plummer sphere, float32, ``gpu-scheduled``: a step takes 148 µs, 159 with the energy's sum, 160
with every frame packed and copied, in blocks of 16, and 161 with all of it stored in memory. (When the packing was a kernel
of its own it took 3 µs more; when each frame's copy was a branch of the block's graph, which waited for the last, 8 more.)
"""

import queue
from typing import Any

import numpy as np

from nbody.gpu import cuda, is_done, out_of_memory
from nbody.state import BLOCKS, SIDES, Snapshot, frame_bytes, frames_per_block
from nbody.state.moves import Area, blocks
from nbody.state.sums import SUMS


def _parts(memory: Any, count: int, dtype: np.dtype) -> Area:
    """The two parts of a frame's bytes."""
    end = frame_bytes(count, dtype.name)
    return Area(
        memory[:end].view(dtype).reshape(2, count, 3), memory[end:].view(np.float64).reshape(blocks(count), SUMS)
    )


def _bytes(count: int, dtype: np.dtype) -> int:
    return frame_bytes(count, dtype.name) + blocks(count) * SUMS * 8


class Side:
    """Areas on the device for the frames of one block.

    Attributes:
        number: which of the two it is.
        memory: (K, bytes), room for each frame, and ``areas``, the same as what its moves pack into.
        packed, copied: events: its frames are there, and have left.
    """

    def __init__(self, number: int, frames: int, count: int, dtype: np.dtype) -> None:
        self.number = number
        self.memory = cuda.device_array((frames, _bytes(count, dtype)), np.uint8)
        self.areas = [_parts(self.memory[k], count, dtype) for k in range(frames)]
        self.packed, self.copied = cuda.event(timing=False), cuda.event(timing=False)


class Block:
    """Room in pinned memory for frames that are made one after the other and arrive together.

    Attributes:
        number: its place in the ring.
        memory: (K, bytes), a slot for each frame.
    """

    def __init__(self, number: int, frames: int, count: int, dtype: np.dtype, free: "queue.SimpleQueue[Block]") -> None:
        self.number, self._free = number, free
        self.memory = cuda.pinned_array((frames, _bytes(count, dtype)), np.uint8)
        self._rows = [_parts(slot, count, dtype).rows for slot in self.memory]
        self._block_sums = self.memory[:, frame_bytes(count, dtype.name) :].view(np.float64).reshape(frames, -1, SUMS)
        self._sums: np.ndarray | None = None
        self._arrived, self._here, self._used = cuda.event(timing=False), True, 0

    def under_way(self, count: int, stream) -> list[Snapshot]:
        """The snapshots in its first ``count`` slots, which have arrived when ``stream`` gets to this point. When they
        are released, by one thread, it is free again."""
        self._arrived.record(stream)
        self._here, self._used, self._sums = False, count, None
        return [StagedSnapshot(self, k, rows) for k, rows in enumerate(self._rows[:count])]

    def arrived(self) -> bool:
        """True once its frames are here."""
        self._here = self._here or is_done(self._arrived)
        return self._here

    def wait(self) -> np.ndarray:
        """The sums of its frames, (K, SUMS), once they are here."""
        if not self._here:
            self._arrived.synchronize()
            self._here = True
        if self._sums is None:  # for all at once: NumPy takes longer to be called than to add them up
            self._sums = self._block_sums[: self._used].sum(axis=1)
        return self._sums

    def release(self) -> None:
        """One of its snapshots is no longer looked at."""
        self._used -= 1
        if not self._used:
            self._free.put(self)


class StagedSnapshot(Snapshot):
    """A snapshot in a :class:`Block`; see :class:`~nbody.state.Snapshot`."""

    def __init__(self, block: Block, slot: int, rows: np.ndarray) -> None:
        super().__init__(rows[0], rows[1], np.full(SUMS, np.nan))
        self._block, self._slot = block, slot

    def arrived(self) -> bool:
        """See :meth:`Snapshot.arrived`."""
        return self._block.arrived()

    def wait(self) -> Snapshot:
        """See :meth:`Snapshot.wait`."""
        self.sums = self._block.wait()[self._slot]
        return self

    def release(self) -> None:
        """See :meth:`Snapshot.release`."""
        self._block.release()


class Staging:
    """The sides and the ring of blocks of one state."""

    def __init__(self, count: int, dtype: np.dtype) -> None:
        frames = frames_per_block(count, dtype.name)
        with out_of_memory("what recorded frames are packed into", SIDES * frames * _bytes(count, dtype)):
            self._sides = [Side(number, frames, count, dtype) for number in range(SIDES)]
        self._copies = cuda.stream()
        self._free: queue.SimpleQueue[Block] = queue.SimpleQueue()
        for number in range(BLOCKS):
            self._free.put(Block(number, frames, count, dtype, self._free))

    def next_block(self) -> Block:
        """A free block; waits while there is none."""
        return self._free.get()

    def side_for(self, block: Block, stream) -> Side:
        """The side that a block's frames are packed on; ``stream`` goes on when its last ones have left it."""
        side = self._sides[block.number % SIDES]
        side.copied.wait(stream)
        return side

    def send(self, side: Side, block: Block, count: int, stream) -> list[Snapshot]:
        """Start the way of the first ``count`` frames of a side to a block, once ``stream`` gets to this point. Returns
        their snapshots."""
        side.packed.record(stream)
        side.packed.wait(self._copies)
        side.memory[:count].copy_to_host(block.memory[:count], stream=self._copies)
        side.copied.record(self._copies)
        return block.under_way(count, self._copies)
