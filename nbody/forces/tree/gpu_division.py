"""Several GPUs, or ranks with a GPU each, in one evaluation of the tree.

Every device builds the whole tree from the same bodies, and walks it for its share of the groups. The force on a group does
not depend on the shares, so the bits are the same for any number of devices; and no tree is sent, only bodies and
accelerations. A share is :data:`RUNS` runs of targets (all bodies, or those whose forces are wanted) in Morton order, so
that each has about as many neighbours in dense regions as the others. The groups and regions at the end of a run are walked
by both devices.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.direct.gpu_helpers import Worker, launch_in_turns
from nbody.forces.tree.gpu_target import Share
from nbody.forces.tree.gpu_tree import Cells, Tree
from nbody.gpu import cuda
from nbody.state.device import DeviceState

RUNS = 16
"""Runs per device. Interactions of the busiest of two devices, divided by the mean, for five systems of 60 000 bodies
(spheres, discs, colliding galaxies): up to 1.23 with one run, 1.07 with 16; of eight devices up to 1.52 and 1.13."""

THREADS = 64 if gpu.SIMULATED else 256


@gpu.kernel
def pack(acceleration, index, results, number, parts, run):
    """Collect the rows of a share, which are those ``index[k]`` of its targets k. A thread copies a row."""
    at = np.uint32(cuda.grid(1))
    k = np.uint32((at // run * parts + number) * run + at % run)
    if at < results.shape[0] and k < index.shape[0]:
        a, b, c, d = gpu.row(acceleration, np.int64(index[k]))
        gpu.set_row(results, np.int64(at), a, b, c, d)


@gpu.kernel
def unpack(results, index, acceleration, first, parts, run):
    """Distribute the rows of the shares from number ``first`` on."""
    k = np.uint32(cuda.grid(1))
    if k < index.shape[0]:
        number = k // run % parts
        if number >= first:
            at = number * (results.shape[0] // parts) + k // run // parts * run + k % run
            a, b, c, d = gpu.row(results, np.int64(at))
            gpu.set_row(acceleration, np.int64(index[k]), a, b, c, d)


class Part(NamedTuple):
    """What a device has for its share.

    Attributes:
        tree: the tree over all bodies.
        results: a place for the accelerations of its targets, if it is a helper.
        rows: the targets, if they are some of the bodies.
        copying: streams that copy accelerations, for which its walk waits.
    """

    tree: Tree
    results: Any
    rows: Any
    copying: list[gpu.Helper]


Prepare = Callable[[Tree, Any, Any], Cells]
Walk = Callable[[Tree, Cells, Any, Share], None]


class Division:
    """The division of a state's tree.

    Args:
        state: with helpers, or with ranks.
        tree: that of the state's device.
        tree_on: makes one on the current device, for launches on a stream.
    """

    def __init__(self, state: DeviceState, tree: Tree, tree_on: Callable[[Any], Tree]) -> None:
        self._devices, self._region = (state.helpers or state.ranks).size, tree.cells.region
        self._largest, _ = self._shares(state.count)
        rows = self._largest * self._devices
        with gpu.out_of_memory(f"the forces on {state.count} particles", 4 * rows * state.dtype.itemsize):
            self._results = cuda.device_array((rows, 4), state.dtype)  # the shares, one after the other
        self._number = state.ranks.rank if state.ranks else 0
        self._part = Part(tree, None, None, [])
        self._graphs: dict[Any, gpu.Graph] = {}
        for worker in state.helpers.workers if state.helpers else ():
            copying = gpu.Helper(worker.helper.device)
            self._part.copying.append(copying)
            with worker.current():
                own = worker.results(self._results[worker.number * self._largest :][: self._largest])
                rows = cuda.device_array(state.count, np.int32)
                worker.part = Part(tree_on(worker.stream), own, rows, [copying])

    def _shares(self, targets: int) -> tuple[int, int]:
        """Targets of a share, and of a run. (No number of targets has larger shares than all bodies have.)"""
        run = max(self._region, -(-targets // (self._devices * RUNS)))
        return -(-targets // (run * self._devices)) * run, run

    def counted(self, state: Any) -> int:
        """The interactions that all devices counted in the evaluation before the last one, of all bodies. Of ranks, this
        one's times their number."""
        if state.ranks:
            return int(self._part.tree.cells.last_work[0]) * self._devices
        parts = [self._part, *(worker.part for worker in state.helpers.workers)]
        return sum(int(part.tree.cells.last_work[0]) for part in parts)

    def compute(self, state: DeviceState, prepare: Prepare, walk: Walk, what: Any) -> None:
        """Enqueue an evaluation of all bodies, as :meth:`launch` does. From the second call for the same ``what`` on this
        replays a graph if the devices are of one process, unless the launches are being recorded in another."""

        def launch() -> None:
            self.launch(state, prepare, walk)

        if gpu.SIMULATED or state.ranks or gpu.is_recording(state.stream):
            launch()
        elif what in self._graphs:
            self._graphs[what].replay()
        else:
            launch()
            self._graphs[what] = gpu.Graph(state.stream, launch)

    def launch(self, state: DeviceState, prepare: Prepare, walk: Walk, rows: Any = None) -> None:
        """Enqueue an evaluation: on each device ``cells = prepare(tree, body, rows)`` and ``walk(tree, cells, acceleration,
        share)``. The targets are the bodies ``rows`` (T,), an array on the device, or all."""
        body, acceleration, stream = state.body, state.acceleration, state.stream
        targets = state.count if rows is None else rows.shape[0]
        size, run = self._shares(targets)
        results = self._results if state.helpers else self._results[: size * self._devices]
        first = Worker(self._number, stream, body, acceleration, None, self._part._replace(rows=rows))
        helping = state.helpers.begin(body, None, stream) if state.helpers else []
        for worker in helping:
            [copying] = worker.part.copying
            worker.helper.join(copying.stream)  # after the bodies, while the tree is built
            with worker.current():
                worker.acceleration.copy_to_device(acceleration, copying.stream)
                if rows is not None:
                    worker.part.rows[:targets].copy_to_device(rows, worker.stream)
        index: list[Any] = []  # of the targets, on each device

        def pieces(worker: Worker) -> Iterator[int]:
            tree, own, chosen, copying = worker.part
            cells = prepare(tree, worker.body, None if rows is None else chosen[:targets])
            index.append(cells.index)
            yield 0
            for each in copying:  # the walk of the first device changes its accelerations
                each.join(worker.stream)
            walk(tree, cells, worker.acceleration, Share(worker.number, self._devices, run))
            if worker is not first or state.ranks:
                own = results[size * worker.number :] if own is None else own
                self._launch(pack, worker.stream, worker.acceleration, cells.index, own[:size], worker.number, run)
                worker.send_results()
            yield 0

        launch_in_turns([first, *helping], pieces, state)
        if helping:
            state.helpers.end(stream)
        else:
            state.ranks.complete(results, [size * number for number in range(self._devices + 1)], stream)
        self._launch(unpack, stream, results, index[0], acceleration, 1 if helping else 0, run)

    def _launch(self, kernel: Any, stream: Any, source: Any, index: Any, target: Any, number: int, run: int) -> None:
        threads = target.shape[0] if kernel is pack else index.shape[0]
        numbers = np.uint32(number), np.uint32(self._devices), np.uint32(run)
        kernel[-(-threads // THREADS), THREADS, stream](source, index, target, *numbers)
