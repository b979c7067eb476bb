"""A sum along k in parts: how many, and how they are added, over a block's teams of warps and over several blocks. Both use
a fixed order, so that the same product has the same bits every time."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from nbody.compute import FAST, cuda, device_function
from nbody.compute.in_kernels.unroll import unrolled
from nbody.linalg.intrinsics import move_vector, vector_length
from nbody.linalg.rung import ProductShape, Scratch

BLOCKS = 240
"""A product with fewer tiles is split along k into at most this number of blocks; an H200 has 132 multiprocessors."""


def plan(shape: ProductShape, tilings: Sequence[tuple[int, Any]], least_depth: int) -> tuple[Any, int]:
    """The tiling, and the number of parts along k, for a shape. ``tilings``: from large to small, each with the number of
    tiles from which on it keeps a card busy; ``least_depth``: the shortest part of a sum."""

    def tiles(tiling: Any) -> int:
        return -(-shape.m // tiling.block[0]) * -(-shape.n // tiling.block[1])

    tiling = next(tiling for enough, tiling in tilings if tiles(tiling) >= enough)
    return tiling, max(1, min(BLOCKS // tiles(tiling), shape.k // least_depth))


def partial_scratch(real: Any, shape: ProductShape, splits: int, tiles: int) -> tuple[Scratch, Scratch]:
    """The memory of partial sums, and of the counters of finished blocks of each tile."""
    partial = Scratch(real, (splits * shape.m, shape.n) if splits > 1 else (1, 1))
    return partial, Scratch(np.int32, (tiles,) if splits > 1 else (1,))


def incomplete(shape: ProductShape, block: tuple[int, int], depth: int) -> bool:
    """True if some tile or slab is incomplete."""
    return shape.m % block[0] > 0 or shape.n % block[1] > 0 or shape.k % depth > 0


@cache
def team_adder(real: Any, results: int, members: int, teams: int) -> Any:
    """A device function by which a block's first team of ``members`` threads adds the sums of the other teams to its own,
    one team after the other, through shared memory.

    ``join(sums, other, shared, team, t)``, for thread t of its team: ``sums`` holds ``results`` numbers, ``other``
    has room for V, ``shared`` for results·members.
    """
    length = vector_length(real)

    @device_function
    def leave(r, sums, shared, t):
        move_vector(shared, (r * members + t) * length, sums, r * length)

    @device_function
    def take(r, sums, other, shared, t):
        move_vector(other, 0, shared, (r * members + t) * length)
        for word in range(length):
            sums[r * length + word] += other[word]

    leave_all, take_all = unrolled(leave, results // length), unrolled(take, results // length)

    # So that the simulator replaces ``cuda`` in this file, as it does in that of a kernel.
    @cuda.jit(device=True, **FAST)
    def join(sums, other, shared, team, t):
        for giver in range(1, teams):
            cuda.syncthreads()
            if team == giver:
                leave_all(sums, shared, t)
            cuda.syncthreads()
            if team == 0:
                take_all(sums, other, shared, t)

    return join


@cache
def partial_adder(real: Any, block: tuple[int, int], threads: int, splits: int) -> Any:
    """A device function by which the last block of a tile to finish adds the ``splits`` partial sums.

    ``add_up(partial, arrived, last, c, top, edge, t)``: ``partial`` (splits·m, n) holds the partial sums, ``arrived``
    counts the finished blocks of each tile, ``last`` is one integer of shared memory; the tile begins at c[top, edge].
    """
    height, width = block

    @cuda.jit(device=True, **FAST)  # as above
    def add_up(partial, arrived, last, c, top, edge, t):
        m, n = c.shape
        place = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
        cuda.threadfence()  # this thread's partial sums are visible before the block is counted
        cuda.syncthreads()
        if t == 0:
            last[0] = cuda.atomic.add(arrived, place, 1) == splits - 1
        cuda.syncthreads()
        if last[0]:
            cuda.threadfence()
            for e in range(t, height * width, threads):
                i, j = top + e // width, edge + e % width
                if i < m and j < n:
                    total = real(0)
                    for z in range(splits):
                        total += partial[z * m + i, j]
                    c[i, j] = total
            if t == 0:
                arrived[place] = 0  # for the next launch

    return add_up
