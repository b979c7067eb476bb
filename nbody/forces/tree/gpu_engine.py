"""``gpu-tree``: the tree on the GPU, built anew for each evaluation, without a number returning to the host.

One evaluation: bounds, Morton keys, sort, gather, cells (:mod:`.gpu_build`); moments from the leaves upward
(:mod:`.gpu_moments`); a walk per group of neighbours (:mod:`.gpu_walk`). The launches are the same for any positions, so a
CUDA graph replays them.

The acceptance test needs |a| of the evaluation before, which the state's accelerations hold, also in a checkpoint. If they
are all zero, the first evaluation opens cells by an angle, and a second one follows at once.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.direct.gpu_engine import Bodies, GpuEngine
from nbody.forces.engine import ForceError
from nbody.forces.tree import gpu_build as build
from nbody.forces.tree import gpu_momentum as momentum
from nbody.forces.tree.expansions import Basis
from nbody.forces.tree.gpu_moments import rows_of, upward_kernels
from nbody.forces.tree.gpu_regions import LIST, region_kernel
from nbody.forces.tree.gpu_sort import Sort
from nbody.forces.tree.gpu_walk import GROUP, RESIDENT, THREADS, Plan, walk_kernel
from nbody.forces.tree.options import Settings, TreeOptions, settings
from nbody.gpu import cuda, out_of_memory
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.fields import Group
from nbody.state import State, Want
from nbody.state.device import DeviceState

LOWEST_ORDER = 3
"""The acceptance test of quadrupoles needs the third moments."""

STEPS = (
    # least accuracy, order, median error for error = 1e-3, exponent
    (2.5e-4, 4, 3.1e-4, 1.3),
    (2e-5, 5, 1.84e-4, 1.85),
)
"""The order, and the criterion's error 1e-3 · (accuracy/median)^exponent, measured for Plummer's sphere of 1M bodies. A
smaller accuracy takes the settings of the CPU."""

BODIES_PER_GROUP = 96
"""One H200, 1M bodies, order 4: 3.4 ms instead of 4.5 ms with 128 (error 1e-4), 2.08 instead of 2.16 (1e-3): the groups
with the longest lists end sooner."""


CELL_THREADS = 128
"""Threads per block of the kernels with a thread per cell."""


REGION = 1024
"""The most bodies of a region."""


class Sizes(NamedTuple):
    """The lengths of a tree's arrays."""

    bodies: int
    cells: int
    groups: int
    regions: int
    parts: int
    moment_rows: int
    norm_rows: int


def sizes(count: int, leaf: int, basis: Basis) -> Sizes:
    """The sizes for ``count`` bodies: typically N/8 cells with leaves of 32; there is room for three times as many. (With
    more the tree ends at a higher level, see :mod:`.gpu_build`.) Regions: typically N/300."""
    cells = min(2 * count + 64, 12 * count // leaf + 4096)
    parts = -(-count // build.MARK_THREADS)
    regions, groups = min(cells, 8 * count // REGION + 64), cells + count // GROUP + 1
    return Sizes(count, cells, groups, regions, parts, rows_of(len(basis.moments)), rows_of(basis.order))


class Tree:
    """The arrays of one state's tree, and the launches that fill them."""

    def __init__(self, state: DeviceState, leaf: int, basis: Basis, wide: type) -> None:
        n = sizes(state.count, leaf, basis)
        self.leaf, self.basis, self.wide, self.dimensions = leaf, basis, wide, state.dimensions
        parts = min(build.PARTS, -(-n.bodies // build.THREADS))
        with out_of_memory(f"a tree of {n.bodies} particles", Tree.bytes_needed(n.bodies, leaf, basis, wide)):
            array = cuda.device_array
            self.parts, self.box = array((parts, 8), np.float64), array(build.BOX, np.float64)
            self.forces = array((momentum.blocks(n.bodies), 4), np.float64)
            self.keys, self.index = array((2, n.bodies), np.uint64), array((2, n.bodies), np.uint32)
            self.sorted = array((n.bodies, 4), wide)
            self.levels = array((n.bodies, 2), np.uint8)
            self.cells_before = array((build.ALL_LEVELS, n.parts), np.int32)
            self.totals, self.counts = array(build.ALL_LEVELS, np.int32), array(build.COUNTS, np.int32)
            self.nodes, self.groups = array((n.cells, 4), np.int32), array((n.groups, 3), np.int32)
            self.regions, self.region_at = array((n.regions, 2), np.int32), array(n.bodies, np.int32)
            self.centres = array((n.regions, 4), wide)
            self.locals = array((n.regions * rows_of(len(basis._replace(potential=True).locals)), 4), np.float32)
            self.lists, self.listed = array((n.regions, LIST), np.int32), array(n.regions, np.int32)
            self.place = array((n.cells, 4), wide)
            self.norms = array((n.cells * n.norm_rows, 4), np.float32)
            self.moments = array((n.cells * n.moment_rows, 4), np.float32)
            self.sort = Sort(self.keys, self.index, state.dimensions * build.LEVELS, state.stream)
        self.blocks = min(-(-n.cells // CELL_THREADS), 8 * gpu.facts().multiprocessors)
        self.region = REGION
        self.begun = False
        """True once accelerations of an earlier evaluation exist."""

    @staticmethod
    def bytes_needed(count: int, leaf: int, basis: Basis, wide: type) -> int:
        """The memory of the arrays, in bytes."""
        n = sizes(count, leaf, basis)
        row = 4 * np.dtype(wide).itemsize
        per_body = 2 * (8 + 4) + row + 2 + 4
        per_cell = 16 + row + 16 * (n.norm_rows + n.moment_rows)
        per_region = 8 + row + 16 * rows_of(len(basis._replace(potential=True).locals)) + 4 * (LIST + 1)
        temporary = count // 4 + (1 << 20)  # of the sort
        others = 12 * n.groups + per_region * n.regions + 4 * build.ALL_LEVELS * n.parts + temporary
        return n.bodies * per_body + n.cells * per_cell + others

    def build(self, state: DeviceState, G: float, group: int) -> None:
        """Enqueue the build of the tree for the state's positions."""
        self._order(state, G)
        self._divide(state.stream, group)
        self._sum(state.stream)

    def _order(self, state: DeviceState, G: float) -> None:
        """Bodies in Morton order."""
        n, stream, threads = state.count, state.stream, build.THREADS
        blocks = -(-n // threads)
        bounds, frame = build.bounds_kernels()
        bounds[self.parts.shape[0], threads, stream](state.body, self.parts)
        frame[1, threads, stream](self.parts, self.box, np.float64(G))
        build.key_kernel(self.dimensions)[blocks, threads, stream](state.body, self.box, self.keys[0], self.index[0])
        self.sort()
        gather = build.gather_kernel(self.wide)
        gather[blocks, threads, stream](state.body, self.index[self.sort.result], self.box, self.sorted)

    def _divide(self, stream: Any, group: int) -> None:
        """Cells and groups."""
        keys, blocks, threads = self.keys[self.sort.result], self.cells_before.shape[1], build.MARK_THREADS
        mark, scan, number, write, link = build.tree_kernels(self.dimensions)
        mark[blocks, threads, stream](keys, np.int32(self.leaf), self.levels, self.cells_before)
        scan[build.ALL_LEVELS, build.SCAN_THREADS, stream](self.cells_before, self.totals)
        number[1, 32, stream](self.totals, self.counts, np.int32(self.nodes.shape[0]))
        write[blocks, threads, stream](self.levels, self.cells_before, self.counts, self.nodes)
        link[self.blocks, CELL_THREADS, stream](
            keys,
            self.counts,
            self.nodes,
            self.groups,
            np.int32(group),
            self.regions,
            self.region_at,
            np.int32(self.region),
        )

    def _sum(self, stream: Any) -> None:
        """Moments, from the deepest level to the root."""
        leaves, upward = (kernel[self.blocks, CELL_THREADS, stream] for kernel in upward_kernels(self.basis, self.wide))
        leaves(self.sorted, self.counts, self.nodes, self.place, self.norms, self.moments)
        for level in range(build.LEVELS - 1, -1, -1):
            upward(np.int32(level), self.counts, self.nodes, self.place, self.norms, self.moments)


def gpu_settings(options: TreeOptions, precision: str) -> Settings:
    """:func:`~nbody.forces.tree.options.settings`, with what is the fastest on a GPU."""
    found = settings(options, precision)
    step = next((step for step in STEPS if options.accuracy >= step[0]), None)
    if step is not None and options.order is None:
        _, order, median, exponent = step
        found = found._replace(order=order, error=min(1e-3 * (options.accuracy / median) ** exponent, 0.05))
    return found._replace(
        order=max(found.order, LOWEST_ORDER), group=min(max(BODIES_PER_GROUP, found.leaf), GROUP)
    )  # fmt: skip


class TreeEngine(GpuEngine):
    """An octree and Cartesian multipoles to an accuracy that the user names. The net force Σ m a, which is an error, is
    subtracted: :mod:`.gpu_momentum`."""

    Options = TreeOptions  # type: ignore[assignment]
    name = "gpu-tree"
    precisions: ClassVar[tuple[str, ...]] = ("float32", "mixed")
    approximate = True
    contends = range(8192, 1 << 62)  # below, the launches of a tree take longer than direct sums on any card
    rescales = True
    separate_potential = True

    def __init__(self, gravity: Gravity, precision: str = "float32", options: Group | None = None) -> None:
        super().__init__(gravity, precision, options)
        assert isinstance(self.options, TreeOptions)
        self.settings = gpu_settings(self.options, precision)

    @classmethod
    def check_options(cls, options: Group, precision: str, where: str = "") -> None:
        """See :meth:`Engine.check_options`."""
        assert isinstance(options, TreeOptions)
        settings(options, precision, where)

    def basis(self, potential: bool = False) -> Basis:
        """The expansions for the law of this run."""
        softened = self.gravity.softening == "plummer"
        return Basis(self.settings.order, self.gravity.dimensions, softened, potential)

    @property
    def reach(self) -> float:
        """Beyond this distance the law of a pair is that of the expansions."""
        factor = {"cutoff": 1.0, "spline": 2.8}.get(self.gravity.softening, 0.0)
        return factor * float(self.gravity.length2) ** 0.5

    def load(self, particles: Particles) -> DeviceState:
        """See :meth:`Engine.load`."""
        state = super().load(particles)
        state.workspace = Tree(
            state, self.settings.leaf, self.basis(), np.float64 if self.precision == "mixed" else np.float32
        )
        return state

    def _compute(self, state: State, want: Want) -> None:
        assert isinstance(state, DeviceState)
        tree: Tree = state.workspace
        state.settle()
        if not tree.begun:
            tree.begun = True
            state.synchronize()
            if not state.acceleration.copy_to_host().any():
                self._evaluate(state, Want.ACCELERATION)
        self._evaluate(state, want)

    def _compute_potential(self, state: State, want: Want) -> None:
        assert isinstance(state, DeviceState)
        state.settle()
        self._evaluate(state, want, keep=True)

    def _evaluate(self, state: DeviceState, want: Want, keep: bool = False) -> None:
        tree, s = state.workspace, self.settings
        tree.build(state, self.gravity.G, s.group)
        shape = self.shape(want)
        walk = walk_kernel(Plan(shape, self.basis(shape.potential), s.theta is not None, keep))
        index = tree.index[tree.sort.result]
        regions = region_kernel(self.basis(shape.potential), tree.wide, s.theta is not None)
        bound = s.error if s.theta is None else s.theta
        cells = tree.counts, tree.nodes, tree.place, tree.norms, tree.moments, tree.sorted, index, state.acceleration
        law = tree.box, np.float64(self.gravity.length2), np.float64(self.reach), np.float32(bound)
        shared = tree.centres, tree.locals, tree.lists, tree.listed
        blocks = RESIDENT * gpu.facts().multiprocessors
        regions[blocks, THREADS, state.stream](tree.regions, *cells, *law, *shared)
        walk[blocks, THREADS, state.stream](tree.groups, *cells, *law, tree.region_at, *shared)
        if not keep:
            momentum.balance(state.body, state.acceleration, tree.forces, state.stream)
        state.report(self.work(state, want, Want.ACCELERATION if keep else Want.NOTHING))

    def launch(self, kernel: Any, state: DeviceState, bodies: Bodies, G: Any, length2: Any) -> None:
        """Not used: :meth:`_compute` launches several kernels."""
        raise NotImplementedError

    def expected_error(self, particles: Particles, targets: Any = None) -> ForceError:
        """The error that was asked for; beyond 100 times that a force is wrong."""
        assert isinstance(self.options, TreeOptions)
        return ForceError(self.options.accuracy, 100 * self.options.accuracy)

    @classmethod
    def bytes_needed(cls, particles: int, precision: str) -> int:
        """See :meth:`Engine.bytes_needed`; with leaves of 32 and order 4."""
        wide = np.float64 if precision == "mixed" else np.float32
        return super().bytes_needed(particles, precision) + Tree.bytes_needed(particles, 32, Basis(4, 3, True), wide)
