"""Several GPUs, or ranks with a GPU each, in one evaluation of the tree.

Every device builds the whole tree from the same bodies, and walks it for its share of the groups. The force on a group does
not depend on the shares, so the bits are the same for any number of devices; and no tree is sent, only bodies and
accelerations. A share is :data:`RUNS` runs of bodies in Morton order, so that each has about as many neighbours in dense
regions as the others. The groups and regions at the end of a run are walked by both devices.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.direct.gpu_helpers import Worker, launch_in_turns
from nbody.forces.tree.gpu_target import Share
from nbody.forces.tree.gpu_tree import Tree
from nbody.gpu import cuda
from nbody.state.device import DeviceState

RUNS = 16
"""Runs per device. Interactions of the busiest of two devices, divided by the mean, for five systems of 60 000 bodies
(spheres, discs, colliding galaxies): up to 1.23 with one run, 1.07 with 16; of eight devices up to 1.52 and 1.13."""

THREADS = 64 if gpu.SIMULATED else 256


@gpu.kernel
def pack(acceleration, index, rows, number, parts, chunk):
    """Collect the rows of a share, which are those ``index[k]`` of its targets k. A thread copies a row."""
    at = np.uint32(cuda.grid(1))
    k = np.uint32((at // chunk * parts + number) * chunk + at % chunk)
    if at < rows.shape[0] and k < index.shape[0]:
        a, b, c, d = gpu.row(acceleration, np.int64(index[k]))
        gpu.set_row(rows, np.int64(at), a, b, c, d)


@gpu.kernel
def unpack(rows, index, acceleration, first, parts, chunk):
    """Distribute the rows of the shares from number ``first`` on."""
    k = np.uint32(cuda.grid(1))
    if k < index.shape[0]:
        run = k // chunk
        number = run % parts
        if number >= first:
            at = number * (rows.shape[0] // parts) + run // parts * chunk + k % chunk
            a, b, c, d = gpu.row(rows, np.int64(at))
            gpu.set_row(acceleration, np.int64(index[k]), a, b, c, d)


class Part(NamedTuple):
    """What a device has for its share: a tree, the place of its rows, and the streams that copy accelerations, for which
    its walk waits."""

    tree: Tree
    rows: Any
    copying: list[gpu.Helper]


class Division:
    """The division of a state's tree.

    Args:
        state: with helpers, or with ranks.
        tree: that of the state's device.
        tree_on: makes one on the current device, for launches on a stream.
    """

    def __init__(self, state: DeviceState, tree: Tree, tree_on: Callable[[Any], Tree]) -> None:
        self._parts = (state.helpers or state.ranks).size
        self._chunk = max(tree.cells.region, -(-state.count // (self._parts * RUNS)))
        size = -(-state.count // (self._chunk * self._parts)) * self._chunk
        self._bounds = [size * part for part in range(self._parts + 1)]
        with gpu.out_of_memory(f"the forces on {state.count} particles", 4 * self._bounds[-1] * state.dtype.itemsize):
            self._rows = cuda.device_array((self._bounds[-1], 4), state.dtype)  # the shares, one after the other
        self._number = state.ranks.rank if state.ranks else 0
        self._part = self._part_of(self._number, tree)
        for worker in state.helpers.workers if state.helpers else ():
            copying = gpu.Helper(worker.helper.device)
            self._part.copying.append(copying)
            with worker.current():
                part = self._part_of(worker.number, tree_on(worker.stream))
                worker.part = part._replace(rows=worker.results(part.rows), copying=[copying])

    def counted(self, state: DeviceState) -> int:
        """The interactions that all devices have counted in the evaluation before the last one. Of ranks, this one's times
        their number."""
        if state.ranks:
            return int(self._part.tree.cells.last_work[0]) * self._parts
        parts = [self._part, *(worker.part for worker in state.helpers.workers)]
        return sum(int(part.tree.cells.last_work[0]) for part in parts)

    def compute(
        self, state: DeviceState, build: Callable[[Tree, Any], None], walk: Callable[[Tree, Any], None]
    ) -> None:
        """Enqueue an evaluation: ``build(tree, body)`` and ``walk(tree, acceleration)`` on each device."""
        body, acceleration, stream = state.body, state.acceleration, state.stream
        first = Worker(self._number, stream, body, acceleration, None, self._part)
        helping = state.helpers.begin(body, None, stream) if state.helpers else []
        for worker in helping:
            [copying] = worker.part.copying
            worker.helper.join(copying.stream)  # after the bodies, while the tree is built
            with worker.current():
                worker.acceleration.copy_to_device(acceleration, copying.stream)

        def pieces(worker: Worker) -> Iterator[int]:
            tree, rows, copying = worker.part
            build(tree, worker.body)
            yield 0
            for each in copying:  # the walk of the first device changes its accelerations
                each.join(worker.stream)
            walk(tree, worker.acceleration)
            if worker is not first or state.ranks:
                self._launch(pack, worker.stream, worker.acceleration, tree.cells.index, rows, worker.number)
                worker.send_results()
            yield 0

        launch_in_turns([first, *helping], pieces, state)
        if helping:
            state.helpers.end(stream)
        else:
            state.ranks.complete(self._rows, self._bounds, stream)
        self._launch(unpack, stream, self._rows, self._part.tree.cells.index, acceleration, 1 if helping else 0)

    def _launch(self, kernel: Any, stream: Any, source: Any, index: Any, target: Any, number: int) -> None:
        threads = target.shape[0] if kernel is pack else index.shape[0]
        numbers = np.uint32(number), np.uint32(self._parts), np.uint32(self._chunk)
        kernel[-(-threads // THREADS), THREADS, stream](source, index, target, *numbers)

    def _part_of(self, number: int, tree: Tree) -> Part:
        tree.cells.share = Share(number, self._parts, self._chunk)
        return Part(tree, self._rows[self._bounds[number] : self._bounds[number + 1]], [])
