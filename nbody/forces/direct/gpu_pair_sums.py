"""Each pair once: the kernels that add the partial sums of rows and columns, and the memory for these sums.

A body's sum over one segment is added in the order of the segment's units, and the sums over segments are added pairwise:

    segment    0   1   2   3   4   5   6   7
             └─+─┘   └─+─┘   └─+─┘   └─+─┘         a node: 2ⁿ segments from a multiple of 2ⁿ on
               └───+───┘       └───+───┘
                   └───────+───────┘               the root

So every launch, and every GPU, may add the segments that it has computed, and the result has the same bits. All sums are
float64. Nodes wait on a stack (:func:`~nbody.parallel.segments.push`) until their siblings are computed.
"""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.forces.direct.gpu_triangle import (
    LANES,
    SEGMENTS,
    PairLaunch,
    PairTiling,
    PairWork,
    block_of,
    units_before,
)
from nbody.parallel.segments import Node, cover, push
from nbody.parallel.team import bounds
from nbody.state import Outputs

SLICES = 8
"""Threads that share the partial sums of one body."""

LEVELS = 8
"""More than the tree of the segments of a launch has levels above those of one thread; see :data:`SEGMENTS`."""

DEPTH = 32
"""More nodes than a stack ever has."""


class Sum(NamedTuple):
    """The addition of one node: its first segment, the number of its segments, its place on the stack before it is merged
    with the nodes below, the number of these mergers, and whether the result is the root."""

    segment: int
    segments: int
    slot: int
    mergers: int
    root: bool


class PairPart:
    """What one device computes of :class:`~nbody.forces.direct.gpu_triangle.PairWork`: the segments ``begin`` to ``end``.
    Made on that device, it allocates the partial sums for the largest launch and all smaller ones.

    Attributes:
        launches: each with the arrays of its sums, and the nodes that are added after it. Rows are (blocks + tiles, 4, T):
            the sum of block b for tile R, both counted from the launch's first, in row b + R. (Along the runs neither b nor
            R ever decreases, and at least one of them increases: b + R is distinct for each.) Columns are (tiles, 4, W):
            the sum over tile R for body j after the tile, both counted from the launch's first: three components of the
            force, and the potential if it is computed for each body.
        starts: (K + 1, 3), where each segment begins.
        stack: the nodes that are left in the end, in the first slots of ``nodes`` (slots, 4, N), which may be memory of
            another device.
    """

    def __init__(self, work: PairWork, begin: int, end: int, dtypes: tuple[np.dtype, np.dtype], nodes: Any) -> None:
        launches, (row_dtype, column_dtype) = list(work.launches(begin, end)), dtypes
        sums, self.stack, _ = planned_sums(launches, work.segments)
        rows = cuda.device_array(max(map(work.rows, launches)), row_dtype)
        columns = cuda.device_array(max(map(work.columns, launches)), column_dtype)
        self.starts = cuda.to_device(work.starts)
        self.nodes = nodes
        self.launches: list[tuple[PairLaunch, Any, Any, list[Sum]]] = []
        for launch, added in zip(launches, sums, strict=True):
            row_shape = launch.blocks + launch.tiles, 4, work.tiling.tile
            column_shape = launch.tiles, 4, work.width(launch)
            self.launches.append(
                (
                    launch,
                    rows[: work.rows(launch)].reshape(row_shape),
                    columns[: work.columns(launch)].reshape(column_shape),
                    added,
                )
            )


def planned_sums(launches: list[PairLaunch], segments: int) -> tuple[list[list[Sum]], list[Node], int]:
    """The nodes to add after each launch; the nodes that are left; and the slots that the stack needs. (The root of all
    ``segments`` needs none.)"""
    stack: list[Node] = []
    depth, found = 0, []
    for launch in launches:
        added: list[Sum] = []
        for node in cover(launch.begin, launch.end):
            slot, mergers = len(stack), push(stack, node)
            root = stack == [(0, segments)]
            added.append(Sum(*node, slot, mergers, root))
            depth = max(depth, 0 if root else len(stack))
        found.append(added)
    return found, stack, depth


def planned_parts(work: PairWork, devices: int) -> list[tuple[list[list[Sum]], list[Node], int]]:
    """:func:`planned_sums` of each of several devices."""
    first = bounds(work.segments, devices)
    return [planned_sums(list(work.launches(*pair)), work.segments) for pair in pairwise(first)]


def part_bytes(work: PairWork, row_itemsize: int, column_itemsize: int) -> int:
    """The bytes of a :class:`PairPart` of all segments, with its nodes."""
    launches = list(work.launches(0, work.segments))
    rows, columns = max(map(work.rows, launches)), max(map(work.columns, launches))
    return rows * row_itemsize + columns * column_itemsize + node_bytes(work, 1)


def node_bytes(work: PairWork, devices: int, ranks: bool = False) -> int:
    """The most bytes of nodes on the first of several devices, which has those of all; or on one of several ``ranks``, which
    has its own, and for its rows those of all."""
    planned = planned_parts(work, devices)
    slots = [slots for _, _, slots in planned]
    if not ranks:
        return 32 * work.count * sum(slots)
    rows = max(last - first for first, last in pairwise(bounds(work.count, devices, LANES)))
    return 32 * (work.count * max(slots) + rows * sum(len(left) for _, left, _ in planned))


def last_factor(masses: str, column_components: int, real: type) -> Callable:
    """The device function of the factor that the sums still lack; see :func:`nbody.forces.direct.gpu_pairs.masses_of`."""

    @compute.device_function
    def factor_of(body, i, component, G):
        factor = G
        if masses == "equal":
            factor = G * body[i, 3]
        elif masses == "product" and component < 3:
            factor = G / real(body[i, 3])  # as the pairs were weighted
        if component == column_components:
            factor += factor  # the energy: the whole term of a pair was added to one body
        return factor

    return factor_of


@cache
def sum_kernel(tiling: PairTiling, masses: str, real: type, outputs: Outputs, shared: bool) -> Any:
    """The kernel that adds the partial sums of each body, SLICES threads per body: a single thread would wait for each read.
    With segments (``shared``) a thread adds whole segments, else every SLICES-th term of the only one.

    ``masses`` determines the factor that the sums still lack. Those of the potential (component 3) are weighted by the
    other body's mass only; they are the potential of each body or the energy's.

    It is ``kernel(body, rows, columns, starts, nodes, acceleration, G, units, run, first, node)`` with the numbers of a
    :class:`Sum`, a grid of ⌈N/LANES⌉ blocks of (LANES, SLICES) threads; see :class:`PairPart` and
    :class:`~nbody.forces.direct.gpu_triangle.PairLaunch`. The root of the tree sets acceleration (N, 4), other nodes go to
    the stack.
    """
    row_components, column_components = (
        (4 if Outputs.ENERGY in outputs else 3),
        (4 if outputs == Outputs.POTENTIAL else 3),
    )
    tile_size, chunk_size, bodies = tiling.tile, tiling.chunk, tiling.bodies
    before, block_with = compute.device_function(units_before), compute.device_function(block_of)
    factor_of = last_factor(masses, column_components, real)
    stride = 1 if shared else SLICES

    @compute.kernel("gpu")
    def add(body, rows, columns, starts, nodes, acceleration, G, units, run, first, node):
        of_slice = cuda.shared.array((4, SLICES, LANES), np.float64)
        tiles = cuda.shared.array((2, SEGMENTS), np.int32)
        runs = cuda.shared.array((2, SEGMENTS), np.int32)
        waiting = cuda.local.array((LEVELS, 4), np.float64)
        total = cuda.local.array(4, np.float64)
        lane, piece = np.int32(cuda.threadIdx.x), np.int32(cuda.threadIdx.y)
        segment, segments, slot, mergers, root = node
        i, n = cuda.blockIdx.x * LANES + lane, body.shape[0]
        tile = cuda.blockIdx.x * LANES // tile_size  # that of all bodies of the block, as is the chunk
        column, row = i - first * tile_size, i - tile * tile_size
        own = piece * LANES + lane
        if own < segments:  # the terms of a segment: tiles above the bodies', and runs through it
            chunk, chunks = cuda.blockIdx.x * LANES // chunk_size, (n + chunk_size - 1) // chunk_size
            q, all_runs = segment + own, starts[starts.shape[0] - 1, 2]
            top = starts[q, 0] + (1 if chunk < starts[q, 1] else 0)
            bottom = min(tile, starts[q + 1, 0] + (1 if chunk < starts[q + 1, 1] else 0))
            lowest = block_with(before(tile, chunks, bodies), units, all_runs)
            highest = block_with(before(tile + 1, chunks, bodies) - 1, units, all_runs)
            tiles[0, own], tiles[1, own] = top - first, bottom - first
            runs[0, own] = max(lowest, starts[q, 2]) - run + tile - first
            runs[1, own] = min(highest + 1, starts[q + 1, 2]) - run + tile - first
        cuda.syncthreads()
        begin, offset, each = np.int32(0), piece, np.int32(1)
        if shared:
            each = max(np.int32(1), np.int32(segments) // np.int32(SLICES))  # segments of a thread, a power of two
            begin, offset = piece * each, np.int32(0)
        for c in range(4):
            total[c] = 0.0
        if i < n and begin < segments:
            for k in range(each):
                for c in range(4):
                    total[c] = 0.0
                for above in range(tiles[0, begin + k] + offset, tiles[1, begin + k], stride):
                    for c in range(column_components):
                        total[c] += columns[above, c, column]
                for block in range(runs[0, begin + k] + offset, runs[1, begin + k], stride):
                    for c in range(row_components):
                        total[c] += rows[block, c, row]
                if shared:
                    level = 0
                    while k >> level & 1:
                        for c in range(row_components):
                            total[c] = waiting[level, c] + total[c]
                        level += 1
                    for c in range(row_components):
                        waiting[level, c] = total[c]
        for c in range(row_components):
            of_slice[c, piece, lane] = total[c]
        cuda.syncthreads()
        if piece >= row_components or i >= n:
            return
        half = 1
        while half < SLICES:
            for other in range(0, SLICES, 2 * half):
                of_slice[piece, other, lane] += of_slice[piece, other + half, lane]
            half *= 2
        result = of_slice[piece, 0, lane]
        for merger in range(1, mergers + 1):
            result = nodes[slot - merger, piece, i] + result
        if root:
            acceleration[i, piece] = factor_of(body, i, piece, G) * result
        else:
            nodes[slot - mergers, piece, i] = result

    return add


@cache
def root_kernel(masses: str, real: type, of_each: bool) -> Any:
    """The kernel that adds the nodes of several devices, ``kernel(body, nodes, order, acceleration, G)``: ``order`` (M, 2)
    gives the slots of the nodes in the order of the segments, and the mergers after each. A thread per body; blockIdx.y is
    the component."""
    factor_of = last_factor(masses, 4 if of_each else 3, real)

    @compute.kernel("gpu")
    def add_nodes(body, nodes, order, acceleration, G):
        stack = cuda.local.array(DEPTH, np.float64)
        i, component, depth = cuda.grid(1), cuda.blockIdx.y, 0
        if i >= body.shape[0]:
            return
        for k in range(order.shape[0]):
            total = nodes[order[k, 0], component, i]
            for _ in range(order[k, 1]):
                depth -= 1
                total = stack[depth] + total
            stack[depth] = total
            depth += 1
        acceleration[i, component] = factor_of(body, i, component, G) * stack[0]

    return add_nodes
