"""The arrays of a tree on the GPU, and the launches that fill them: the cells of bodies, and the tree over all bodies of a
state. Its sources are all bodies; its targets are the same cells, or those of other bodies or points."""

from typing import Any, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.tree import gpu_build as build
from nbody.forces.tree import gpu_keys as keys
from nbody.forces.tree import gpu_momentum as momentum
from nbody.forces.tree.expansions import Basis
from nbody.forces.tree.gpu_moments import rows_of, upward_kernels
from nbody.forces.tree.gpu_regions import LIST
from nbody.forces.tree.gpu_sort import Sort
from nbody.forces.tree.gpu_walk import GROUP
from nbody.gpu import cuda, out_of_memory

CELL_THREADS = 128
"""Threads per block of the kernels with a thread per cell."""

REGION = 1024
"""The most bodies of a region."""


class Sizes(NamedTuple):
    """The lengths of the arrays."""

    bodies: int
    cells: int
    groups: int
    regions: int
    parts: int


def sizes(count: int, leaf: int) -> Sizes:
    """The sizes for ``count`` bodies: typically N/8 cells with leaves of 32; there is room for three times as many. (With
    more the tree ends at a higher level, see :mod:`.gpu_build`.) Regions: typically N/300."""
    cells = min(2 * count + 64, 12 * count // leaf + 4096)
    regions, groups = min(cells, 8 * count // REGION + 64), cells + count // GROUP + 1
    return Sizes(count, cells, groups, regions, -(-count // build.MARK_THREADS))


def local_rows(basis: Basis) -> int:
    """Rows of four for the local expansion of a region."""
    return rows_of(len(basis._replace(potential=True).locals))


class Cells:
    """Bodies or points in Morton order, divided into cells; and their groups and regions, for which forces are computed.

    Args:
        capacity: the most bodies; :attr:`count` is their present number.
        leaf: cells with more bodies are divided.
        basis, wide: the expansions, and the type of coordinates.
        stream: the stream of all launches.
    """

    def __init__(self, capacity: int, leaf: int, basis: Basis, wide: type, stream: Any) -> None:
        n = sizes(capacity, leaf)
        self.capacity = self.count = capacity
        self.leaf, self.dimensions, self.wide, self.stream, self.region = leaf, basis.dimensions, wide, stream, REGION
        with out_of_memory(f"a tree of {capacity} particles", Cells.bytes_needed(capacity, leaf, basis, wide)):
            array = cuda.device_array
            self._keys, self._index = array((2, n.bodies), np.uint64), array((2, n.bodies), np.uint32)
            self._sorted, self._levels = array((n.bodies, 4), wide), array((n.bodies, 2), np.uint8)
            self.cells_before = array((build.ALL_LEVELS, n.parts), np.int32)
            self.totals, self.counts = array(build.ALL_LEVELS, np.int32), array(build.COUNTS, np.int32)
            self.nodes, self.groups = array((n.cells, 4), np.int32), array((n.groups, 4), np.int32)
            self.sequence = array(n.groups, np.int32)
            """The groups in the order in which they are walked."""
            self.costs = cuda.to_device(np.zeros(-(-n.bodies // build.RUN), np.int32))
            """Interactions per body that the last walk counted, for each run of bodies in Morton order."""
            self.regions, self.region_at = array((n.regions, 2), np.int32), array(n.bodies, np.int32)
            self.centres = array((n.regions, 4), wide)
            self.locals = array((n.regions * local_rows(basis), 4), np.float32)
            self.lists, self.listed = array((n.regions, LIST), np.int32), array(n.regions, np.int32)
            self.work = cuda.to_device(np.zeros(1, np.int64))
            self.last_work = cuda.mapped_array(1, np.int64)
            """The interactions that the walk of these targets has counted at the beginning of the last evaluation, in memory
            that the host can read at any time."""
            self.last_work[0] = 0
            self._sort = Sort(self._keys, self._index, basis.dimensions * keys.LEVELS + 1, stream)
        self.blocks = min(-(-n.cells // CELL_THREADS), 8 * gpu.facts().multiprocessors)

    @staticmethod
    def bytes_needed(count: int, leaf: int, basis: Basis, wide: type) -> int:
        """The memory of the arrays, in bytes."""
        n, row = sizes(count, leaf), 4 * np.dtype(wide).itemsize
        per_body = 2 * (8 + 4) + row + 2 + 4
        per_region = 8 + row + 16 * local_rows(basis) + 4 * (LIST + 1)
        temporary = count // 4 + (1 << 20)  # of the sort
        others = 20 * n.groups + per_region * n.regions + 4 * build.ALL_LEVELS * n.parts + temporary
        return n.bodies * per_body + 4 * (n.bodies // build.RUN) + n.cells * 16 + others

    @property
    def index(self) -> Any:
        """(T,) the row of each body, in Morton order."""
        return self._first(self._index[self._sort.result])

    @property
    def sorted(self) -> Any:
        """(T, 4) the bodies in Morton order, in units of the box."""
        return self._first(self._sorted)

    def order(self, body: Any, box: Any, rows: Any = None) -> None:
        """Enqueue the sort of all rows of ``body``, or of some."""
        self.count = len(body if rows is None else rows)
        blocks, threads = -(-self.count // keys.THREADS), keys.THREADS
        key = keys.key_kernel(self.dimensions, rows is not None)
        unsorted, index = self._first(self._keys[0]), self._first(self._index[0])
        key[blocks, threads, self.stream](body, index if rows is None else rows, box, unsorted, index)
        self._sort(self.count)
        keys.gather_kernel(self.wide)[blocks, threads, self.stream](body, self.index, box, self.sorted)

    def divide(self, group: int) -> None:
        """Enqueue the division into cells, and into groups of at most ``group`` bodies."""
        found, levels = self._first(self._keys[self._sort.result]), self._first(self._levels)
        blocks, threads, stream = self.cells_before.shape[1], build.MARK_THREADS, self.stream
        mark, link = build.mark_kernel(self.dimensions), build.link_kernel(self.dimensions)
        mark[blocks, threads, stream](found, np.int32(self.leaf), levels, self.cells_before)
        build.scan[build.ALL_LEVELS, build.SCAN_THREADS, stream](self.cells_before, self.totals)
        capacity = np.int32(self.nodes.shape[0])
        build.number[1, 32, stream](self.totals, self.counts, capacity, self.work, self.last_work)
        build.write[blocks, threads, stream](levels, self.cells_before, self.counts, self.nodes)
        link[self.blocks, CELL_THREADS, stream](
            found, self.counts, self.nodes, self.groups, self.costs, np.int32(group), self.regions, self.region_at,
            np.int32(self.region),
        )  # fmt: skip
        build.arrange[self.blocks, CELL_THREADS, stream](self.counts, self.groups, self.sequence)

    def restart(self) -> None:
        """Enqueue what a further walk of the same groups needs."""
        build.restart[1, 32, self.stream](self.counts, self.work, self.last_work)

    def _first(self, array: Any) -> Any:
        return array if self.count == self.capacity else array[: self.count]


class Tree:
    """The tree over ``count`` bodies: :attr:`cells`, and their moments. The rest as in :class:`Cells`.

    Attributes:
        box: see :mod:`.gpu_keys`.
        begun: True once accelerations of an earlier evaluation exist.
        targets: the cells of other targets; None before there are any.
        division: how several devices divide the forces; None if this one computes all.
    """

    def __init__(self, count: int, leaf: int, basis: Basis, wide: type, stream: Any) -> None:
        n = sizes(count, leaf)
        self.basis, self.wide, self.stream = basis, wide, stream
        parts = min(keys.PARTS, -(-n.bodies // keys.THREADS))
        with out_of_memory(f"a tree of {n.bodies} particles", Tree.bytes_needed(n.bodies, leaf, basis, wide)):
            array = cuda.device_array
            self.parts, self.box = array((parts, 8), np.float64), array(keys.BOX, np.float64)
            self.forces = array((momentum.blocks(n.bodies), 4), np.float64)
            self.place = array((n.cells, 4), wide)
            self.norms = array((n.cells * rows_of(basis.order), 4), np.float32)
            self.moments = array((n.cells * rows_of(len(basis.moments)), 4), np.float32)
        self.cells = Cells(count, leaf, basis, wide, stream)
        self.begun = False
        self.targets: Cells | None = None
        self.division: Any = None
        self._graph: gpu.Graph | None = None

    @staticmethod
    def bytes_needed(count: int, leaf: int, basis: Basis, wide: type) -> int:
        """The memory of the arrays, in bytes."""
        per_cell = 4 * np.dtype(wide).itemsize + 16 * (rows_of(basis.order) + rows_of(len(basis.moments)))
        return Cells.bytes_needed(count, leaf, basis, wide) + sizes(count, leaf).cells * per_cell

    @property
    def sources(self) -> tuple[Any, ...]:
        """What a walk reads of the tree: the counts, the cells and the bodies, with the row of each."""
        cells = self.cells
        return cells.counts, cells.nodes, self.place, self.norms, self.moments, cells.sorted, cells.index, self.box

    def build(self, body: Any, G: float, group: int) -> None:
        """Enqueue the build of the tree for the positions of ``body``, always the same array, with groups of at most
        ``group`` bodies. From the second call on this replays a graph, unless the launches are being recorded in another."""
        if gpu.SIMULATED or gpu.is_recording(self.stream):
            self._launch(body, G, group)
        elif self._graph is not None:
            self._graph.replay()
        else:
            self._launch(body, G, group)
            self._graph = gpu.Graph(self.stream, lambda: self._launch(body, G, group))

    def _launch(self, body: Any, G: float, group: int) -> None:
        bounds, frame = keys.bounds_kernels()
        bounds[self.parts.shape[0], keys.THREADS, self.stream](body, self.parts)
        widest = 2.0 ** (120 // self.basis.order)
        frame[1, keys.THREADS, self.stream](self.parts, self.box, np.float64(G), np.float64(widest))
        self.cells.order(body, self.box)
        self.cells.divide(group)
        self._sum()

    def cells_of(self, body: Any, group: int, rows: Any = None) -> Cells:
        """Other targets in the box of the tree: all rows of ``body`` (T, 4), or some; their cells are enqueued."""
        count = len(body if rows is None else rows)
        if self.targets is None or self.targets.capacity < count:
            self.targets = None  # frees its memory
            capacity = 1 << max(10, (count - 1).bit_length())
            self.targets = Cells(capacity, self.cells.leaf, self.basis, self.wide, self.stream)
        self.targets.order(body, self.box, rows)
        self.targets.divide(group)
        return self.targets

    def _sum(self) -> None:
        """Moments, from the deepest level to the root."""
        cells, threads = self.cells, CELL_THREADS
        leaves, upward = (
            kernel[cells.blocks, threads, self.stream] for kernel in upward_kernels(self.basis, self.wide)
        )
        leaves(cells.sorted, cells.counts, cells.nodes, self.place, self.norms, self.moments)
        for level in range(keys.LEVELS - 1, -1, -1):
            upward(np.int32(level), cells.counts, cells.nodes, self.place, self.norms, self.moments)
