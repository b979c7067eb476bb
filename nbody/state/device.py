"""The state on a GPU.

Arrays have rows of four numbers, so that a body is one 128-bit load in float32:

    body         (N, 4)   x   y   z   m
    velocity     (N, 4)   vx  vy  vz  0
    acceleration (N, 4)   ax  ay  az  φ      (φ: potential per unit mass, or the q of ``Outputs.ENERGY``, if requested)

In 2-D, z = vz = az = 0. The kicks and drifts between two force evaluations, and the packing of a frame, are one launch:
:mod:`nbody.state.device_moves`. Repeated steps are replayed as CUDA graphs
(:mod:`nbody.state.replay`), and long evaluations report their progress (:mod:`nbody.state.device_progress`).
"""

from typing import Any, Protocol

import numpy as np

from nbody.compute import cuda, out_of_memory
from nbody.particles import Particles
from nbody.state.columns import Column, bytes_of
from nbody.state.device_moves import DeviceMoves
from nbody.state.device_progress import DeviceProgress
from nbody.state.graph_time import DeviceClock
from nbody.state.partition import WorkPartition
from nbody.state.replay import Replays
from nbody.state.staging import GpuFrames
from nbody.state.state import State

MOST_ROWS = 16
"""The most rows that are copied one by one: each takes some 10 µs, as 0.1 MB of a column do."""


class DeviceArray(Protocol):
    """An array in the memory of a GPU, as Numba makes it: what Python does with one. Kernels take it as their argument."""

    shape: tuple[int, ...]
    dtype: np.dtype
    size: int

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any) -> "DeviceArray": ...

    def view(self, dtype: Any) -> "DeviceArray": ...

    def reshape(self, *shape: Any) -> "DeviceArray": ...

    def copy_to_host(self, array: np.ndarray | None = None, stream: Any = 0) -> np.ndarray:
        """A copy in host memory, or into ``array``."""

    def copy_to_device(self, array: Any, stream: Any = 0) -> None:
        """Overwrite it by an array of the host or of the GPU."""


class DeviceState(State[DeviceArray]):
    """Particles on the current CUDA device, in the layout above.

    Attributes:
        stream: where all work on the state is launched.
        partition: how force evaluations are divided.
    """

    COLUMNS = (Column("body", 4), Column("velocity", 4), Column("acceleration", 4))
    body: DeviceArray
    velocity: DeviceArray
    acceleration: DeviceArray
    clock: DeviceClock
    moves: DeviceMoves
    frames: GpuFrames

    def __init__(self, particles: Particles, dtype: np.dtype) -> None:
        size = bytes_of(self.COLUMNS, particles.count, particles.dimensions, np.dtype(dtype).name)
        with out_of_memory(f"a state of {particles.count} particles", size):
            super().__init__(particles, dtype)
        rows = np.zeros((self.count, 4), dtype)
        rows[:, : self.dimensions] = particles.velocity
        self.velocity.copy_to_device(rows)
        rows[:, : self.dimensions], rows[:, 3] = particles.position, particles.mass
        self.body.copy_to_device(rows)
        arrays = self.body, self.velocity, self.acceleration
        self.stream, self.clock = cuda.stream(), DeviceClock(particles.time)
        self.partition = WorkPartition(self.count, self.count)
        self.progress = DeviceProgress(self.stream, self.partition)
        self.moves = DeviceMoves(arrays, self.stream, self.clock)
        self.moves.repeats = replays = Replays(self.stream, self.clock, self.progress)
        self.frames = GpuFrames(arrays, self.stream, self.clock, self.moves, replays)

    def values(self, *names: str, copy: bool = True, rows: np.ndarray | None = None) -> list[Any]:
        self.progress.wait()
        axes = slice(self.dimensions)
        stored = {
            "position": ("body", axes), "mass": ("body", 3), "velocity": ("velocity", axes),
            "acceleration": ("acceleration", axes), "potential": ("acceleration", 3),
        }  # fmt: skip
        found: list[tuple[str, Any]] = [stored[name] for name in names]
        if not copy:
            return [self.column(array)[:, part] for array, part in found]
        if rows is not None and 0 < len(rows) <= MOST_ROWS:
            each = {array: [self.column(array)[row].copy_to_host() for row in rows.tolist()] for array, _ in found}
            return [np.array(each[array])[:, part] for array, part in found]
        whole = {array: self.column(array).copy_to_host() for array, _ in found}
        return [whole[array][slice(None) if rows is None else rows, part].copy() for array, part in found]

    def _allocate(self, zeros: np.ndarray) -> DeviceArray:
        return cuda.to_device(zeros)

    def _to_host(self, array: Any) -> np.ndarray:
        return array.copy_to_host()

    def _from_host(self, source: np.ndarray, array: Any) -> None:
        array.copy_to_device(source)
