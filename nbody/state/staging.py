"""Frames are copied from the GPU while the next steps are computed.

    body, velocity, acceleration ─ pack ─► an area on the device ─ copy ─► a block in pinned memory

The kernel that makes the moves between two force evaluations (:mod:`nbody.state.device_moves`) packs the data of a frame
into an area, in the layout of a recording. If every step is recorded, the steps and packings of a whole block are one
graph. After it, a second stream copies all areas of the block at once, while the first stream makes the next steps and
packs into other areas: there are two buffers, used alternately (or one if a frame is large). The blocks form a ring. A
block is free when all its snapshots are released; if all blocks are in use, the run waits (usually for the disk).

One H200, 20480 bodies of a Plummer sphere, float32: a step takes 148 µs, 159 with the sum of the energy,
160 with every frame packed and copied in blocks of 16, and 161 with all frames stored in memory. (A separate kernel for the
packing took 3 µs more; a copy of each frame in the block's graph, which then waited for the last one, 8 µs more.)
"""

import queue
from collections.abc import Sequence
from typing import Any

import numpy as np

from nbody.compute import cuda, is_done, out_of_memory
from nbody.state import BLOCKS, Frame, Slots, device_blocks, frame_bytes, frames_per_block
from nbody.state.device_moves import Area, blocks
from nbody.state.sums import SUMS


def _parts(memory: Any, count: int, dtype: np.dtype) -> Area:
    """The rows, the sums and the columns in the bytes of a frame."""
    end = frame_bytes(count, dtype.name)
    rows, numbers = memory[:end].view(dtype).reshape(2, count, 3), memory[end:].view(np.float64)
    sums = blocks(count) * SUMS
    starts = range(sums, len(numbers), count)
    return Area(rows, numbers[:sums].reshape(-1, SUMS), tuple(numbers[k : k + count] for k in starts))


def _bytes(count: int, dtype: np.dtype, columns: int) -> int:
    return frame_bytes(count, dtype.name) + 8 * (blocks(count) * SUMS + columns * count)


def device_bytes(count: int, dtype: np.dtype, columns: int = 0) -> int:
    """Bytes on the device for recorded frames, with a number of columns."""
    return device_blocks(count, dtype.name) * frames_per_block(count, dtype.name) * _bytes(count, dtype, columns)


class DeviceBlock:
    """Areas on the device for the frames of one block.

    Attributes:
        number: its index among the buffers.
        memory: (K, bytes), the memory of each frame; ``areas``: views of it that moves pack into.
        packed, copied: events: its frames are packed; its frames are copied to the host.
    """

    def __init__(self, number: int, frames: int, count: int, dtype: np.dtype, columns: int) -> None:
        self.number = number
        self.memory = cuda.device_array((frames, _bytes(count, dtype, columns)), np.uint8)
        self.areas = [_parts(self.memory[k], count, dtype) for k in range(frames)]
        self.packed, self.copied = cuda.event(timing=False), cuda.event(timing=False)


class PinnedBlock:
    """Pinned memory for consecutive frames that arrive together.

    Attributes:
        number: its index in the ring.
        memory: (K, bytes), of each frame.
    """

    def __init__(
        self, number: int, frames: int, count: int, dtype: np.dtype, columns: tuple[str, ...],
        free: "queue.SimpleQueue[PinnedBlock]",
    ) -> None:  # fmt: skip
        self.number, self._free, self._names = number, free, columns
        self.memory = cuda.pinned_array((frames, _bytes(count, dtype, len(columns))), np.uint8)
        self._areas = [_parts(memory, count, dtype) for memory in self.memory]
        begin = frame_bytes(count, dtype.name)
        end = begin + 8 * blocks(count) * SUMS
        self._block_sums = self.memory[:, begin:end].view(np.float64).reshape(frames, -1, SUMS)
        self._sums: np.ndarray | None = None
        self._arrived, self._has_arrived, self._used = cuda.event(timing=False), True, 0

    def frames_after(self, moments: Sequence[tuple[int, float]], slots: Slots | None, stream) -> list[Frame]:
        """The frames of ``moments`` (step and time), which have arrived when ``stream`` reaches this point. The block is
        free again when one thread has released all of them."""
        self._arrived.record(stream)
        self._has_arrived, self._used, self._sums = False, len(moments), None
        return [StagedFrame(*moment, self, number, slots) for number, moment in enumerate(moments)]

    def rows(self, number: int) -> np.ndarray:
        """Positions and velocities of a frame, (2, N, 3)."""
        return self._areas[number].rows

    def columns(self, number: int) -> dict[str, np.ndarray]:
        """The columns of a frame, by name."""
        return dict(zip(self._names, self._areas[number].columns, strict=True))

    def arrived(self) -> bool:
        """True if its frames have arrived."""
        self._has_arrived = self._has_arrived or is_done(self._arrived)
        return self._has_arrived

    def wait(self) -> np.ndarray:
        """Wait until its frames have arrived; returns their sums, (K, SUMS)."""
        if not self._has_arrived:
            self._arrived.synchronize()
            self._has_arrived = True
        if self._sums is None:  # for all frames at once: a NumPy call takes longer than the sum
            self._sums = self._block_sums[: self._used].sum(axis=1)
        return self._sums

    def release(self) -> None:
        """Declare that one of its snapshots is no longer read."""
        self._used -= 1
        if not self._used:
            self._free.put(self)


class StagedFrame(Frame):
    """A frame of a :class:`PinnedBlock`, by its index."""

    def __init__(self, step: int, time: float, block: PinnedBlock, number: int, slots: Slots | None) -> None:
        self._block, self._number = block, number
        position, velocity = block.rows(number)
        super().__init__(step, time, position, velocity, columns=block.columns(number), slots=slots)

    def arrived(self) -> bool:
        return self._block.arrived()

    def wait(self) -> Frame:
        self.sums = self._block.wait()[self._number]
        if self.slots is not None:
            self.position, self.velocity = self.slots.spread(self._block.rows(self._number))
        return self

    def release(self) -> None:
        self._block.release()


class Staging:
    """The buffers and the ring of blocks of one state.

    Attributes:
        buffers: how many there are.
    """

    def __init__(self, count: int, dtype: np.dtype, columns: tuple[str, ...] = ()) -> None:
        frames, self.buffers = frames_per_block(count, dtype.name), device_blocks(count, dtype.name)
        with out_of_memory("the buffer of recorded frames", device_bytes(count, dtype, len(columns))):
            self._buffers = [DeviceBlock(number, frames, count, dtype, len(columns)) for number in range(self.buffers)]
        self._copies = cuda.stream()
        self._free: queue.SimpleQueue[PinnedBlock] = queue.SimpleQueue()
        for number in range(BLOCKS):
            self._free.put(PinnedBlock(number, frames, count, dtype, columns, self._free))

    def next_block(self) -> PinnedBlock:
        """A free block; waits until there is one."""
        return self._free.get()

    def buffer_for(self, block: PinnedBlock, stream) -> DeviceBlock:
        """The buffer into which a block's frames are packed; ``stream`` waits until the buffer's last frames are copied."""
        buffer = self._buffers[block.number % self.buffers]
        buffer.copied.wait(stream)
        return buffer

    def send(
        self, buffer: DeviceBlock, block: PinnedBlock, moments: Sequence[tuple[int, float]], slots: Slots | None, stream
    ) -> list[Frame]:
        """Copy the first frames of a buffer, those of ``moments``, to a block when ``stream`` reaches this point."""
        count = len(moments)
        buffer.packed.record(stream)
        buffer.packed.wait(self._copies)
        buffer.memory[:count].copy_to_host(block.memory[:count], stream=self._copies)
        buffer.copied.record(self._copies)
        return block.frames_after(moments, slots, self._copies)
