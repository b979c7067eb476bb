"""How frames leave the GPU while the next steps compute: a ring of pinned buffers, filled on a stream of their own.

One kernel packs what a frame needs into a staging area on the device (it runs between two steps, and takes a few
microseconds); from there a second stream copies it to pinned memory while the first goes on stepping. A buffer is free
again when its snapshot is released; with all of them in use the run waits for the slowest: the disk.
"""

import queue

import numpy as np

from nbody.gpu import cuda
from nbody.state import Snapshot
from nbody.state.sums import SUMS

BUFFERS = 6
THREADS = 128


@cuda.jit
def _pack(body, velocity, acceleration, position_out, velocity_out, block_sums):
    """Rows of four become rows of D, and each block of threads adds up its particles' terms of the sums, in float64
    and always in the same order."""
    terms = cuda.shared.array((THREADS, SUMS), np.float64)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    for k in range(SUMS):
        terms[t, k] = 0.0
    if i < body.shape[0]:
        for k in range(position_out.shape[1]):
            position_out[i, k] = body[i, k]
            velocity_out[i, k] = velocity[i, k]
        x, y, z = np.float64(body[i, 0]), np.float64(body[i, 1]), np.float64(body[i, 2])
        vx, vy, vz = np.float64(velocity[i, 0]), np.float64(velocity[i, 1]), np.float64(velocity[i, 2])
        m = np.float64(body[i, 3])
        terms[t, 0] = 0.5 * m * (vx * vx + vy * vy + vz * vz)
        terms[t, 1] = 0.5 * m * np.float64(acceleration[i, 3])
        terms[t, 2], terms[t, 3], terms[t, 4] = m * vx, m * vy, m * vz
        terms[t, 5], terms[t, 6], terms[t, 7] = m * (y * vz - z * vy), m * (z * vx - x * vz), m * (x * vy - y * vx)
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            for k in range(SUMS):
                terms[t, k] += terms[t + half, k]
        half //= 2
    if t == 0:
        for k in range(SUMS):
            block_sums[cuda.blockIdx.x, k] = terms[0, k]


class Buffer:
    """Room for one frame, on the device and in pinned memory."""

    def __init__(self, count: int, dimensions: int, dtype: np.dtype) -> None:
        shapes = (
            ((count, dimensions), dtype),
            ((count, dimensions), dtype),
            ((-(-count // THREADS), SUMS), np.float64),
        )
        self.device = [cuda.device_array(shape, kind) for shape, kind in shapes]
        self.pinned = [cuda.pinned_array(shape, kind) for shape, kind in shapes]
        self.packed, self.arrived = cuda.event(timing=False), cuda.event(timing=False)


class StagedSnapshot(Snapshot):
    """A snapshot in a :class:`Buffer`; see :class:`~nbody.state.Snapshot`."""

    def __init__(self, buffer: Buffer, free: "queue.Queue[Buffer]") -> None:
        super().__init__(buffer.pinned[0], buffer.pinned[1], np.full(SUMS, np.nan))
        self._buffer, self._free = buffer, free

    def wait(self) -> Snapshot:
        """See :meth:`Snapshot.wait`."""
        self._buffer.arrived.synchronize()
        self.sums = self._buffer.pinned[2].sum(axis=0)
        return self

    def release(self) -> None:
        """See :meth:`Snapshot.release`."""
        self._free.put(self._buffer)


class Staging:
    """The ring of buffers of one state."""

    def __init__(self, count: int, dimensions: int, dtype: np.dtype) -> None:
        self._copies = cuda.stream()
        self._free: queue.Queue[Buffer] = queue.Queue()
        for _ in range(BUFFERS):
            self._free.put(Buffer(count, dimensions, dtype))

    def snapshot(self, stream, body, velocity, acceleration) -> StagedSnapshot:
        """Pack the state in ``stream``'s order and start its way to the host; waits while every buffer is in use."""
        buffer = self._free.get()
        blocks = -(-body.shape[0] // THREADS)
        _pack[blocks, THREADS, stream](body, velocity, acceleration, *buffer.device)
        buffer.packed.record(stream)
        buffer.packed.wait(self._copies)
        for device, pinned in zip(buffer.device, buffer.pinned, strict=True):
            device.copy_to_host(pinned, stream=self._copies)
        buffer.arrived.record(self._copies)
        return StagedSnapshot(buffer, self._free)
