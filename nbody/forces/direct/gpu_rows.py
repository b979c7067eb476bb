"""Engines in which a thread or a warp computes the forces of all N bodies on its own bodies: rows of the N × N pairs.

The sum of a row does not depend on other rows, so any launch may compute any rows. For large N, slabs of rows are launched
one after another; the bits do not depend on the slabs. A slab is a whole number of waves (as many blocks as the card holds
at a time), so that no multiprocessor is idle at its end. Several GPUs divide the rows.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.direct.gpu_engine import Bodies, GpuEngine
from nbody.forces.direct.gpu_helpers import Worker, bounds, launch_in_turns
from nbody.forces.direct.gpu_pieces import interactions_per_piece
from nbody.forces.problem import Abilities
from nbody.state.device import DeviceState


class Block(NamedTuple):
    """A block of ``threads`` threads that computes the forces on ``bodies`` bodies."""

    threads: int
    bodies: int


class RowEngine(GpuEngine):
    """An engine whose ``build`` returns a kernel with the signature

        kernel(body, acceleration, start, acting, G, length2)        body, acceleration: (N, 4), see nbody/state/device.py

    that computes the forces of the first ``acting`` bodies on the bodies from ``start`` on; the size of the grid determines
    how many. The others have no mass.
    """

    can = Abilities(ranks=True, gpus=True)
    _skips_massless = True

    @abstractmethod
    def block(self, count: int) -> Block:
        """The size of the kernel's blocks for ``count`` particles."""

    def launch(self, kernel: Any, state: DeviceState, bodies: Bodies, G: Any, length2: Any) -> None:
        number = state.ranks.rank if state.ranks else 0
        workers = [Worker(number, state.stream, bodies.body, bodies.acceleration, length2)]
        if state.helpers:
            workers += state.helpers.begin(bodies.body, length2, state.stream)
        launch_in_turns(workers, lambda worker: self.rows(kernel, worker, state, bodies, G), state)
        if state.helpers:
            state.helpers.end(state.stream)
        if state.ranks:
            state.ranks.complete(bodies.acceleration, self.row_bounds(state), state.stream)

    def row_bounds(self, state: DeviceState, first: int = 0) -> list[int]:
        """The first row of each device or rank, and N; the rows before ``first`` belong to none."""
        dividing, size = state.helpers or state.ranks, self.block(state.count).bodies
        return [first + row for row in bounds(state.count - first, dividing.size if dividing else 1, size)]

    def rows(
        self, kernel: Any, worker: Worker, state: DeviceState, bodies: Bodies, G: Any, first: int = 0
    ) -> Iterator[int]:
        """Launch a device's part of the rows from ``first`` on; yields the interactions after each launch."""
        block = self.block(state.count)
        begin, end = self.row_bounds(state, first)[worker.number : worker.number + 2]
        arrays, rest = (worker.body, worker.acceleration), (np.int64(bodies.acting), G, worker.length2)
        rows = self._rows(kernel, (*arrays, np.int64(0), *rest), end - begin, bodies.acting, block)
        for start in range(begin, end, rows):
            slab = min(rows, end - start)
            kernel[-(-slab // block.bodies), block.threads, worker.stream](*arrays, np.int64(start), *rest)
            worker.send_rows(bodies.acceleration, slice(start, start + slab))
            yield slab * bodies.acting

    def _rows(self, kernel: Any, arguments: tuple, count: int, acting: int, block: Block) -> int:
        """Rows per slab: all, if that is at most two pieces; else the number of waves that is nearest to one piece.

        The end of a slab costs little (one H200, N = 2²⁰, two slabs against one: ``gpu-unrolled`` 1.95e12 and 2.02e12
        interactions/s, ``gpu-tiled`` 2.02e12 and 2.03e12).
        """
        piece = interactions_per_piece(self.shape().dtype)
        if count * acting <= 2 * piece:
            return max(1, count)
        wave = gpu.resident_blocks(kernel, arguments, block.threads) * block.bodies
        return wave * max(1, round(piece / (wave * acting)))
