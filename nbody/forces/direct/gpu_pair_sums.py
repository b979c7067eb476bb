"""Each pair once: the kernels that add the partial sums of rows and columns, and the memory for these sums.

A body's sum over one share is added in the order of the share's units, and the sums over shares are added pairwise:

    share    0   1   2   3   4   5   6   7
             └─+─┘   └─+─┘   └─+─┘   └─+─┘         a node: 2ⁿ shares from a multiple of 2ⁿ on
               └───+───┘       └───+───┘
                   └───────+───────┘               the root

So every launch, and every GPU, may add the shares that it has computed, and the result has the same bits. All sums are
float64. Nodes wait on a stack (:func:`~nbody.forces.direct.gpu_triangle.push`) until their siblings are computed.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.direct.gpu_triangle import (
    LANES,
    Launch,
    Node,
    Tiling,
    Work,
    block_of,
    nodes_of,
    push,
    units_before,
)
from nbody.gpu import cuda

SLICES = 8
"""Threads that share the partial sums of one number."""

LEVELS = 32
"""More than the tree of shares ever has."""


class Sum(NamedTuple):
    """The addition of one node: its first share, the number of its shares, its place on the stack before it is merged with
    the nodes below, the number of these mergers, and whether the result is the root."""

    share: int
    shares: int
    slot: int
    mergers: int
    root: bool


class Part:
    """What one device computes of :class:`~nbody.forces.direct.gpu_triangle.Work`: the shares ``begin`` to ``end``. Made on
    that device, it allocates the partial sums for the largest launch and all smaller ones.

    Attributes:
        launches: each with the arrays of its sums, and the nodes that are added after it. Rows are (blocks + tiles, 4, T):
            the sum of block b for tile R, both counted from the launch's first, in row b + R. (Along the runs neither b nor
            R ever decreases, and at least one of them increases: b + R is distinct for each.) Columns are (tiles, 4, W):
            the sum over tile R for body j after the tile, both counted from the launch's first: three components of the
            force, and the potential if it is computed for each body.
        places: (K + 1, 3), where each share begins.
        stack: the nodes that are left in the end, in the first slots of ``nodes`` (slots, 4, N), which may be memory of
            another device.
    """

    def __init__(self, work: Work, begin: int, end: int, dtypes: tuple[np.dtype, np.dtype], nodes: Any) -> None:
        launches, (row_dtype, column_dtype) = list(work.launches(begin, end)), dtypes
        sums, self.stack, _ = planned_sums(launches, work.shares)
        rows = cuda.device_array(max(map(work.rows, launches)), row_dtype)
        columns = cuda.device_array(max(map(work.columns, launches)), column_dtype)
        self.places = cuda.to_device(work.places)
        self.nodes = nodes
        self.launches: list[tuple[Launch, Any, Any, list[Sum]]] = []
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


def planned_sums(launches: list[Launch], shares: int) -> tuple[list[list[Sum]], list[Node], int]:
    """The nodes to add after each launch; the nodes that are left; and the slots that the stack needs. (The root of all
    ``shares`` needs none.)"""
    stack: list[Node] = []
    depth, found = 0, []
    for launch in launches:
        added: list[Sum] = []
        for node in nodes_of(launch.begin, launch.end):
            slot, mergers = len(stack), push(stack, node)
            root = stack == [(0, shares)]
            added.append(Sum(*node, slot, mergers, root))
            depth = max(depth, 0 if root else len(stack))
        found.append(added)
    return found, stack, depth


def part_bytes(work: Work, row_itemsize: int, column_itemsize: int) -> int:
    """The bytes of a :class:`Part` of all shares."""
    launches = list(work.launches(0, work.shares))
    rows, columns = max(map(work.rows, launches)), max(map(work.columns, launches))
    return rows * row_itemsize + columns * column_itemsize + planned_sums(launches, work.shares)[2] * 32 * work.count


def last_factor(masses: str, column_components: int, real: type) -> Callable:
    """The device function of the factor that the sums still lack; see :func:`nbody.forces.direct.gpu_pairs.masses_of`."""

    @gpu.device_function
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
def sum_kernel(tiling: Tiling, masses: str, real: type, of_each: bool, shared: bool) -> Any:
    """The kernel that adds the partial sums of each body: SLICES threads per body; blockIdx.y is the component.

    A share has some partial sums per body; a single thread would wait for each read. With shares (``shared``) a thread
    adds whole shares, else each thread every SLICES-th term. ``masses`` determines the factor that the sums still lack.
    Those of the potential (component 3) are weighted by the other body's mass only; with ``of_each`` they are the potential
    of each body, else the energy's.

    It is ``kernel(body, rows, columns, places, nodes, acceleration, G, units, run, first, *sum)`` with the numbers of a
    :class:`Sum`, a grid of (⌈N/LANES⌉, 3 or 4) blocks of (LANES, SLICES) threads; see :class:`Part` and
    :class:`~nbody.forces.direct.gpu_triangle.Launch`. The root of the tree sets acceleration (N, 4), other nodes go to the
    stack.
    """
    column_components = 4 if of_each else 3
    tile_size, chunk_size, bodies = tiling.tile, tiling.chunk, tiling.bodies
    before, block_with = gpu.device_function(units_before), gpu.device_function(block_of)
    factor_of = last_factor(masses, column_components, real)
    stride = 1 if shared else SLICES

    @gpu.kernel
    def add(body, rows, columns, places, nodes, acceleration, G, units, run, first, share, shares, slot, mergers, root):
        of_slice = cuda.shared.array((SLICES, LANES), np.float64)
        waiting = cuda.local.array(LEVELS, np.float64)
        lane, piece, component = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.y
        i, n, all_shares = cuda.blockIdx.x * LANES + lane, body.shape[0], places.shape[0] - 1
        begin, offset, each = share, piece, 1
        if shared:
            each = max(1, shares // SLICES)  # shares of a thread, a power of two
            begin, offset = share + piece * each, 0
        total = 0.0
        if i < n and begin < share + shares:
            tile, chunk, chunks = i // tile_size, i // chunk_size, (n + chunk_size - 1) // chunk_size
            runs = places[all_shares, 2]
            lowest = block_with(before(tile, chunks, bodies), units, runs)
            highest = block_with(before(tile + 1, chunks, bodies) - 1, units, runs)
            for own in range(each):
                q = begin + own
                total = 0.0
                if component < column_components:
                    top = places[q, 0] + (1 if chunk < places[q, 1] else 0)
                    bottom = min(tile, places[q + 1, 0] + (1 if chunk < places[q + 1, 1] else 0))
                    for above in range(top + offset, bottom, stride):
                        total += columns[above - first, component, i - first * tile_size]
                for block in range(max(lowest, places[q, 2]) + offset, min(highest + 1, places[q + 1, 2]), stride):
                    total += rows[block - run + tile - first, component, i - tile * tile_size]
                level = 0
                while own >> level & 1:
                    total = waiting[level] + total
                    level += 1
                waiting[level] = total
        of_slice[piece, lane] = total
        cuda.syncthreads()
        if piece > 0 or i >= n:
            return
        half = 1
        while half < SLICES:
            for other in range(0, SLICES, 2 * half):
                of_slice[other, lane] += of_slice[other + half, lane]
            half *= 2
        total = of_slice[0, lane]
        for merger in range(1, mergers + 1):
            total = nodes[slot - merger, component, i] + total
        if root:
            acceleration[i, component] = factor_of(body, i, component, G) * total
        else:
            nodes[slot - mergers, component, i] = total

    return add


@cache
def root_kernel(masses: str, real: type, of_each: bool) -> Any:
    """The kernel that adds the nodes of several devices, ``kernel(body, nodes, order, acceleration, G)``: ``order`` (M, 2)
    gives the slots of the nodes in the order of the shares, and the mergers after each. A thread per body; blockIdx.y is the
    component."""
    factor_of = last_factor(masses, 4 if of_each else 3, real)

    @gpu.kernel
    def add_nodes(body, nodes, order, acceleration, G):
        stack = cuda.local.array(LEVELS, np.float64)
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
