"""k21: float64 on the tensor cores, the champion in float64.

A warp multiplies 16x8 by 8x8 doubles in one instruction, at twice the rate of ordinary multiply-adds on an A100, H100 or
H200, and with their accuracy: each product is added with one rounding. The instruction takes so long that reads of shared
memory, addresses and copies run in parallel. The kernel must only keep the tensor cores busy:

- the fragments of the next 8 k are read while the present ones are multiplied, also across the barrier between two slabs:
  :mod:`nbody.linalg.double_tile`;
- ``cp.async`` copies two or more slabs ahead; they need more than the 48 KB of shared memory that a kernel gets by default;
- blocks take the tiles in groups of rows, so that blocks that run at the same time share rows of A and columns of B in the
  second-level cache;
- products with few tiles and long sums are split along k, as in k17.
"""

from functools import cache
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import SIMULATED, available, bounded, cuda, device_function, facts
from nbody.linalg import k17_champion, k18_skinny, partial_sums
from nbody.linalg.double_tile import REAL, DoubleTiling, double_copiers, double_tile
from nbody.linalg.intrinsics import AMPERE, commit_copies, copies_waiter
from nbody.linalg.partial_sums import partial_adder
from nbody.linalg.rung import ProductLaunch, ProductShape, Rung, tile_reads


@cache
def placer(group: int) -> Any:
    """A device function (tile, down, across) that returns the row and column of a tile among ``down`` x ``across`` tiles, in
    32 bits (a 64-bit division is a function call). Blocks take ``group`` rows of tiles together, column by column."""

    @device_function
    def place(tile, down, across):
        size = np.uint32(group * across)
        before = np.uint32(np.uint32(tile // size) * group)
        high, rest = np.uint32(min(down - before, group)), np.uint32(tile - before * across)
        return np.uint32(before + rest % high), np.uint32(rest // high)

    return place


@cache
def kernel(tiling: DoubleTiling, splits: int, a_vectors: bool, b_vectors: bool, guarded: bool) -> Any:
    """The kernel for a tiling. ``a_vectors``, ``b_vectors``: the rows of A, of B have even length; ``guarded``: some tile or
    slab is incomplete."""
    (height, width), (warp_height, warp_width), depth, stages, resident, *_ = tiling
    (a_held, b_held, c_held), threads, along, b_pitch = tiling.held, tiling.threads, tiling.warps[1], tiling.b_pitch
    a_size, stage = tiling.sizes[0], sum(tiling.sizes)
    ring = stages * stage
    tile, place = double_tile(tiling), placer(tiling.group)
    copy_a, copy_b = double_copiers(tiling, a_vectors, b_vectors, guarded)
    wait_for_slab, add_up = copies_waiter(stages - 2), partial_adder(REAL, tiling.block, threads, splits)
    room = tiling.shared_bytes // 8 if SIMULATED else 0  # 0: the size is given by the launch

    @compute.kernel("gpu", **bounded(threads, resident))
    def float64_tensor_cores(a, b, c, partial, arrived):
        slabs = cuda.shared.array(room, REAL, 16)
        last = cuda.shared.array(1, np.int32)
        left = cuda.local.array(a_held, REAL)
        right = cuda.local.array(b_held, REAL)
        sums = cuda.local.array(c_held, REAL)
        m, k = a.shape
        t = np.uint32(cuda.threadIdx.x)
        warp, g, q = t // 32, t % 32 // 4, t % 4
        u, v = warp // along * warp_height, warp % along * warp_width
        down, across = np.uint32((m + height - 1) // height), np.uint32((c.shape[1] + width - 1) // width)
        row, column = place(np.uint32(cuda.blockIdx.x), down, across)
        top, edge = np.int32(row * height), np.int32(column * width)
        from_a, from_b = np.int32((u + g) * 8 + 2 * q), np.int32(a_size + 2 * q * b_pitch + v + 2 * g)
        count = -(-k // depth)
        begin = np.int32(count * cuda.blockIdx.z // splits)
        end = np.int32(count * (cuda.blockIdx.z + 1) // splits)
        for e in range(c_held):
            sums[e] = REAL(0)
        for s in range(stages - 1):
            coming = np.int32(begin + s)
            if coming < end:
                copy_a(slabs, s * stage, a, top, coming * depth, t)
                copy_b(slabs, s * stage + a_size, b, coming * depth, edge, t)
            commit_copies()
        wait_for_slab()
        cuda.syncthreads()
        tile.load_first(left, right, slabs, from_a, from_b)
        now, ahead = np.int32(0), np.int32((stages - 1) * stage)
        for slab in range(begin, end):
            coming = np.int32(slab + (stages - 1))
            if coming < end:
                copy_a(slabs, ahead, a, top, np.int32(coming * depth), t)
                copy_b(slabs, np.int32(ahead + a_size), b, np.int32(coming * depth), edge, t)
            commit_copies()
            tile.multiply(sums, left, right, slabs, np.int32(from_a + now), np.int32(from_b + now))
            wait_for_slab()
            cuda.syncthreads()  # the next slab has arrived, and all warps have read this one
            ahead = now
            now = np.int32(now + stage) if now < ring - stage else np.int32(0)
            tile.load_first(left, right, slabs, np.int32(from_a + now), np.int32(from_b + now))
            tile.multiply_last(sums, left, right)
        i, j = np.int32(top + u + 2 * q), np.int32(edge + v + 2 * g)
        if splits == 1:
            tile.store(sums, c, 0, m, i, j)
        else:
            tile.store(sums, partial, cuda.blockIdx.z * m, m, i, j)
            add_up(partial, arrived, last, c, top, edge, t)

    return float64_tensor_cores


TILINGS = (
    (120, DoubleTiling((128, 128), (64, 32))),
    (200, DoubleTiling((64, 64), (32, 32), resident=2)),
    (0, DoubleTiling((32, 64), (16, 32), resident=2)),
)
"""Tilings from large to small, each with the number of tiles from which on it keeps an H200's 132 multiprocessors busy."""
LEAST_DEPTH = 512
"""The shortest part of a sum that is worth a split."""


def plan(shape: ProductShape) -> tuple[DoubleTiling, int]:
    """The tiling, and the number of parts along k, for a shape."""
    return partial_sums.plan(shape, TILINGS, LEAST_DEPTH)


def compute_capability() -> tuple[int, int]:
    """The compute capability of the card, or of an H200 if there is none."""
    return facts().compute_capability if available() else (9, 0)


def tiled_launch(shape: ProductShape, tiling: DoubleTiling, splits: int) -> ProductLaunch:
    """The launch for a given tiling."""
    tiles = -(-shape.m // tiling.block[0]) * -(-shape.n // tiling.block[1])
    guarded = partial_sums.incomplete(shape, tiling.block, tiling.depth)
    program = kernel(tiling, splits, shape.k % 2 == 0, shape.n % 2 == 0, guarded)
    scratch = partial_sums.partial_scratch(REAL, shape, splits, tiles)
    return ProductLaunch(program, (tiles, 1, splits), (tiling.threads,), scratch, tiling.shared_bytes)


def launch(shape: ProductShape, dtype: Any) -> ProductLaunch:
    """The tuned tiling for the shape; k17 on a card without float64 tensor cores, k18 if C has at most 4 columns."""
    if shape.n <= k18_skinny.COLUMNS or compute_capability() < (8, 0):
        return k17_champion.launch(shape, dtype)
    tiling, splits = plan(shape)
    if compute_capability() < (9, 0):
        tiling = tiling._replace(instruction=AMPERE)
    return tiled_launch(shape, tiling, splits)


RUNG = Rung(
    title="tensor cores, float64",
    idea="A warp multiplies 16x8 by 8x8 doubles in one instruction; the next fragments are read meanwhile.",
    limit="the rate of the tensor cores; at the end of a product, multiprocessors without a tile.",
    launch=launch,
    reads=tile_reads(TILINGS[0][1].block, TILINGS[0][1].warp, words=2),  # the 32 lanes read a warp's tile together
    improves="k17",
    dtypes=("float64",),
    claims=frozenset({"tensor cores", "asynchronous copies", "vector loads"}),
    example=4096,
)
