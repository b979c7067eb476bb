"""Several GPUs, or ranks with a GPU each, in one evaluation of the tree.

Every device builds the whole tree from the same bodies, and walks it for its part of the groups. The force on a group does
not depend on the parts, so the bits are the same for any number of devices; and no tree is sent, only bodies and
accelerations. A part is :data:`RUNS` runs of bodies in Morton order, so that each has about as many neighbours in dense
regions as the others. The groups and regions at the end of a run are walked by both devices.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.forces.tree.octree.groups_gpu import TargetRuns
from nbody.forces.tree.tree_gpu import DeviceTree
from nbody.state.device import DeviceArray, DeviceState
from nbody.state.partition import Worker

RUNS = 16
"""Runs per device. Interactions of the busiest of two devices, divided by the mean, for five systems of 60 000 bodies
(spheres, discs, colliding galaxies): up to 1.23 with one run, 1.07 with 16; of eight devices up to 1.52 and 1.13."""

THREADS = 64 if compute.SIMULATED else 256


@compute.kernel("gpu")
def pack(acceleration, index, results, number, parts, run):
    """Collect the rows of a part, which are those ``index[k]`` of its targets k. A thread copies a row."""
    at = np.uint32(cuda.grid(1))
    k = np.uint32((at // run * parts + number) * run + at % run)
    if at < results.shape[0] and k < index.shape[0]:
        a, b, c, d = compute.row(acceleration, np.int64(index[k]))
        compute.set_row(results, np.int64(at), a, b, c, d)


@compute.kernel("gpu")
def unpack(results, index, acceleration, first, parts, run):
    """Distribute the rows of the parts from number ``first`` on."""
    k = np.uint32(cuda.grid(1))
    if k < index.shape[0]:
        number = k // run % parts
        if number >= first:
            at = number * (results.shape[0] // parts) + k // run // parts * run + k % run
            a, b, c, d = compute.row(results, np.int64(at))
            compute.set_row(acceleration, np.int64(index[k]), a, b, c, d)


class TreePart(NamedTuple):
    """What a helper has for its part: a tree, the place of its results, and the stream that copies accelerations, for which
    its walk and that of the first device wait."""

    tree: DeviceTree
    results: DeviceArray
    copying: compute.Helper


Build = Callable[[DeviceTree, Any], None]
Walk = Callable[[DeviceTree, Any], None]


class TreePartition:
    """The partition of a state's tree.

    Args:
        state: whose transport has several parts.
        tree: that of the state's device.
        tree_on: makes one on the current device, for launches on a stream.
    """

    def __init__(self, state: DeviceState, tree: DeviceTree, tree_on: Callable[[Any], DeviceTree]) -> None:
        self._devices, self._number = state.partition.transport.size, state.partition.transport.number
        self._run = max(tree.cells.region, -(-state.count // (self._devices * RUNS)))
        size = -(-state.count // (self._run * self._devices)) * self._run
        self._bounds = [size * number for number in range(self._devices + 1)]
        with compute.out_of_memory(f"the forces on {state.count} particles", 4 * self._bounds[-1] * state.dtype.itemsize):
            self._results = cuda.device_array((self._bounds[-1], 4), state.dtype)  # the parts, one after the other
        self._begun: set[Any] = set()
        self._graphs: dict[Any, compute.Graph] = {}
        tree.cells.runs = self._target_runs(self._number)
        for helper in state.partition.transport.helpers:
            with helper.current():
                results = helper.results(self._of(helper.number))
                helper.part = TreePart(tree_on(helper.stream), results, compute.Helper(helper.gpu.device))
            helper.part.tree.cells.runs = self._target_runs(helper.number)

    def counted(self, state: DeviceState) -> int:
        """The interactions that all devices counted in the evaluation before the last one. Of ranks, this one's times their
        number."""
        counted = int(state.workspace.cells.last_work[0])
        if state.partition.transport.ranks > 1:
            return counted * self._devices
        return counted + sum(int(helper.part.tree.cells.last_work[0]) for helper in state.partition.transport.helpers)

    def compute(self, state: DeviceState, build: Build, walk: Walk, what: Any) -> None:
        """Enqueue an evaluation: ``build(tree, body)`` and ``walk(tree, acceleration)`` on each device.

        From the third evaluation for the same ``what`` on this replays a graph if the devices are of one process, unless the
        launches are being recorded in another.
        """
        if compute.SIMULATED or state.partition.transport.ranks > 1 or compute.is_recording(state.stream):
            self._launch(state, build, walk)
        elif what in self._graphs:
            self._graphs[what].replay()
        else:
            self._launch(state, build, walk)
            if what in self._begun:
                self._graphs[what] = compute.Graph(state.stream, lambda: self._launch(state, build, walk))
            self._begun.add(what)

    def _launch(self, state: DeviceState, build: Build, walk: Walk) -> None:
        acceleration, stream, own = state.acceleration, state.stream, state.workspace
        transport = state.partition.transport
        first = Worker(self._number, stream, state.body, acceleration, None)

        def pieces(worker: Worker) -> Iterator[int]:
            if worker is not first:
                copying = worker.part.copying
                worker.join(copying.stream)  # after the bodies, while the tree is built
                worker.acceleration.copy_to_device(acceleration, copying.stream)
            tree = own if worker is first else worker.part.tree
            build(tree, worker.body)
            yield 0
            for each in transport.helpers if worker is first else [worker]:  # the first walk changes accelerations
                each.part.copying.join(worker.stream)
            walk(tree, worker.acceleration)
            if worker is not first or transport.ranks > 1:
                results = self._of(self._number) if worker is first else worker.part.results
                self._copy(pack, worker.stream, worker.acceleration, tree.cells.index, results, worker.number)
                worker.send_results()
            yield 0

        transport.compute(state.progress.report, first, pieces)
        transport.complete(self._results, self._bounds, stream)
        self._copy(unpack, stream, self._results, own.cells.index, acceleration, 1 if transport.helpers else 0)

    def _copy(self, kernel: Any, stream: Any, source: Any, index: Any, target: Any, number: int) -> None:
        threads = target.shape[0] if kernel is pack else index.shape[0]
        numbers = np.uint32(number), np.uint32(self._devices), np.uint32(self._run)
        kernel[-(-threads // THREADS), THREADS, stream](source, index, target, *numbers)

    def _target_runs(self, number: int) -> TargetRuns:
        return TargetRuns(number, self._devices, self._run)

    def _of(self, number: int) -> Any:
        return self._results[self._bounds[number] : self._bounds[number + 1]]
