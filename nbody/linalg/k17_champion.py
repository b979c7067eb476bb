"""k17: the champion. Asynchronous copies in stages, warp tiles, and for small products a sum split over blocks.

- ``cp.async`` brings slabs from global to shared memory without passing through registers, ahead of the
  arithmetic. A is transposed on its way, element by element; B comes in 128-bit copies.
- The block's tile is divided among warps, a warp's among its lanes as compactly as it goes: then the lanes
  share most of what they read, and its 128-bit reads have no bank conflicts.
- With 8x16 results a thread, 6 reads feed 128 multiply-adds; two blocks of 4 warps share a multiprocessor.
- A product with fewer tiles than multiprocessors is split along k. The blocks of a tile leave partial sums, and
  the last to finish adds them in a fixed order: no floating-point atomics, the same bits every time.

H200, float32: 46.9 TFLOP/s at n = 2048, 47.6 at 4096, 48.0 at 8192 (93.0, 92.7 and 94.0 % of cuBLAS in the same
run); 36.8 at 1024 (cuBLAS: 37.9). float64: 24.2 TFLOP/s at 4096, of 33.5. A profile shows the float pipes busy
for some 70 % of the time in both. In float64 the register file is the likely limit: a multiply-add with three
fresh factors takes three cycles to read them and two to compute, and the compiler's code re-uses a factor in
only six of ten.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody.gpu import FAST, bounded, cuda
from nbody.linalg import k18_skinny
from nbody.linalg.intrinsics import commit_copies, copies_waiter, vector_length
from nbody.linalg.register_tile import register_tile
from nbody.linalg.rung import Launch, Rung, Scratch, Shape, tile_reads
from nbody.linalg.staging import slab_copier

WARP = 32


class Tiling(NamedTuple):
    """How a product is cut: (rows, columns) of C for a block, a warp, a thread; slab depth, slabs on chip,
    blocks that share a multiprocessor."""

    block: tuple[int, int]
    warp: tuple[int, int]
    thread: tuple[int, int]
    depth: int = 8
    stages: int = 3
    resident: int = 2

    @property
    def warps(self) -> tuple[int, int]:
        """Warps along the rows and columns of a block's tile."""
        return self.block[0] // self.warp[0], self.block[1] // self.warp[1]

    @property
    def threads(self) -> int:
        """Threads a block."""
        return self.warps[0] * self.warps[1] * WARP


@cache
def partial_adder(real: Any, tiling: Tiling, splits: int) -> Any:
    """A device function by which the last block of a tile to arrive adds up the ``splits`` partial sums."""
    (height, width), threads = tiling.block, tiling.threads

    @cuda.jit(device=True, **FAST)
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


@cache
def kernel(real: Any, tiling: Tiling, splits: int, vectors: bool, guarded: bool) -> Any:
    """The kernel for a tiling. ``vectors``: rows of B are multiples of V numbers; ``guarded``: some tile or
    slab is ragged."""
    (height, width), (warp_height, warp_width), (rows, columns), depth, stages, resident = tiling
    length = vector_length(real)
    lanes = warp_width // columns  # along the columns of a warp's tile
    strides = (warp_height // rows * length, lanes * length)
    pitch, results = height + length, rows * columns
    threads, warps = tiling.threads, tiling.warps[1]
    tile = register_tile(real, rows, columns, strides, depth, (pitch, width))
    copy_a = slab_copier(height, depth, threads, (1, pitch), 1, guarded)
    copy_b = slab_copier(depth, width, threads, (width, 1), length if vectors else 1, guarded)
    wait_for_slab, add_up = copies_waiter(stages - 2), partial_adder(real, tiling, splits)

    @cuda.jit(**bounded(threads, resident))
    def champion(a, b, c, partial, arrived):
        a_slabs = cuda.shared.array((stages, depth, pitch), real)
        b_slabs = cuda.shared.array((stages, depth, width), real)
        last = cuda.shared.array(1, np.int32)
        left = cuda.local.array(rows, real)
        right = cuda.local.array(columns, real)
        sums = cuda.local.array(results, real)
        m, k = a.shape
        t = cuda.threadIdx.x
        warp, lane = t // WARP, t % WARP
        u = warp // warps * warp_height + lane // lanes * length  # the thread's first row and column in the tile
        v = warp % warps * warp_width + lane % lanes * length
        top, edge = cuda.blockIdx.y * height, cuda.blockIdx.x * width
        slabs = -(-k // depth)
        begin = slabs * cuda.blockIdx.z // splits
        end = slabs * (cuda.blockIdx.z + 1) // splits
        tile.clear(sums)
        for s in range(stages - 1):
            if begin + s < end:
                copy_a(a_slabs, s * depth * pitch, a, top, (begin + s) * depth, t)
                copy_b(b_slabs, s * depth * width, b, (begin + s) * depth, edge, t)
            commit_copies()
        now, ahead = 0, stages - 1
        for slab in range(begin, end):
            wait_for_slab()
            cuda.syncthreads()  # this slab has arrived, and nobody reads the one before any more
            if slab + stages - 1 < end:
                copy_a(a_slabs, ahead * depth * pitch, a, top, (slab + stages - 1) * depth, t)
                copy_b(b_slabs, ahead * depth * width, b, (slab + stages - 1) * depth, edge, t)
            commit_copies()
            tile.multiply(sums, left, right, a_slabs, now * depth * pitch + u, b_slabs, now * depth * width + v)
            now = now + 1 if now + 1 < stages else 0
            ahead = ahead + 1 if ahead + 1 < stages else 0
        if splits == 1:
            tile.store(sums, c, 0, m, top + u, edge + v)
        else:
            tile.store(sums, partial, cuda.blockIdx.z * m, m, top + u, edge + v)
            add_up(partial, arrived, last, c, top, edge, t)

    return champion


TILINGS = {
    "float32": (
        (240, Tiling((128, 128), (64, 64), (8, 16), depth=16, stages=2, resident=2)),
        (120, Tiling((64, 128), (32, 64), (8, 8), depth=16, stages=3, resident=3)),
        (120, Tiling((32, 64), (16, 32), (4, 4), depth=16, stages=3, resident=4)),
        (0, Tiling((32, 32), (16, 32), (4, 4), depth=16, stages=3, resident=8)),
    ),
    "float64": (
        (120, Tiling((64, 64), (64, 32), (8, 8), depth=16, stages=2, resident=4)),
        (0, Tiling((32, 32), (16, 32), (4, 4), depth=16, stages=3, resident=4)),
    ),
}
"""Tilings by precision, from large to small, each with the tiles that it needs to keep an H200's 132 multiprocessors
busy: measured at n = 256, 512, 1024, 1536, 2048, 4096 and 8192."""
BLOCKS = 240
"""Blocks that a product too small for its tiles is split into along k."""
LEAST_DEPTH = 1024
"""The shortest sum worth splitting off: below, adding up the parts takes longer than it saves."""


def plan(shape: Shape, dtype: Any) -> tuple[Tiling, int]:
    """The tiling, and the number of parts along k, for a shape."""

    def tiles(tiling: Tiling) -> int:
        return -(-shape.m // tiling.block[0]) * -(-shape.n // tiling.block[1])

    tiling = next(tiling for enough, tiling in TILINGS[dtype.name] if tiles(tiling) >= enough)
    return tiling, max(1, min(BLOCKS // tiles(tiling), shape.k // LEAST_DEPTH))


def tiled_launch(shape: Shape, dtype: Any, tiling: Tiling, splits: int) -> Launch:
    """The launch for a given tiling."""
    height, width = tiling.block
    vectors = shape.n % vector_length(dtype) == 0
    guarded = shape.m % height > 0 or shape.n % width > 0 or shape.k % tiling.depth > 0
    grid = (-(-shape.n // width), -(-shape.m // height), splits)
    partial = Scratch(dtype.type, (splits * shape.m, shape.n) if splits > 1 else (1, 1))
    arrived = Scratch(np.int32, (grid[0] * grid[1],) if splits > 1 else (1,))
    return Launch(kernel(dtype.type, tiling, splits, vectors, guarded), grid, (tiling.threads,), (partial, arrived))


def launch(shape: Shape, dtype: Any) -> Launch:
    """The tuned tiling for the shape; the skinny kernel (k18) where the result has no more than 4 columns."""
    if shape.n <= k18_skinny.COLUMNS:
        return k18_skinny.launch(shape, dtype)
    return tiled_launch(shape, dtype, *plan(shape, dtype))


RUNG = Rung(
    title="champion",
    idea="Asynchronous copies ahead of the arithmetic, tiles for blocks, warps and threads, small products split along k.",
    limit="the float32 pipes: each scheduler issues a multiply-add in most of its slots.",
    launch=launch,
    reads=tile_reads((128, 128), (8, 16), words=4),
    improves="k15",
    claims=frozenset({"vector loads", "asynchronous copies"}),
)
