"""Each pair once: by Newton's third law, one reciprocal square root serves both bodies of a pair.

A warp keeps 32 × BODIES bodies in registers, with their sums: the rows. 32 other bodies, the columns, sit one in a lane,
with their sums, and move on by a lane each turn, by shuffles. After 32 turns every row has met every column and each
column is back in its lane. The warps of a block take turns at the columns of a chunk, so that no two add to one sum at a
time. The kernel is in :mod:`nbody.forces.direct.gpu_pairs`; which block works on what is the matter of
:mod:`nbody.forces.direct.gpu_triangle`.

One H200, 3-D, Plummer's softening, interactions/s: float32 3.16e12 at N = 262144 and 3.50e12 with equal masses
(``gpu-tiled``: 2.00e12), 2.89e12 at 65536 and 2.44e12 at 20480; mixed 2.23e12 and float64 1.15e12 at 262144. Median
force error at 262144, of the positions as they were given: float32 9e-8, mixed 3e-8, where what is left is the
rounding of single pairs.
"""

import math
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.direct.gpu_engine import GpuEngine, Shape
from nbody.forces.direct.gpu_pairs import build, masses_of
from nbody.forces.direct.gpu_triangle import (
    LANES,
    SLICES,
    Buffers,
    Panel,
    Tiling,
    build_sum,
    panels,
    room_on_card,
    shapes_of_buffers,
)
from nbody.particles import Particles
from nbody.state import Want, itemsize
from nbody.state.device import DeviceState


@cache
def pairs_kernel(shape: Shape, tiling: Tiling, masses: str) -> Any:
    """:func:`build`, kept for the rest of the process."""
    return build(shape, tiling, masses)


@cache
def sum_kernel(tiling: Tiling, masses: str, real: type, of_each: bool) -> Any:
    """:func:`~nbody.forces.direct.gpu_triangle.build_sum`, kept for the rest of the process."""
    return build_sum(tiling, masses, real, of_each)


def tiling_for(count: int, precision: str, masses: str = "product") -> Tiling:
    """The tiling that was fastest on an H200: few warps a block share the work of a small N more evenly, many need fewer
    partial sums."""
    if precision == "float32":
        bodies = 22 if masses == "equal" else 18
        return Tiling(1, 10) if count <= 32768 else Tiling(2, bodies) if count <= 131072 else Tiling(4, bodies)
    if precision == "mixed":
        return Tiling(1, 9) if count <= 32768 else Tiling(4, 10)
    return Tiling(2, 4) if count <= 32768 else Tiling(4, 6)


class Plan(NamedTuple):
    """How the pairs of a state are worked on, and where their partial sums are kept: its workspace."""

    masses: str
    tiling: Tiling
    panels: list[Panel]
    buffers: Buffers


class SymmetricEngine(GpuEngine):
    """Each pair once: Newton's third law, bodies in registers, sums that travel by shuffles.

    The panels of a state are independent of each other, and their accelerations add up: several GPUs, each with all
    positions, could share them out.
    """

    name = "gpu-symmetric"
    precisions: ClassVar[tuple[str, ...]] = ("float32", "mixed", "float64")
    build = staticmethod(build)
    interactions_a_root = 2
    separate_energy = True
    contends = range(2048, 1 << 62)  # 1024 bodies are 68 units of work, too few warps to fill a card
    pairs = staticmethod(pairs_kernel)
    """The kernel of the pairs for a shape, a tiling and a form of the masses."""

    def load(self, particles: Particles) -> DeviceState:
        """See :meth:`Engine.load`. Chooses how pairs are weighted, and takes memory for the partial sums."""
        state, columns = super().load(particles), self.shape().dtype
        masses = masses_of(particles, self.gravity, self.shape().real)
        tiling = tiling_for(state.count, self.precision, masses)
        room = room_on_card(tiling, columns, self._resident_blocks(tiling, masses))
        work = list(panels(state.count, tiling, columns.itemsize, room))
        state.workspace = Plan(masses, tiling, work, Buffers(state.count, tiling, self.dtype, columns, work[0]))
        return state

    def _resident_blocks(self, tiling: Tiling, masses: str) -> int:
        """Blocks that fit on the card at a time of the kernel, with the energy's sums and without: one wave of them shares
        the work out evenly, and the bits must not depend on what is asked for. (With 16 a multiprocessor, as many as there
        is room for without the energy, where there was room for 14 with it, the lecture's disc took 191 µs with it, 138
        without; 20480 bodies, one H200.)"""
        return min(self._resident(want, tiling, masses) for want in (Want.ACCELERATION, Want.ENERGY))

    def _resident(self, want: Want, tiling: Tiling, masses: str) -> int:
        shape = self.shape(want)
        body, rows, columns = (
            np.empty((1, 4), self.dtype), np.empty((1, 1, 4), self.dtype), np.empty((1, 1, 4), shape.dtype)
        )  # fmt: skip
        arguments = (body, rows, columns, shape.real(0), np.int64(0), np.int64(0), np.int64(0), np.uint32(0))
        return gpu.resident_blocks(self.pairs(shape, tiling, masses), arguments, tiling.chunk)

    def kernel(self, want: Want, state: DeviceState) -> Any:
        """The kernel of the pairs, the one that adds their partial sums, and how many components these have."""
        shape, plan = self.shape(want), state.workspace
        add = sum_kernel(plan.tiling, plan.masses, shape.real, want == Want.POTENTIAL)
        return self.pairs(shape, plan.tiling, plan.masses), add, 3 if want is Want.ACCELERATION else 4

    def launch(self, kernel: Any, state: DeviceState, G: Any, length2: Any) -> None:
        """See :meth:`GpuEngine.launch`."""
        pairs, add, components = kernel
        plan: Plan = state.workspace
        rows, columns, threads = plan.buffers.rows, plan.buffers.columns, plan.tiling.chunk
        sum_blocks, units = (-(-state.count // LANES), components), sum(panel.units for panel in plan.panels)
        for panel in plan.panels:
            first, last, blocks = np.int64(panel.first), np.int64(panel.last), np.int64(panel.blocks)
            pairs[panel.blocks, threads, state.stream](state.body, rows, columns, length2, first, last, *panel.shares)
            add[sum_blocks, (LANES, SLICES), state.stream](
                state.body, rows, columns, state.acceleration, G, first, last, blocks
            )
            state.report(state.count**2 * panel.units // units)

    @classmethod
    def bytes_needed(cls, particles: int, precision: str) -> int:
        """See :meth:`Engine.bytes_needed`: the state, and the partial sums of its largest panel."""
        columns = np.dtype(np.float64 if precision == "float64" else np.float32)
        tiling = tiling_for(particles, precision)
        largest = next(panels(particles, tiling, columns.itemsize, room_on_card(tiling, columns)))
        rows, sums = shapes_of_buffers(particles, tiling, largest)
        partial = math.prod(rows) * itemsize(precision) + math.prod(sums) * columns.itemsize
        return super().bytes_needed(particles, precision) + partial
