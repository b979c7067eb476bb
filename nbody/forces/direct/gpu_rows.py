"""Engines in which a thread, or a warp, has bodies of its own and meets all others: rows of the square of pairs.

No row needs another one's sum, so any rows can be left to any launch: a large N is asked for in slabs of rows, one after
another, and the bits do not depend on them. Slabs are whole waves, as many blocks as the card holds at a time, so that none
of it waits at a slab's end. (Several GPUs, each with all positions, could share the rows out in the same way.)
"""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.direct.gpu_engine import GpuEngine
from nbody.forces.direct.gpu_pieces import interactions_a_piece
from nbody.state.device import DeviceState


class Block(NamedTuple):
    """A block of so many ``threads``, which computes the forces on so many ``bodies``."""

    threads: int
    bodies: int


class RowEngine(GpuEngine):
    """An engine whose ``build`` returns a kernel with the signature

        kernel(body, acceleration, start, G, length2)        body, acceleration: (N, 4), see nbody/state/device.py

    that computes the forces on the bodies from ``start`` on, as many as its grid has room for.
    """

    @abstractmethod
    def block(self, count: int) -> Block:
        """The blocks of the kernel for so many particles."""

    def launch(self, kernel: Any, state: DeviceState, G: Any, length2: Any) -> None:
        """See :meth:`GpuEngine.launch`."""
        count, block = state.count, self.block(state.count)
        arguments = state.body, state.acceleration, np.int64(0), G, length2
        rows = self._rows(kernel, arguments, count, block)
        for start in range(0, count, rows):
            here = min(rows, count - start)
            kernel[-(-here // block.bodies), block.threads, state.stream](*arguments[:2], np.int64(start), G, length2)
            state.report(here * count)

    def _rows(self, kernel: Any, arguments: tuple, count: int, block: Block) -> int:
        """Rows of a slab: all, if they are two pieces; else the waves that come nearest to a piece. (What a slab's end
        costs is seen only where they are few: one H200, N = 2²⁰, two slabs or one: ``gpu-unrolled`` 1.95e12 and 2.02e12
        interactions/s, ``gpu-tiled`` 2.02e12 and 2.03e12.)"""
        piece = interactions_a_piece(self.shape().dtype)
        if count * count <= 2 * piece:
            return count
        wave = gpu.resident_blocks(kernel, arguments, block.threads) * block.bodies
        return wave * max(1, round(piece / (wave * count)))
