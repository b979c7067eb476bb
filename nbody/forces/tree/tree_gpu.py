"""The arrays of a tree on the GPU, and the launches that fill them: the cells of bodies, and the tree over all bodies of a
state. Its sources are all bodies; its targets are the same cells, or those of other bodies or points."""

from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import cuda, out_of_memory
from nbody.forces.tree import memory_gpu as memory
from nbody.forces.tree.expansions.operators import Basis
from nbody.forces.tree.octree import cells_gpu as build
from nbody.forces.tree.octree import groups_gpu as groups
from nbody.forces.tree.octree import order_gpu as keys
from nbody.forces.tree.octree.moments_gpu import upward_kernels
from nbody.forces.tree.octree.order_gpu import Sort
from nbody.forces.tree.walk.regions_gpu import LIST
from nbody.forces.tree.walk.target_gpu import Sources, Targets
from nbody.state.device import DeviceArray

CELL_THREADS = 128
"""Threads per block of the kernels with a thread per cell."""

REGION = 1024
"""The most bodies of a region."""


class DeviceCells:
    """Bodies or points in Morton order, divided into cells; and their groups and regions, for which forces are computed.

    Args:
        capacity: the most bodies; :attr:`count` is their present number.
        leaf: cells with more bodies are divided.
        basis, wide: the expansions, and the type of coordinates.
        stream: the stream of all launches.
        cell_bytes: the bytes of :attr:`moments` per cell.

    Attributes:
        runs: the targets whose forces are computed.
        sequence: the groups in the order in which they are walked.
        costs: interactions per body that the last walk counted, for each run of bodies in Morton order.
        moments: (rows, 4) float32, which shares memory with the lists: :mod:`.memory_gpu`.
    """

    counts: DeviceArray
    nodes: DeviceArray
    groups: DeviceArray
    sequence: DeviceArray
    costs: DeviceArray
    regions: DeviceArray
    region_at: DeviceArray
    centres: DeviceArray
    locals: DeviceArray
    listed: DeviceArray
    work: DeviceArray
    _shared: DeviceArray
    _totals: DeviceArray
    _index: DeviceArray
    _sorted: DeviceArray

    def __init__(self, capacity: int, leaf: int, basis: Basis, wide: type, stream: Any, cell_bytes: int = 0) -> None:
        n = memory.sizes(capacity, leaf, REGION, cell_bytes)
        self.capacity = self.count = capacity
        self.leaf, self.dimensions, self.wide, self.stream, self.region = leaf, basis.dimensions, wide, stream, REGION
        self.runs = groups.ALL
        needed = DeviceCells.bytes_needed(capacity, leaf, basis, wide, cell_bytes)
        with out_of_memory(f"a tree of {capacity} particles", needed):
            memory.allocate(self, memory.forms_of_cells(n, basis, wide))
            built = memory.views(self._shared, memory.forms_of_build(n.bodies, n.parts))
            self._keys, self._rows, self._levels, self._before = built
            self._sort = Sort(self._keys, self._rows, basis.dimensions * keys.LEVELS + 1, stream)
        self.moments = self._shared.view(np.float32).reshape(n.rows * LIST // 4, 4)
        self.lists = self._shared.view(np.int32).reshape(n.rows, LIST)
        self._limits = n.regions, n.rows, cell_bytes, memory.LIST_BYTES
        self.work.copy_to_device(np.zeros(1, np.int64))
        self.costs.copy_to_device(np.zeros(self.costs.size, np.int32))
        self.last_work = cuda.mapped_array(1, np.int64)
        """The interactions that the walk of these targets has counted at the beginning of the last evaluation, in memory
        that the host can read at any time."""
        self.last_work[0] = 0
        self.blocks = min(-(-n.cells // CELL_THREADS), 8 * compute.facts().multiprocessors)

    @staticmethod
    def bytes_needed(count: int, leaf: int, basis: Basis, wide: type, cell_bytes: int = 0) -> int:
        """The memory of the arrays, in bytes."""
        forms = memory.forms_of_cells(memory.sizes(count, leaf, REGION, cell_bytes), basis, wide)
        return memory.bytes_of(forms.values()) + Sort.bytes_needed(count)

    @property
    def index(self) -> Any:
        """(T,) the row of each body, in Morton order."""
        return self._first(self._index)

    @property
    def sorted(self) -> Any:
        """(T, 4) the bodies in Morton order, in units of the box."""
        return self._first(self._sorted)

    @property
    def targets(self) -> Targets:
        """What a walk reads and writes of its targets."""
        return Targets(
            self.counts, self.groups, self.sequence, self.costs, self.regions, self.region_at, self.sorted, self.index,
            self.centres, self.locals, self.lists, self.listed, self.work,
        )  # fmt: skip

    def order(self, body: DeviceArray, box: DeviceArray, rows: DeviceArray | None = None) -> None:
        """Enqueue the sort of all rows of ``body``, or of some."""
        self.count = len(body if rows is None else rows)
        blocks, threads = -(-self.count // keys.THREADS), keys.THREADS
        key = keys.key_kernel(self.dimensions, rows is not None)
        unsorted, unsorted_rows = self._first(self._keys[0]), self._first(self._rows[0])
        key[blocks, threads, self.stream](body, unsorted_rows if rows is None else rows, box, unsorted, unsorted_rows)
        self._sort(self.count)
        in_order, gather = self._first(self._rows[self._sort.result]), keys.gather_kernel(self.wide)
        gather[blocks, threads, self.stream](body, in_order, box, self.index, self.sorted)

    def divide(self, group: int) -> None:
        """Enqueue the division into cells, and into groups of at most ``group`` bodies."""
        found, levels = self._first(self._keys[self._sort.result]), self._first(self._levels)
        blocks, threads, stream = self._before.shape[1], build.MARK_THREADS, self.stream
        mark, link = build.mark_kernel(self.dimensions), groups.link_kernel(self.dimensions)
        mark[blocks, threads, stream](found, np.int32(self.leaf), levels, self._before)
        build.scan[build.ALL_LEVELS, build.SCAN_THREADS, stream](self._before, self._totals)
        limits = np.int32(self.nodes.shape[0]), *map(np.int64, self._limits)
        build.number[1, 32, stream](self._totals, self.counts, *limits, self.work, self.last_work)
        build.write[blocks, threads, stream](levels, self._before, self.counts, self.nodes)
        link[self.blocks, CELL_THREADS, stream](
            found, self.counts, self.nodes, self.groups, self.costs, np.int32(group), self.regions, self.region_at,
            np.int32(self.region), *map(np.int32, self.runs),
        )  # fmt: skip
        groups.arrange[self.blocks, CELL_THREADS, stream](self.counts, self.groups, self.costs, self.sequence)

    def restart(self) -> None:
        """Enqueue what a further walk of the same groups needs."""
        groups.restart[1, 32, self.stream](self.counts, self.work, self.last_work)

    def _first(self, array: DeviceArray) -> DeviceArray:
        return array if self.count == self.capacity else array[: self.count]


class DeviceTree:
    """The tree over ``count`` bodies: :attr:`cells`, and their moments. The rest as in :class:`DeviceCells`.

    Attributes:
        box: see :mod:`.octree.order_gpu`.
        begun: True once accelerations of an earlier evaluation exist.
        targets: the cells of other targets; None before there are any.
        partition: how several devices divide the forces; None if this one computes all.
    """

    parts: DeviceArray
    box: DeviceArray
    forces: DeviceArray
    place: DeviceArray
    norms: DeviceArray

    def __init__(self, count: int, leaf: int, basis: Basis, wide: type, stream: Any) -> None:
        self.basis, self.wide, self.stream = basis, wide, stream
        with out_of_memory(f"a tree of {count} particles", DeviceTree.bytes_needed(count, leaf, basis, wide)):
            memory.allocate(self, memory.forms_of_tree(count, leaf, basis, wide))
            self.cells = DeviceCells(count, leaf, basis, wide, stream, memory.moment_bytes(basis))
        self.moments = self.cells.moments
        self.begun = False
        self.targets: DeviceCells | None = None
        self.partition: Any = None
        self._built = False
        self._graph: compute.Graph | None = None

    @staticmethod
    def bytes_needed(count: int, leaf: int, basis: Basis, wide: type) -> int:
        """The memory of the arrays, in bytes."""
        own = memory.bytes_of(memory.forms_of_tree(count, leaf, basis, wide).values())
        return own + DeviceCells.bytes_needed(count, leaf, basis, wide, memory.moment_bytes(basis))

    @property
    def sources(self) -> Sources:
        """What a walk reads of the tree."""
        c = self.cells
        return Sources(c.counts, c.nodes, self.place, self.norms, self.moments, c.sorted, c.index, self.box)

    def build(self, body: DeviceArray, G: float, group: int) -> None:
        """Enqueue the build of the tree for the positions of ``body``, always the same array, with groups of at most
        ``group`` bodies. From the third call on this replays a graph, unless the launches are being recorded in another."""
        if compute.SIMULATED or compute.is_recording(self.stream):
            self.launch(body, G, group)
        elif self._graph is not None:
            self._graph.replay()
        else:
            self.launch(body, G, group)
            if self._built:
                self._graph = compute.Graph(self.stream, lambda: self.launch(body, G, group))
            self._built = True

    def launch(self, body: DeviceArray, G: float, group: int) -> None:
        """The launches of :meth:`build`, without a graph."""
        bounds, frame = keys.bounds_kernels()
        bounds[self.parts.shape[0], keys.THREADS, self.stream](body, self.parts)
        widest = 2.0 ** (120 // self.basis.order)
        frame[1, keys.THREADS, self.stream](self.parts, self.box, np.float64(G), np.float64(widest))
        self.cells.order(body, self.box)
        self.cells.divide(group)
        self._sum()

    def cells_of(self, body: DeviceArray, group: int, rows: DeviceArray | None = None) -> DeviceCells:
        """Other targets in the box of the tree: all rows of ``body`` (T, 4), or some; their cells are enqueued."""
        count, cells = len(body if rows is None else rows), self.cells
        if self.targets is None or self.targets.capacity < count:
            self.targets = None  # frees its memory
            capacity = capacity_for(count, cells.capacity)
            self.targets = DeviceCells(capacity, cells.leaf, self.basis, self.wide, self.stream)
        self.targets.order(body, self.box, rows)
        self.targets.divide(group)
        return self.targets

    def _sum(self) -> None:
        """Moments, from the deepest level to the root."""
        cells, threads = self.cells, CELL_THREADS
        kernels = upward_kernels(self.basis, self.wide)
        leaves, upward = (kernel[cells.blocks, threads, self.stream] for kernel in kernels)
        leaves(cells.sorted, cells.counts, cells.nodes, self.place, self.norms, self.moments)
        for level in range(keys.LEVELS - 1, -1, -1):
            upward(np.int32(level), cells.counts, cells.nodes, self.place, self.norms, self.moments)


def capacity_for(targets: int, bodies: int) -> int:
    """The capacity for other targets: a power of two, so that slightly more need no new memory; but not more than there are
    bodies if the targets are some of these."""
    power = 1 << max(10, (targets - 1).bit_length())
    return power if targets > bodies else min(power, bodies)
