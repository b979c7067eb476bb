"""The devices that make block steps together: each holds all bodies and makes the same blocks.

Each device predicts all bodies to the next time and lists the same ones, each in another order. It adds the forces on them
over its part of all bodies, and stores these sums on all devices. When all have done so, each device corrects all listed
bodies. So there is one exchange per block, as large as the block; the work is divided equally also if few bodies are listed;
and every device chooses the same times from the same bits, whatever the number of devices.
"""

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import SIMULATED, Graph, cuda
from nbody.errors import DeviceError
from nbody.integrators.solvers.blocks import gpu_layout as layout
from nbody.integrators.solvers.blocks.bodies import BlockBodies
from nbody.integrators.solvers.blocks.formulas import ROWS
from nbody.integrators.solvers.blocks.gpu_steps import Prediction, finish_kernel, prediction_kernels
from nbody.integrators.solvers.blocks.gpu_sums import force_kernel, gather_kernel, store_kernel
from nbody.integrators.solvers.blocks.memory import NODE, bytes_to_help, rows_per_body
from nbody.parallel.segments import cover


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
    def of(cls, law: str, order: int, mixed: bool, shared: bool, parts: int, *fields: Any) -> "BlockKernels":
        """The kernels for a law, an order and a precision; ``shared``: all bodies make the shortest step; ``fields``: the
        terms of external fields, and the dimensions."""
        prediction, first_prediction = (prediction_kernels(order, mixed, each) for each in (shared, False))
        sums, first_sums = (force_kernel(law, order, mixed, first) for first in (False, True))
        gather, store = gather_kernel(mixed, parts), store_kernel(mixed, parts)
        finish = finish_kernel(order, mixed, parts, *fields)
        return cls(mixed, parts, prediction, first_prediction, sums, first_sums, gather, store, finish)


def blocks_for(threads: int) -> int:
    """Blocks of ``THREADS`` threads."""
    return -(-threads // layout.THREADS)


NO_FIELDS = np.zeros((1, 1))
"""The parameters of no external fields."""


class BlockWorker:
    """One device: the bodies, the working arrays and the launches there. Made, and called, with the device current.

    Args:
        bodies: on this device.
        partition: the parts over which it adds the forces; the capacity follows.
        helper: the device, if it is not the first one.
        parameters: of the external fields.
    """

    def __init__(
        self,
        bodies: BlockBodies,
        kernels: BlockKernels,
        partition: layout.SumPartition,
        stream: Any,
        helper: compute.Helper | None = None,
        parameters: np.ndarray = NO_FIELDS,
    ) -> None:
        self.bodies, self.stream, self.helper, self._kernels = bodies, stream, helper, kernels
        self.count, self._tiling = len(bodies.mass), layout.tiling(kernels.mixed)
        self.p = cuda.device_array((self.count * rows_per_body(kernels.mixed), 4), layout.real_of(kernels.mixed))
        self.listed = cuda.device_array(self.count, np.int64)
        self.clock, self.scale = cuda.device_array(layout.CLOCK, np.int64), cuda.device_array(layout.SCALE, np.float64)
        self._parameters = cuda.to_device(parameters)
        arguments = self.p, cuda.device_array(1, np.float64), self.listed, self.clock, self.scale, 0, partition
        self._blocks = min(
            compute.resident_blocks(kernel, arguments, 32 * self._tiling.warps)
            for kernel in (kernels.sums, kernels.first_sums)
        )
        capacity = self._blocks * (layout.ROUNDS if kernels.parts > 1 else 1)
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
        prediction.predict[blocks_for(self.count), layout.THREADS, self.stream](
            rows, mass, self.p, last, step, self.listed, self.clock, self.scale, slot
        )

    def force(self, kernel: Any, slot: int) -> None:
        """Compute the partial sums of the listed bodies."""
        kernel[self._blocks, 32 * self._tiling.warps, self.stream](
            self.p, self.partial, self.listed, self.clock, self.scale, slot, self._partition
        )

    def gather(self, gathered: tuple[Any, ...], slot: int) -> None:
        """Store the sums over this device's parts on all devices."""
        self._kernels.gather[self._warps(), layout.THREADS, self.stream](
            self.partial, gathered, self.listed, self.clock, slot, self._partition
        )

    def store(self, sums: Any) -> None:
        """Keep the sums of all bodies as their derivatives."""
        self._kernels.store[self._warps(), layout.THREADS, self.stream](
            self.bodies.rows, sums, self.listed, self.scale, self._partition
        )

    def finish(self, sums: Any, slot: int) -> None:
        """Correct the listed bodies."""
        self._kernels.finish[self._warps(), layout.THREADS, self.stream](
            self.bodies, self.p, sums, self.listed, self.clock, self.scale, slot, self._partition,
            self._parameters,
        )  # fmt: skip

    def _warps(self) -> int:
        """Blocks for a warp per listed body, at most as many as there may be sums for."""
        return min(blocks_for(self.count * 32), self._blocks)


BLOCKS_PER_GRAPH = 24
"""A multiple of three, for the slots of the next time, and of two, for the gathered sums: both are used in turn."""


def divided(parts: int, devices: int) -> list[layout.SumPartition]:
    """The parts of each device, without the capacity."""
    ends = [parts * n // devices for n in range(devices + 1)]
    nodes = [node for begin, end in itertools.pairwise(ends) for node, _ in cover(begin, end)]
    kept = sum(1 << node for node in nodes)
    return [layout.SumPartition(parts, begin, end - begin, 0, len(nodes), kept) for begin, end in itertools.pairwise(ends)]


class Workers:
    """All devices of a run.

    Args:
        parameters: of the external fields.
        devices: their numbers. The first one has the bodies, and the others copies of them.
    """

    def __init__(
        self, bodies: BlockBodies, kernels: BlockKernels, devices: Sequence[int], stream: Any, parameters: np.ndarray
    ) -> None:
        count, partitions = len(bodies.mass), divided(kernels.parts, len(devices))
        needed = bytes_to_help(count, "mixed" if kernels.mixed else "float64")
        self.first = BlockWorker(bodies, kernels, partitions[0], stream, parameters=parameters)
        self._all, self._helpers = [self.first], list[compute.Helper]()
        self._kernels, self._fork = kernels, compute.Fork()
        for device, partition in zip(devices[1:], partitions[1:], strict=True):
            helper = compute.Helper(device)
            with helper.current(), compute.out_of_memory(f"the copies of {count} particles", needed):
                copies = empty_bodies(count)
                self._all.append(BlockWorker(copies, kernels, partition, helper.stream, helper, parameters))
            self._helpers.append(helper)
        self._graph: Graph | None = None
        self._warm = False

    def set(self, clock: np.ndarray, scale: np.ndarray) -> None:
        """Set the clocks and scales."""
        self.first.stream.synchronize()
        for worker in self._all:
            with worker.current():
                worker.set(clock, scale)
        self._join()

    def copy_bodies(self) -> None:
        """Let all devices have the bodies of the first one."""
        self.first.stream.synchronize()
        for worker in self._all[1:]:
            with worker.current():
                for there, here in zip(worker.bodies, self.first.bodies, strict=True):
                    there.copy_to_device(here, worker.stream)
        self._join()

    def clock(self) -> np.ndarray:
        """The clock, once all launches are done. Raises DeviceError if devices made different blocks."""
        self.first.stream.synchronize()
        clocks = []
        for worker in self._all:
            with worker.current():
                clocks.append(worker.clock.copy_to_host())
        for helper, clock in zip(self._helpers, clocks[1:], strict=True):
            if not (clock == clocks[0]).all():
                raise DeviceError(
                    f"GPU {helper.device} has computed other steps than the first GPU, so one of them makes errors; "
                    "test them with 'nbody doctor', and go on with one GPU"
                )
        return clocks[0]

    def derivatives(self) -> None:
        """Evaluate acceleration, jerk and snap of all bodies."""
        self._begin()
        sums = self._sums(self._kernels.first_prediction, self._kernels.first_sums, 0, 0)
        for worker, found in zip(self._all, sums, strict=True):
            with worker.current():
                worker.store(found)
        self._join()

    def blocks(self) -> None:
        """Make twenty-four blocks, as one graph once the kernels are compiled."""
        if SIMULATED or not self._warm:
            self._make(3)
            self._warm = True
        else:
            if self._graph is None:
                self._graph = Graph(self.first.stream, lambda: self._make(BLOCKS_PER_GRAPH))
            self._graph.replay()

    def _make(self, count: int) -> None:
        self._begin()
        for k in range(count):
            slot = k % 3
            sums = self._sums(self._kernels.prediction, self._kernels.sums, slot, k % 2)
            for worker, found in zip(self._all, sums, strict=True):
                with worker.current():
                    worker.finish(found, slot)
        self._join()

    def _sums(self, prediction: Prediction, kernel: Any, slot: int, turn: int) -> list[Any]:
        """Compute the sums of the next block. Returns them, an array on each device. A device may store those of the next
        block before another one has read these; so ``turn`` alternates."""
        gathered = [worker.gathered[turn] for worker in self._all]
        for worker in self._all:
            with worker.current():
                worker.predict(prediction, slot)
                worker.force(kernel, slot)
                if self._helpers:
                    worker.gather(tuple(gathered), slot)
        if not self._helpers:
            return [self.first.partial]
        self._join()
        self._begin()
        return gathered

    def _begin(self) -> None:
        """Let the other devices wait for all work of the first one."""
        if self._helpers:
            self._fork.start(self._helpers, self.first.stream)

    def _join(self) -> None:
        """Let the first device wait for all work of the others."""
        for helper in self._helpers:
            helper.join(self.first.stream)


def empty_bodies(count: int) -> BlockBodies:
    """Uninitialized bodies on the current device, with the layout of a state's columns."""
    rows, ticks = cuda.device_array((ROWS, count), np.float64), cuda.device_array((2, count), np.int64)
    return BlockBodies(rows, ticks[0], ticks[1], *(cuda.device_array(count, np.float64) for _ in range(3)))
