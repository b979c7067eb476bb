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
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any

import numpy as np

from nbody.compute import cuda, is_done, out_of_memory
from nbody.diagnostics.gpu_density import DeviceDensity
from nbody.particles import Particles
from nbody.state.device_moves import THREADS, Area, DeviceMoves, Packing, blocks, copy_potential
from nbody.state.frames import BLOCKS, EXTRAS, Frame, Slots, StateFrames, device_blocks, frame_bytes, frames_per_block
from nbody.state.graph_time import DeviceClock
from nbody.state.moves import MoveKind
from nbody.state.replay import Replays
from nbody.state.sums import SUMS


def _parts(memory: Any, count: int, dtype: np.dtype) -> Area:
    """The rows, the sums and the extras in the bytes of a frame."""
    end = frame_bytes(count, dtype.name)
    rows, numbers = memory[:end].view(dtype).reshape(2, count, 3), memory[end:].view(np.float64)
    sums = blocks(count) * SUMS
    starts = range(sums, len(numbers), count)
    return Area(rows, numbers[:sums].reshape(-1, SUMS), tuple(numbers[k : k + count] for k in starts))


def _bytes(count: int, dtype: np.dtype, extras: int) -> int:
    return frame_bytes(count, dtype.name) + 8 * (blocks(count) * SUMS + extras * count)


def device_bytes(count: int, dtype: np.dtype, extras: int = 0) -> int:
    """Bytes on the device for recorded frames, with a number of extras."""
    return device_blocks(count, dtype.name) * frames_per_block(count, dtype.name) * _bytes(count, dtype, extras)


class DeviceBlock:
    """Areas on the device for the frames of one block.

    Attributes:
        number: its index among the buffers.
        memory: (K, bytes), the memory of each frame; ``areas``: views of it that moves pack into.
        packed, copied: events: its frames are packed; its frames are copied to the host.
    """

    def __init__(self, number: int, frames: int, count: int, dtype: np.dtype, extras: int) -> None:
        self.number = number
        self.memory = cuda.device_array((frames, _bytes(count, dtype, extras)), np.uint8)
        self.areas = [_parts(self.memory[k], count, dtype) for k in range(frames)]
        self.packed, self.copied = cuda.event(timing=False), cuda.event(timing=False)


class PinnedBlock:
    """Pinned memory for consecutive frames that arrive together.

    Attributes:
        number: its index in the ring.
        memory: (K, bytes), of each frame.
    """

    def __init__(
        self, number: int, frames: int, count: int, dtype: np.dtype, extras: tuple[str, ...],
        free: "queue.SimpleQueue[PinnedBlock]",
    ) -> None:  # fmt: skip
        self.number, self._free, self._names = number, free, extras
        self.memory = cuda.pinned_array((frames, _bytes(count, dtype, len(extras))), np.uint8)
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

    def extras(self, number: int) -> dict[str, np.ndarray]:
        """The extras of a frame, by name."""
        return dict(zip(self._names, self._areas[number].extras, strict=True))

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
        super().__init__(step, time, position, velocity, extras=block.extras(number), slots=slots)

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

    def __init__(self, count: int, dtype: np.dtype, extras: tuple[str, ...] = ()) -> None:
        frames, self.buffers = frames_per_block(count, dtype.name), device_blocks(count, dtype.name)
        with out_of_memory("the buffer of recorded frames", device_bytes(count, dtype, len(extras))):
            self._buffers = [DeviceBlock(number, frames, count, dtype, len(extras)) for number in range(self.buffers)]
        self._copies = cuda.stream()
        self._free: queue.SimpleQueue[PinnedBlock] = queue.SimpleQueue()
        for number in range(BLOCKS):
            self._free.put(PinnedBlock(number, frames, count, dtype, extras, self._free))

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


class GpuFrames(StateFrames):
    """The snapshots of a state on a GPU: many steps, and the packing of their frames, are one replay of a graph."""

    offered = EXTRAS

    def __init__(
        self, arrays: tuple[Any, Any, Any], stream: Any, clock: DeviceClock, moves: DeviceMoves, replays: Replays
    ) -> None:
        super().__init__(clock)
        (self._body, _, self._acceleration), self._stream, self._moves = arrays, stream, moves
        self._replays = replays
        self._staging: Staging | None = None  # made for the first snapshot
        self._density: DeviceDensity | None = None

    def request(self, names: Collection[str], particles: Particles) -> None:
        super().request(names, particles)
        if "density" in self.extras:
            self._density = DeviceDensity(particles, self._body.dtype)

    def snapshot(self) -> Frame:
        staging = self._staging_area()
        block = staging.next_block()
        buffer = staging.buffer_for(block, self._stream)
        self._moves.make([(MoveKind.PACK, Packing(buffer.areas[0], self._fill))])
        return staging.send(buffer, block, [self._clock.reached], self.slots, self._stream)[0]

    def snapshots(self, make: Callable[[Sequence[Any]], None], count: int, key: Hashable) -> list[Frame]:
        staging, clock = self._staging_area(), self._clock
        if staging.buffers == 1:  # the steps need not wait until the last frame is copied
            self._replays.make(lambda _: make([None]), 1, key)
            return [self.snapshot()]
        block, (begun, _) = staging.next_block(), clock.reached
        buffer = staging.buffer_for(block, self._stream)
        packings = [Packing(area, self._fill) for area in buffer.areas[:count]]
        if key is None:
            make(packings)
        else:
            self._replays.replay(lambda _: make(packings), 1, (key, count, buffer.number), key)
        every = (clock.reached[0] - begun) // count
        moments = [(begun + k * every, clock.time_at(begun + k * every)) for k in range(1, count + 1)]
        return staging.send(buffer, block, moments, self.slots, self._stream)

    def _staging_area(self) -> Staging:
        self._staging = self._staging or Staging(len(self._body), self._body.dtype, self.extras)
        return self._staging

    def _fill(self, area: Area) -> None:
        """Fill the extras of a frame, whose rows have just been packed. (The bodies may have moved on.)"""
        for name, column in zip(self.extras, area.extras, strict=True):
            if name == "potential":
                copy_potential[blocks(len(self._body)), THREADS, self._stream](self._acceleration, column)
            elif self._density is not None:
                self._density.launch(area.rows[0], self._body, column, self._stream)
