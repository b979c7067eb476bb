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

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.forces.direct.gpu_pair_sums import (
    SLICES,
    PairPart,
    node_bytes,
    part_bytes,
    planned_parts,
    root_kernel,
    sum_kernel,
)
from nbody.forces.direct.gpu_pairs import build, masses_of, resident_warps
from nbody.forces.direct.gpu_pieces import SEGMENTS_FROM
from nbody.forces.direct.gpu_tiled import TiledEngine
from nbody.forces.direct.gpu_triangle import (
    LANES,
    SEGMENTS,
    PairTiling,
    PairWork,
    card_limits,
    divided,
)
from nbody.forces.engine import Memory
from nbody.forces.gpu_engine import KernelEngine
from nbody.forces.problem import PRECISIONS, Abilities, Problem
from nbody.parallel.segments import Node, push
from nbody.parallel.team import bounds
from nbody.particles import Particles
from nbody.state import Outputs, State, itemsize
from nbody.state.device import DeviceState
from nbody.state.partition import Worker


def tiling_for(count: int, precision: str, masses: str = "product", per_species: bool = False) -> PairTiling:
    """The fastest tiling on an H200: few warps per block divide the work of a small N more evenly; many warps need fewer
    partial sums. (With a softening length per body the registers hold 16 bodies.)"""
    bodies = 16 if per_species else 22 if masses == "equal" else 18
    tilings = {  # up to 32768 bodies, up to 131072, and beyond
        "float32": (PairTiling(1, 10), PairTiling(2, bodies), PairTiling(4, bodies)),
        "mixed": (PairTiling(1, 9), PairTiling(4, 10), PairTiling(4, 10)),
        "float64": (PairTiling(2, 4), PairTiling(4, 6), PairTiling(4, 6)),
    }
    return tilings[precision][(count > 32768) + (count > 131072)]


class Rest(NamedTuple):
    """What is added in the end, by the first device for all bodies or by each rank for its rows: the nodes (slots, 4, rows);
    their order, see :func:`~nbody.forces.direct.gpu_pair_sums.root_kernel`; how many each rank has; and its first row."""

    nodes: Any
    order: Any
    counts: list[int]
    rows: list[int]


class PairPlan(NamedTuple):
    """How the pairs of a state's acting bodies are computed: the workspace of the state.

    Attributes:
        masses: the result of :func:`~nbody.forces.direct.gpu_pairs.masses_of`.
        tiling, work: how the pairs are divided.
        parts: what each device computes, with its buffers; the first device's is the first.
        rest: what is added in the end; None if one device computes all.
    """

    masses: str
    tiling: PairTiling
    work: PairWork
    parts: list[PairPart]
    rest: Rest | None


class PairKernels(NamedTuple):
    """The kernels of an evaluation, and the number of components of its sums."""

    pairs: Any
    add: Any
    root: Any
    components: int


class SymmetricEngine(KernelEngine):
    """Each pair once: Newton's third law, bodies in registers, column sums passed on by shuffles. If many bodies have no
    mass, each pair of the others once, and the rows of those without mass by ``gpu-tiled`` (in float64 if mixed).

    Several GPUs, or ranks with a GPU each, divide the segments of the pairs; the bits do not depend on how many there are.
    """

    can = Abilities(
        PRECISIONS, "gpu", potential="summed", species=True, ranks=True, gpus=True, divided_from=SEGMENTS_FROM,
        pairs_once=True, massless=True, systems=True,
        auto_range=range(2048, 1 << 62),  # 1024 bodies are 68 units of work: too few warps for a card
    )  # fmt: skip
    _name = "gpu-symmetric"
    _build = staticmethod(build)

    @classmethod
    def supports(cls, problem: Problem) -> str:
        if max(problem.gpus, problem.ranks) > SEGMENTS:
            return f"{SEGMENTS} GPUs at most divide its work"
        return super().supports(problem)

    def _prepare(self, state: State, particles: Particles) -> None:
        # Chooses how pairs are weighted, and allocates the partial sums.
        super()._prepare(state, particles)
        assert isinstance(state, DeviceState)
        count, columns = state.partition.acting, self._shape().dtype
        if count < state.count:
            particles = Particles(particles.mass[:count], particles.position[:count], particles.velocity[:count])
        masses = masses_of(particles, self.gravity, self._shape().real)
        tiling = tiling_for(count, self.precision, masses, self.gravity.per_species)
        limits = card_limits(tiling, columns, self._resident_blocks(tiling, masses))
        work = divided(count, tiling, columns.itemsize, limits)
        state.workspace = PairPlan(masses, tiling, work, *self._parts(state, work))

    def _parts(self, state: DeviceState, work: PairWork) -> tuple[list[PairPart], Rest | None]:
        """The parts of the devices, and what is added in the end. With ranks, this one's part is the only one."""
        transport, dtypes = state.partition.transport, (self._dtype, self._shape().dtype)
        size, rank, ranks = transport.size, transport.number, transport.ranks > 1
        first, planned = bounds(work.segments, size), planned_parts(work, size)
        counts, slots = [len(left) for _, left, _ in planned], [slots for _, _, slots in planned]
        rows = bounds(work.count, transport.ranks, LANES)
        starts = [0, *accumulate(counts if ranks else slots)]
        shape = starts[-1], 4, rows[rank + 1] - rows[rank]
        needed = part_bytes(work, *(dtype.itemsize for dtype in dtypes)) + _added_bytes(work, size, ranks)
        with compute.out_of_memory(f"the sums of {work.count} particles", needed):
            nodes = cuda.device_array(shape, np.float64)
            own = cuda.device_array((slots[rank], 4, work.count), np.float64) if ranks else nodes[: starts[1]]
            parts = [PairPart(work, first[rank], first[rank + 1], dtypes, own)]
            for k, helper in enumerate(transport.helpers, 1):
                begin, end = starts[k], starts[k + 1]
                with helper.current():
                    helper.part = PairPart(work, first[k], first[k + 1], dtypes, helper.results(nodes[begin:end]))
        if size == 1:
            return parts, None
        stack: list[Node] = []
        order = [
            [start + slot, push(stack, node)]
            for start, (_, left, _) in zip(starts, planned, strict=False)
            for slot, node in enumerate(left)
        ]
        rest = Rest(nodes, cuda.to_device(np.array(order, np.int64)), counts, rows)
        return [*parts, *(helper.part for helper in transport.helpers)], rest

    def _resident_blocks(self, tiling: PairTiling, masses: str) -> int:
        """Blocks of the pair kernel that the card holds at a time, both with and without the energy's sums: one wave of
        them divides the work evenly, and the bits must not depend on whether the energy is computed. (A second, partial
        wave is slow: with blocks for 16 per multiprocessor where 14 fit, the lecture's disc took 191 µs instead of 138;
        20480 bodies, one H200.)"""
        calls = [self._sample_call(outputs, tiling, masses) for outputs in (Outputs.ACCELERATION, Outputs.ENERGY)]
        compute.compile_missing([compute.Call.of(*call) for call in calls])
        return min(compute.resident_blocks(*call, tiling.chunk) for call in calls)

    def _sample_call(self, outputs: Outputs, tiling: PairTiling, masses: str) -> tuple[Any, tuple]:
        """The pair kernel, with arguments of the types that it has."""
        shape = self._shape(outputs)
        body, rows, columns = (
            np.empty((1, 4), self._dtype), np.empty((1, 1, 4), self._dtype), np.empty((1, 1, 4), shape.dtype)
        )  # fmt: skip
        length2 = np.empty(1, shape.dtype) if shape.per_species else shape.real(0)
        arguments = (body, rows, columns, length2, *(np.int64(0),) * 4, np.uint32(0))
        return build(shape, tiling, masses), arguments

    def _kernel(self, outputs: Outputs, state: DeviceState) -> PairKernels:
        """The kernels for this engine's gravity and precision and for the state's masses."""
        shape, plan, of_each = self._shape(outputs), state.workspace, outputs == Outputs.POTENTIAL
        return PairKernels(
            build(shape, plan.tiling, plan.masses),
            sum_kernel(plan.tiling, plan.masses, shape.real, outputs, plan.work.segments > 1),
            root_kernel(plan.masses, shape.real, of_each),
            3 if outputs is Outputs.ACCELERATION else 4,
        )

    def _launch(self, kernel: PairKernels, state: DeviceState, G: Any, length2: Any) -> None:
        plan, transport, stream = state.workspace, state.partition.transport, state.stream
        some_massless = state.partition.acting < state.count
        first = Worker(transport.number, stream, state.body, state.acceleration, length2, plan.parts[0])

        def pieces(worker: Worker) -> Iterator[int]:
            yield from self._pieces(kernel, plan, worker, G)
            if some_massless:
                yield from self._rows_without_mass(kernel, worker, state, G)

        transport.compute(state.progress.report, first, pieces)
        if plan.rest is not None:
            self._finish(kernel, plan, first, state, G)
        if some_massless:
            transport.complete(state.acceleration, self._tiled._row_bounds(state, state.partition.acting), stream)

    def _finish(self, kernel: PairKernels, plan: PairPlan, worker: Worker, state: DeviceState, G: Any) -> None:
        """Add the nodes of all devices; or of all ranks in this one's rows, and complete the accelerations."""
        assert plan.rest is not None
        (nodes, order, counts, rows), transport = plan.rest, state.partition.transport
        body, acceleration = self._massive(plan, worker)
        first, last = rows[worker.number : worker.number + 2]
        nodes = transport.exchange(worker.part.nodes, counts, kernel.components, nodes, rows, state.stream)
        grid = -(-(last - first) // 128), kernel.components
        kernel.root[grid, 128, state.stream](body[first:last], nodes, order, acceleration[first:last], G)
        transport.complete(acceleration, rows, state.stream)

    def _massive(self, plan: PairPlan, worker: Worker) -> tuple[Any, Any]:
        """The rows of the bodies whose pairs are computed, of a worker's arrays."""
        count = plan.work.count
        if count == len(worker.body):
            return worker.body, worker.acceleration
        return worker.body[:count], worker.acceleration[:count]

    def _pieces(self, kernel: PairKernels, plan: PairPlan, worker: Worker, G: Any) -> Iterator[int]:
        """Launch a device's part of the pairs; yields the interactions after each launch."""
        part, work, threads, stream = worker.part, plan.work, plan.tiling.chunk, worker.stream
        body, acceleration = self._massive(plan, worker)
        add = kernel.add[-(-work.count // LANES), (LANES, SLICES), stream]
        units = np.int64(work.units)
        for launch, rows, columns, sums in part.launches:
            first, run = np.int64(launch.first), np.int64(launch.run)
            if launch.blocks:
                kernel.pairs[launch.blocks, threads, stream](
                    body, rows, columns, worker.length2, first, run, np.int64(work.runs), *work.run_units
                )
            for each in sums:
                node = tuple(map(np.int64, each))
                add(body, rows, columns, part.starts, part.nodes, acceleration, G, units, run, first, node)
            yield work.count**2 * launch.units // work.units
        worker.send_results()

    def _rows_without_mass(self, kernel: PairKernels, worker: Worker, state: DeviceState, G: Any) -> Iterator[int]:
        """Launch a device's part of the rows of bodies without mass."""
        outputs = Outputs.ACCELERATION if kernel.components == 3 else Outputs.POTENTIAL
        if not self.gravity.per_species:
            worker.length2 = self._dtype.type(self.gravity.length2)  # of the state's type, not the pairs'
        return self._tiled._rows(self._tiled._kernel(outputs, state), worker, state, G, state.partition.acting)

    @cached_property
    def _tiled(self) -> TiledEngine:
        """The engine for bodies without mass."""
        return TiledEngine(self.gravity, self._dtype.name, self._options)

    @classmethod
    def memory(cls, problem: Problem) -> Memory:
        # The sums, and those over the segments of all devices.
        work = cls._typical_work(problem.particles, problem.precision)
        own, helper = super().memory(problem)
        sums = part_bytes(work, itemsize(problem.precision), _columns(problem.precision).itemsize)
        added = _added_bytes(work, max(problem.gpus, problem.ranks), problem.ranks > 1)
        return Memory(own + sums + added, helper + sums)

    @staticmethod
    def _typical_work(particles: int, precision: str) -> PairWork:
        """The division of the work for which memory is estimated."""
        columns, tiling = _columns(precision), tiling_for(particles, precision)
        resident = compute.blocks_at_most(1024) // 2 * resident_warps(tiling.bodies) // tiling.warps
        return divided(particles, tiling, columns.itemsize, card_limits(tiling, columns, resident))


def _columns(precision: str) -> np.dtype:
    """The type of the column sums."""
    return np.dtype(np.float64 if precision == "float64" else np.float32)


def _added_bytes(work: PairWork, devices: int, ranks: bool) -> int:
    """The bytes of nodes beyond those of a device that computes all."""
    return max(0, node_bytes(work, devices, ranks) - node_bytes(work, 1))
