"""Engines in which a thread or a warp computes the forces of all N bodies on its own bodies: rows of the N × N pairs.

The sum of a row does not depend on other rows, so any launch may compute any rows. For large N, slabs of rows are launched
one after another; the bits do not depend on the slabs. A slab is a whole number of waves (as many blocks as the card holds
at a time), so that no multiprocessor is idle at its end. Several GPUs divide the rows.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nbody import compute
from nbody.forces.direct.gpu_pieces import SEGMENTS_FROM, interactions_per_piece
from nbody.forces.gpu_engine import KernelEngine
from nbody.forces.problem import Abilities
from nbody.parallel.team import bounds
from nbody.state.device import DeviceState
from nbody.state.partition import Worker


class ThreadBlock(NamedTuple):
    """A block of ``threads`` threads that computes the forces on ``bodies`` bodies."""

    threads: int
    bodies: int


class RowEngine(KernelEngine):
    """An engine whose ``build`` returns a kernel with the signature

        kernel(body, acceleration, start, acting, G, length2)        body, acceleration: (N, 4), see nbody/state/device.py

    that computes the forces of the first ``acting`` bodies on the bodies from ``start`` on; the size of the grid determines
    how many. The others have no mass.
    """

    can = Abilities(device="gpu", ranks=True, gpus=True, divided_from=SEGMENTS_FROM, massless=True, systems=True)

    _threads: ClassVar[ThreadBlock]

    def _block(self, count: int) -> ThreadBlock:
        """The size of the kernel's blocks for ``count`` particles."""
        return self._threads

    def _launch(self, kernel: Any, state: DeviceState, G: Any, length2: Any) -> None:
        transport = state.partition.transport
        first = Worker(transport.number, state.stream, state.body, state.acceleration, length2)
        transport.compute(state.progress.report, first, lambda worker: self._rows(kernel, worker, state, G))
        transport.complete(state.acceleration, self._row_bounds(state), state.stream)

    def _row_bounds(self, state: DeviceState, first: int = 0) -> list[int]:
        """The first row of each device or rank, and N; the rows before ``first`` belong to none."""
        size = self._block(state.count).bodies
        return [first + row for row in bounds(state.count - first, state.partition.transport.size, size)]

    def _rows(self, kernel: Any, worker: Worker, state: DeviceState, G: Any, first: int = 0) -> Iterator[int]:
        """Launch a device's part of the rows from ``first`` on; yields the interactions after each launch."""
        block, acting = self._block(state.count), state.partition.acting
        begin, end = self._row_bounds(state, first)[worker.number : worker.number + 2]
        arrays, rest = (worker.body, worker.acceleration), (np.int64(acting), G, worker.length2)
        rows = self._rows_per_slab(kernel, (*arrays, np.int64(0), *rest), end - begin, acting, block)
        for start in range(begin, end, rows):
            slab = min(rows, end - start)
            kernel[-(-slab // block.bodies), block.threads, worker.stream](*arrays, np.int64(start), *rest)
            worker.send_rows(state.acceleration, slice(start, start + slab))
            yield slab * acting

    def _rows_per_slab(self, kernel: Any, arguments: tuple, count: int, acting: int, block: ThreadBlock) -> int:
        """Rows per slab: all, if that is at most two pieces; else the number of waves that is nearest to one piece.

        The end of a slab costs little (one H200, N = 2²⁰, two slabs against one: ``gpu-unrolled`` 1.95e12 and 2.02e12
        interactions/s, ``gpu-tiled`` 2.02e12 and 2.03e12).
        """
        piece = interactions_per_piece(self._shape().dtype)
        if count * acting <= 2 * piece:
            return max(1, count)
        wave = compute.resident_blocks(kernel, arguments, block.threads) * block.bodies
        return wave * max(1, round(piece / (wave * acting)))
