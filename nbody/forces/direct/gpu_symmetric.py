"""Each pair once: by Newton's third law, one reciprocal square root serves both bodies of a pair.

A warp holds 32 × BODIES bodies and their sums in registers: the rows. 32 other bodies and their sums, the columns, are held
one per lane, and shuffles move them to the next lane after each iteration. After 32 iterations every pair of a row and a
column is computed, and each column is back in its lane. The warps of a block take the columns of a chunk in turn, so that
no two warps add to the same sum at the same time. The kernel is in :mod:`nbody.forces.direct.gpu_pairs`;
:mod:`nbody.forces.direct.gpu_triangle` divides the pairs among the blocks.

One H200, 3-D, Plummer's softening, interactions/s: float32 3.16e12 at N = 262144 and 3.50e12 with equal masses
(``gpu-tiled``: 2.00e12), 2.89e12 at 65536 and 2.44e12 at 20480; mixed 2.23e12 and float64 1.15e12 at 262144. Median
force error at 262144, for the positions as stored: float32 9e-8, mixed 3e-8 (the rounding of single pairs).
"""

import math
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.direct.gpu_engine import Bodies, GpuEngine, Shape
from nbody.forces.direct.gpu_pairs import build, masses_of
from nbody.forces.direct.gpu_tiled import TiledEngine
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
    """:func:`build`, cached for the rest of the process."""
    return build(shape, tiling, masses)


@cache
def sum_kernel(tiling: Tiling, masses: str, real: type, of_each: bool) -> Any:
    """:func:`~nbody.forces.direct.gpu_triangle.build_sum`, cached for the rest of the process."""
    return build_sum(tiling, masses, real, of_each)


def tiling_for(count: int, precision: str, masses: str = "product", per_species: bool = False) -> Tiling:
    """The fastest tiling on an H200: few warps per block divide the work of a small N more evenly; many warps need fewer
    partial sums. (With a softening length per body the registers hold 16 bodies.)"""
    if precision == "float32":
        bodies = 16 if per_species else 22 if masses == "equal" else 18
        return Tiling(1, 10) if count <= 32768 else Tiling(2, bodies) if count <= 131072 else Tiling(4, bodies)
    if precision == "mixed":
        return Tiling(1, 9) if count <= 32768 else Tiling(4, 10)
    return Tiling(2, 4) if count <= 32768 else Tiling(4, 6)


class Plan(NamedTuple):
    """How the pairs of a state's acting bodies are computed, and the buffers of their partial sums: the workspace of the
    state."""

    masses: str
    tiling: Tiling
    panels: list[Panel]
    buffers: Buffers


class SymmetricEngine(GpuEngine):
    """Each pair once: Newton's third law, bodies in registers, column sums passed on by shuffles. If many bodies have no
    mass, each pair of the others once, and the rows of those without mass by ``gpu-tiled`` (in float64 if mixed).

    The panels of a state are independent of each other, and the acceleration is the sum over the panels: several GPUs that
    all hold all positions could share them.
    """

    name = "gpu-symmetric"
    precisions: ClassVar[tuple[str, ...]] = ("float32", "mixed", "float64")
    build = staticmethod(build)
    softenings = True
    divides = True
    interactions_per_root = 2
    separate_energy = True
    contends = range(2048, 1 << 62)  # 1024 bodies are 68 units of work: too few warps for a card
    pairs = staticmethod(pairs_kernel)
    """The pair kernel for a shape, a tiling and a form of the masses."""

    def load(self, particles: Particles) -> DeviceState:
        """See :meth:`Engine.load`. Chooses how pairs are weighted, and allocates the partial sums."""
        state, columns = super().load(particles), self.shape().dtype
        count = self.acting(state)
        if state.division:
            some = state.division.massive
            particles = Particles(particles.mass[some], particles.position[some], particles.velocity[some])
        masses = masses_of(particles, self.gravity, self.shape().real)
        tiling = tiling_for(count, self.precision, masses, self.gravity.per_species)
        room = room_on_card(tiling, columns, self._resident_blocks(tiling, masses))
        work = list(panels(count, tiling, columns.itemsize, room))
        state.workspace = Plan(masses, tiling, work, Buffers(count, tiling, self.dtype, columns, work[0]))
        return state

    def _resident_blocks(self, tiling: Tiling, masses: str) -> int:
        """Blocks of the pair kernel that the card holds at a time, both with and without the energy's sums: one wave of
        them divides the work evenly, and the bits must not depend on whether the energy is computed. (A second, partial
        wave is slow: with blocks for 16 per multiprocessor where 14 fit, the lecture's disc took 191 µs instead of 138;
        20480 bodies, one H200.)"""
        return min(self._resident(want, tiling, masses) for want in (Want.ACCELERATION, Want.ENERGY))

    def _resident(self, want: Want, tiling: Tiling, masses: str) -> int:
        shape = self.shape(want)
        body, rows, columns = (
            np.empty((1, 4), self.dtype), np.empty((1, 1, 4), self.dtype), np.empty((1, 1, 4), shape.dtype)
        )  # fmt: skip
        length2 = np.empty(1, shape.dtype) if shape.per_species else shape.real(0)
        arguments = (body, rows, columns, length2, np.int64(0), np.int64(0), np.int64(0), np.uint32(0))
        return gpu.resident_blocks(self.pairs(shape, tiling, masses), arguments, tiling.chunk)

    def kernel(self, want: Want, state: DeviceState) -> Any:
        """The pair kernel, the kernel that adds the partial sums, and the number of components of these sums."""
        shape, plan = self.shape(want), state.workspace
        add = sum_kernel(plan.tiling, plan.masses, shape.real, want == Want.POTENTIAL)
        return self.pairs(shape, plan.tiling, plan.masses), add, 3 if want is Want.ACCELERATION else 4

    def launch(self, kernel: Any, state: DeviceState, bodies: Bodies, G: Any, length2: Any) -> None:
        """See :meth:`GpuEngine.launch`."""
        pairs, add, components = kernel
        plan, count = state.workspace, bodies.acting
        body, acceleration = bodies.body, bodies.acceleration
        if state.division:
            body, acceleration = body[:count], acceleration[:count]
        rows, columns, threads = plan.buffers.rows, plan.buffers.columns, plan.tiling.chunk
        sum_blocks, units = (-(-count // LANES), components), sum(panel.units for panel in plan.panels)
        for panel in plan.panels:
            first, last, blocks = np.int64(panel.first), np.int64(panel.last), np.int64(panel.blocks)
            pairs[panel.blocks, threads, state.stream](body, rows, columns, length2, first, last, *panel.shares)
            add[sum_blocks, (LANES, SLICES), state.stream](body, rows, columns, acceleration, G, first, last, blocks)
            state.report(count**2 * panel.units // units)
        if state.division:
            want = Want.ACCELERATION if components == 3 else Want.POTENTIAL
            if not self.gravity.per_species:
                length2 = self.dtype.type(self.gravity.length2)  # of the state's type, not the pairs'
            self._tiled.launch(self._tiled.kernel(want, state), state, bodies, G, length2, count)

    @cached_property
    def _tiled(self) -> TiledEngine:
        """The engine for bodies without mass."""
        return TiledEngine(self.gravity, self.dtype.name)

    @classmethod
    def bytes_needed(cls, particles: int, precision: str) -> int:
        """See :meth:`Engine.bytes_needed`: the state, and the partial sums of the largest panel."""
        columns = np.dtype(np.float64 if precision == "float64" else np.float32)
        tiling = tiling_for(particles, precision)
        largest = next(panels(particles, tiling, columns.itemsize, room_on_card(tiling, columns)))
        rows, sums = shapes_of_buffers(particles, tiling, largest)
        partial = math.prod(rows) * itemsize(precision) + math.prod(sums) * columns.itemsize
        return super().bytes_needed(particles, precision) + partial
