"""Several GPUs, or ranks with a GPU each, in one evaluation of the tree.

Every device builds the whole tree from the same bodies, and walks it for its share of the groups. The force on a group does
not depend on the shares, so the bits are the same for any number of devices; and no tree is sent, only bodies and
accelerations. A share is :data:`RUNS` runs of bodies in Morton order, so that each has about as many neighbours in dense
regions as the others. The groups and regions at the end of a run are walked by both devices.
"""

from collections.abc import Callable, Iterator
from typing import Any

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
    """Collect the rows of a share, which are those ``index[k]`` of its targets k. A thread copies one number."""
    e = cuda.grid(1)
    at, column = e // 4, e % 4
    k = (at // chunk * parts + number) * chunk + at % chunk
    if at < rows.shape[0] and k < index.shape[0]:
        rows[at, column] = acceleration[index[k], column]


@gpu.kernel
def unpack(rows, index, acceleration, first, parts, chunk):
    """Distribute the rows of the shares from number ``first`` on."""
    e = cuda.grid(1)
    k, column = e // 4, e % 4
    if k < index.shape[0]:
        run = k // chunk
        number = run % parts
        if number >= first:
            of_share = rows.shape[0] // parts
            acceleration[index[k], column] = rows[number * of_share + run // parts * chunk + k % chunk, column]


class Division:
    """The division of a state's tree.

    Args:
        state: with helpers, or with ranks.
        tree: that of the state's device.
        tree_on: makes one on the current device, for launches on a stream.
    """

    def __init__(self, state: DeviceState, tree: Tree, tree_on: Callable[[Any], Tree]) -> None:
        dividing, self._tree = state.helpers or state.ranks, tree
        self._parts, self._first = dividing.size, state.ranks.rank if state.ranks else 0
        self._chunk = max(tree.cells.region, -(-state.count // (self._parts * RUNS)))
        runs = -(-state.count // (self._chunk * self._parts))
        self.bounds = [runs * self._chunk * part for part in range(self._parts + 1)]
        """The first row of each share, and their number."""
        with gpu.out_of_memory(
            f"the accelerations of {state.count} particles", 4 * self.bounds[-1] * state.dtype.itemsize
        ):
            self._rows = cuda.device_array((self.bounds[-1], 4), state.dtype)
        tree.cells.share = self._share(self._first)
        for worker in state.helpers.workers if state.helpers else ():
            with worker.current():
                helping = tree_on(worker.stream)
                helping.cells.share = self._share(worker.number)
                worker.part = helping, worker.results(self._rows_of(worker.number))

    def counted(self, state: DeviceState) -> int:
        """The interactions that all devices have counted in the evaluation before the last one. Of ranks, this one's times
        their number."""
        own = int(self._tree.cells.last_work[0])
        if state.ranks:
            return own * self._parts
        return own + sum(int(worker.part[0].cells.last_work[0]) for worker in state.helpers.workers)

    def compute(
        self, state: DeviceState, build: Callable[[Tree, Any], None], walk: Callable[[Tree, Any], None]
    ) -> None:
        """Enqueue an evaluation: ``build(tree, body)`` and ``walk(tree, acceleration)`` on each device."""
        body, acceleration, stream = state.body, state.acceleration, state.stream
        first = Worker(self._first, stream, body, acceleration, None, (self._tree, self._rows_of(self._first)))
        helping = state.helpers.begin(body, None, stream) if state.helpers else []
        for worker in helping:
            worker.read_accelerations(acceleration)

        def pieces(worker: Worker) -> Iterator[int]:
            tree, rows = worker.part
            build(tree, worker.body)
            yield 0
            if worker is first:  # its accelerations change now
                for other in helping:
                    other.helper.wait(stream)
            walk(tree, worker.acceleration)
            if worker is not first or state.ranks:
                self._launch(
                    pack, rows.shape[0], worker.stream, worker.acceleration, tree.cells.index, rows, worker.number
                )
                worker.send_results()
            yield 0

        launch_in_turns([first, *helping], pieces, state)
        if helping:
            state.helpers.end(stream)
        else:
            state.ranks.complete(self._rows, self.bounds, stream)
        of_others = 1 if helping else 0
        self._launch(unpack, state.count, stream, self._rows, self._tree.cells.index, acceleration, of_others)

    def _launch(self, kernel: Any, count: int, stream: Any, *arguments: Any) -> None:
        *arrays, number = arguments
        numbers = np.int64(number), np.int64(self._parts), np.int64(self._chunk)
        kernel[-(-4 * count // THREADS), THREADS, stream](*arrays, *numbers)

    def _share(self, number: int) -> Share:
        return Share(number, self._parts, self._chunk)

    def _rows_of(self, number: int) -> Any:
        return self._rows[self.bounds[number] : self.bounds[number + 1]]
