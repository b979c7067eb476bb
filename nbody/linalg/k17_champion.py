"""k17: the champion. Asynchronous copies in stages, warp tiles, teams of warps that share a sum.

- ``cp.async`` copies slabs from global to shared memory without registers, ahead of the arithmetic. A is transposed element
  by element on the way; B is copied 128 bits at a time.
- The block's tile is divided among warps, and a warp's tile among its lanes, as compactly as possible: then the lanes share
  most of their reads, and 128-bit reads have no bank conflicts.
- With 8x16 results per thread, 6 reads serve 128 multiply-adds; two blocks of 4 warps fit on a multiprocessor.
- In float32, if there are few tiles of 128x128 (:func:`plan`), two or four teams of warps work on the same tile. Each takes
  every second (fourth) slab and has a separate barrier: while one team waits another computes. The first team adds the sums.
- A product with fewer tiles than multiprocessors and a long sum is split along k. The blocks of a tile store partial sums,
  and the last block to finish adds them in a fixed order: no floating-point atomics, the same bits every time.

H200, float32: 47.7 TFLOP/s at n = 2048, 48.9 at 4096, 50.2 at 8192 (94.3, 94.7 and 98.9 % of cuBLAS in the same
run); 53.4 µs at 1024 (cuBLAS: 56.6), 12.2 at 512 (14.1), 4.5 at 256 (8.2).

float64: 24.9 TFLOP/s at 4096, of 33.5. It is limited by register reads: a multiply-add takes two cycles, or three if it
reads all its operands from registers, and each of the 299 other instructions per 1024 multiply-adds takes about one. The
tensor cores (k21) have no such limit.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import bounded, cuda
from nbody.linalg import k18_skinny, partial_sums
from nbody.linalg.intrinsics import commit_copies, copies_waiter, vector_length, wait_for_team
from nbody.linalg.partial_sums import partial_adder, team_adder
from nbody.linalg.register_tile import COLUMNS_TURNING, ROWS, ROWS_TURNING, register_tile
from nbody.linalg.rung import ProductLaunch, ProductShape, Rung, tile_reads
from nbody.linalg.staging import slab_copier

WARP = 32


class ProductTiling(NamedTuple):
    """How a product is divided: (rows, columns) of C per block, per warp, per thread; slab depth, slabs in shared memory per
    team, blocks per multiprocessor, teams per tile; the path through a thread's results."""

    block: tuple[int, int]
    warp: tuple[int, int]
    thread: tuple[int, int]
    depth: int = 8
    stages: int = 3
    resident: int = 2
    teams: int = 1
    path: str = COLUMNS_TURNING

    @property
    def warps(self) -> tuple[int, int]:
        """Warps of a team along the rows and columns of a block's tile."""
        return self.block[0] // self.warp[0], self.block[1] // self.warp[1]

    @property
    def threads(self) -> int:
        """Threads per block."""
        return self.warps[0] * self.warps[1] * WARP * self.teams


@cache
def kernel(real: Any, tiling: ProductTiling, splits: int, vectors: bool, guarded: bool) -> Any:
    """The kernel for a tiling. ``vectors``: the rows of B have a multiple of V numbers; ``guarded``: some tile or slab is
    incomplete."""
    (height, width), (warp_height, warp_width), (rows, columns), depth, stages, resident, teams, path = tiling
    length = vector_length(real)
    lanes = warp_width // columns  # along the columns of a warp's tile
    strides = (warp_height // rows * length, lanes * length)
    pitch, results = height + length, rows * columns
    along, threads = tiling.warps[1], tiling.threads
    members = threads // teams
    a_size, b_size, b_slabs = depth * pitch, depth * width, stages * depth * pitch
    share = stages * (a_size + b_size)  # a team's shared memory
    room = max(teams * share, (teams > 1) * results * members)
    tile = register_tile(real, rows, columns, strides, depth, (pitch, width), path)
    copy_a = slab_copier(height, depth, members, (1, pitch), 1, guarded)
    copy_b = slab_copier(depth, width, members, (width, 1), length if vectors else 1, guarded)
    wait_for_slab, add_up = copies_waiter(stages - 2), partial_adder(real, tiling.block, threads, splits)
    join = team_adder(real, results, members, teams)

    @compute.kernel("gpu", **bounded(threads, resident))
    def champion(a, b, c, partial, arrived):
        slabs = cuda.shared.array(room, real)
        last = cuda.shared.array(1, np.int32)
        left = cuda.local.array(rows, real)
        right = cuda.local.array(columns, real)
        sums = cuda.local.array(results, real)
        m, k = a.shape
        team, t = cuda.threadIdx.x // members, cuda.threadIdx.x % members
        warp, lane = t // WARP, t % WARP
        u = warp // along * warp_height + lane // lanes * length  # the thread's first row and column in the tile
        v = warp % along * warp_width + lane % lanes * length
        top, edge = cuda.blockIdx.y * height, cuda.blockIdx.x * width
        # Indices of 32 bits: Numba's own have 64 bits, which take two instructions and two registers each.
        a_start, b_start = np.int32(team * share), np.int32(team * share + b_slabs)
        count = -(-k // depth)
        begin = np.int32(count * cuda.blockIdx.z // splits + team)
        end = np.int32(count * (cuda.blockIdx.z + 1) // splits)
        tile.clear(sums)
        for s in range(stages - 1):
            coming = np.int32(begin + s * teams)
            if coming < end:
                copy_a(slabs, a_start + s * a_size, a, top, coming * depth, t)
                copy_b(slabs, b_start + s * b_size, b, coming * depth, edge, t)
            commit_copies()
        now, ahead = np.int32(0), np.int32(stages - 1)
        for slab in range(begin, end, np.int32(teams)):
            wait_for_slab()
            if teams == 1:  # this slab has arrived, and no thread reads the previous one
                cuda.syncthreads()
            else:
                wait_for_team(team + 1, members)
            coming = np.int32(slab + (stages - 1) * teams)
            if coming < end:
                copy_a(slabs, np.int32(a_start + ahead * a_size), a, top, np.int32(coming * depth), t)
                copy_b(slabs, np.int32(b_start + ahead * b_size), b, np.int32(coming * depth), edge, t)
            commit_copies()
            at_a, at_b = np.int32(a_start + u + now * a_size), np.int32(b_start + v + now * b_size)
            tile.multiply(sums, left, right, slabs, at_a, slabs, at_b)
            now = np.int32(now + 1) if now < stages - 1 else np.int32(0)
            ahead = np.int32(ahead + 1) if ahead < stages - 1 else np.int32(0)
        if teams > 1:
            join(sums, left, slabs, team, t)
        if splits == 1:
            if team == 0:
                tile.store(sums, c, 0, m, top + u, edge + v)
        else:
            if team == 0:
                tile.store(sums, partial, cuda.blockIdx.z * m, m, top + u, edge + v)
            add_up(partial, arrived, last, c, top, edge, cuda.threadIdx.x)

    return champion


TILINGS = {
    "float32": (
        (240, ProductTiling((128, 128), (64, 64), (8, 16), depth=16, stages=2, resident=2)),
        (120, ProductTiling((64, 64), (32, 64), (8, 8), depth=16, stages=2, resident=2, teams=2)),
        (120, ProductTiling((32, 64), (32, 32), (4, 8), depth=16, stages=2, resident=1, teams=2)),
        (0, ProductTiling((16, 32), (16, 32), (4, 4), depth=16, stages=3, resident=1, teams=4)),
    ),
    "float64": (
        (120, ProductTiling((64, 64), (64, 32), (8, 8), depth=16, stages=2, resident=4, path=ROWS_TURNING)),
        (0, ProductTiling((32, 32), (16, 32), (4, 4), depth=16, stages=3, resident=4, path=ROWS)),
    ),
}
"""Tilings by precision, from large to small, each with the number of tiles from which on it keeps an H200's 132
multiprocessors busy: measured at n = 256, 512, 1024, 2048, 4096 and 8192."""
LEAST_DEPTH = 1024
"""The shortest part of a sum: with shorter parts, adding them takes longer than the split saves."""


def plan(shape: ProductShape, dtype: Any) -> tuple[ProductTiling, int]:
    """The tiling, and the number of parts along k, for a shape."""
    return partial_sums.plan(shape, TILINGS[dtype.name], LEAST_DEPTH)


def tiled_launch(shape: ProductShape, dtype: Any, tiling: ProductTiling, splits: int) -> ProductLaunch:
    """The launch for a given tiling."""
    height, width = tiling.block
    vectors = shape.n % vector_length(dtype) == 0
    grid = (-(-shape.n // width), -(-shape.m // height), splits)
    scratch = partial_sums.partial_scratch(dtype.type, shape, splits, grid[0] * grid[1])
    guarded = partial_sums.incomplete(shape, tiling.block, tiling.depth)
    return ProductLaunch(kernel(dtype.type, tiling, splits, vectors, guarded), grid, (tiling.threads,), scratch)


def launch(shape: ProductShape, dtype: Any) -> ProductLaunch:
    """The tuned tiling for the shape; the skinny kernel (k18) if the result has at most 4 columns."""
    if shape.n <= k18_skinny.COLUMNS:
        return k18_skinny.launch(shape, dtype)
    return tiled_launch(shape, dtype, *plan(shape, dtype))


RUNG = Rung(
    title="champion",
    idea="Asynchronous copies ahead of the arithmetic, tiles for blocks, warps and threads, teams of warps for small n.",
    limit="float32: issue slots, most of them multiply-adds; float64: register reads, two operands in two cycles.",
    launch=launch,
    reads=tile_reads((128, 128), (8, 16), words=4),
    improves="k15",
    claims=frozenset({"vector loads", "asynchronous copies"}),
)
