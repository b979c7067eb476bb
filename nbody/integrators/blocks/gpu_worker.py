"""One device that makes block steps: its arrays, and the launches of the kernels."""

import contextlib
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.integrators.blocks.gpu_finish import finish_kernel
from nbody.integrators.blocks.gpu_layout import CLOCK, ROUNDS, THREADS, SumPartition, real_of, tiling
from nbody.integrators.blocks.gpu_predict import Prediction, prediction_kernels
from nbody.integrators.blocks.gpu_sums import force_kernel
from nbody.integrators.blocks.gpu_totals import gather_kernel, store_kernel
from nbody.integrators.blocks.memory import NODE, rows_per_body


class Columns(NamedTuple):
    """The bodies on a device: the arrays of :class:`.pairs.BlockBodies`."""

    rows: Any
    last: Any
    step: Any
    wanted: Any
    mass: Any
    limit: Any


class BlockKernels(NamedTuple):
    """The kernels of a scheme."""

    mixed: bool
    parts: int
    prediction: Prediction
    first_prediction: Prediction
    sums: Any
    first_sums: Any
    gather: Any
    store: Any
    finish: Any

    @classmethod
    def of(cls, law: str, order: int, mixed: bool, shared: bool, parts: int) -> "BlockKernels":
        """The kernels for a law, an order and a precision; ``shared``: all bodies make the shortest step."""
        prediction, first_prediction = (prediction_kernels(order, mixed, each) for each in (shared, False))
        sums, first_sums = (force_kernel(law, order, mixed, first) for first in (False, True))
        gather, store = gather_kernel(mixed, parts), store_kernel(mixed, parts)
        finish = finish_kernel(order, mixed, parts)
        return cls(mixed, parts, prediction, first_prediction, sums, first_sums, gather, store, finish)


def blocks_for(threads: int) -> int:
    """Blocks of THREADS threads."""
    return -(-threads // THREADS)


class BlockWorker:
    """One device: the bodies, the working arrays and the launches there. Made, and called, with the device current.

    Args:
        bodies: on this device.
        partition: the parts over which it adds the forces; the capacity follows.
        helper: the device, if it is not the first one.
    """

    def __init__(
        self,
        bodies: Columns,
        kernels: BlockKernels,
        partition: SumPartition,
        stream: Any,
        helper: compute.Helper | None = None,
    ) -> None:
        self.bodies, self.stream, self.helper, self._kernels = bodies, stream, helper, kernels
        self.count, self._tiling = len(bodies.mass), tiling(kernels.mixed)
        self.p = cuda.device_array((self.count * rows_per_body(kernels.mixed), 4), real_of(kernels.mixed))
        self.listed = cuda.device_array(self.count, np.int64)
        self.clock, self.scale = cuda.device_array(CLOCK, np.int64), cuda.device_array(4, np.float64)
        arguments = self.p, cuda.device_array(1, np.float64), self.listed, self.clock, self.scale, 0, partition
        self._blocks = min(
            compute.resident_blocks(kernel, arguments, 32 * self._tiling.warps)
            for kernel in (kernels.sums, kernels.first_sums)
        )
        capacity = self._blocks * (ROUNDS if kernels.parts > 1 else 1)
        self._partition = partition._replace(capacity=capacity)
        groups = -(-self.count // self._tiling.group)
        most = max(groups * partition.own, -(-capacity * partition.own // partition.parts))
        self.partial = cuda.device_array(9 * self._tiling.group * most, np.float64)
        size = self.count * partition.nodes * NODE if partition.nodes > 1 else 0
        self.gathered = tuple(cuda.device_array(size, np.float64) for _ in range(2))

    def current(self) -> contextlib.AbstractContextManager[None]:
        """Make the device current inside a ``with`` block."""
        return self.helper.current() if self.helper else contextlib.nullcontext()

    def set(self, clock: np.ndarray, scale: np.ndarray) -> None:
        """Set the clock and the scale."""
        self.clock.copy_to_device(clock, self.stream)
        self.scale.copy_to_device(scale, self.stream)

    def predict(self, prediction: Prediction, slot: int) -> None:
        """Predict all bodies, and list those of the next block."""
        rows, last, step, _, mass, _ = self.bodies
        prediction.predict[blocks_for(self.count), THREADS, self.stream](
            rows, mass, self.p, last, step, self.listed, self.clock, self.scale, slot
        )

    def force(self, kernel: Any, slot: int) -> None:
        """Compute the partial sums of the listed bodies."""
        kernel[self._blocks, 32 * self._tiling.warps, self.stream](
            self.p, self.partial, self.listed, self.clock, self.scale, slot, self._partition
        )

    def gather(self, gathered: tuple[Any, ...], slot: int) -> None:
        """Store the sums over this device's parts on all devices."""
        self._kernels.gather[self._warps(), THREADS, self.stream](
            self.partial, gathered, self.listed, self.clock, slot, self._partition
        )

    def store(self, sums: Any) -> None:
        """Keep the sums of all bodies as their derivatives."""
        self._kernels.store[self._warps(), THREADS, self.stream](
            self.bodies.rows, sums, self.listed, self.scale, self._partition
        )

    def finish(self, sums: Any, slot: int) -> None:
        """Correct the listed bodies."""
        self._kernels.finish[self._warps(), THREADS, self.stream](
            *self.bodies, self.p, sums, self.listed, self.clock, self.scale, slot, self._partition
        )

    def _warps(self) -> int:
        """Blocks for a warp per listed body, at most as many as there may be sums for."""
        return min(blocks_for(self.count * 32), self._blocks)
