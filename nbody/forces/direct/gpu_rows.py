"""Engines in which a thread or a warp computes the forces of all N bodies on its own bodies: rows of the N × N pairs.

The sum of a row does not depend on other rows, so any launch may compute any rows. For large N, slabs of rows are launched
one after another; the bits do not depend on the slabs. A slab is a whole number of waves (as many blocks as the card holds
at a time), so that no multiprocessor is idle at its end. (Several GPUs that all hold all positions could share the rows.)
"""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.direct.gpu_engine import Bodies, GpuEngine
from nbody.forces.direct.gpu_pieces import interactions_per_piece
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

    divides = True

    @abstractmethod
    def block(self, count: int) -> Block:
        """The size of the kernel's blocks for ``count`` particles."""

    def launch(self, kernel: Any, state: DeviceState, bodies: Bodies, G: Any, length2: Any, first: int = 0) -> None:
        """See :meth:`GpuEngine.launch`; computes the rows from ``first`` on."""
        count, block = state.count, self.block(state.count)
        arrays, rest = (bodies.body, bodies.acceleration), (np.int64(bodies.acting), G, length2)
        rows = self._rows(kernel, (*arrays, np.int64(0), *rest), count - first, bodies.acting, block)
        for start in range(first, count, rows):
            slab = min(rows, count - start)
            kernel[-(-slab // block.bodies), block.threads, state.stream](*arrays, np.int64(start), *rest)
            state.report(slab * bodies.acting)

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
