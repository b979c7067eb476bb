"""k11, k12, k13: a register tile computed by outer products: 2x2, then 4x4, then 8x8 results per thread.

Instead of a row times a column, a thread multiplies a column of A (R numbers, in registers) by a row of B (R numbers): R²
multiply-adds for 2R reads. The block's tile is 16R x 16R, so a larger R also reuses each number from global memory more
often.

H200, n = 2048: 13.9, 20.2 and 20.7 TFLOP/s in float32, 8.3, 12.0 and 14.2 in float64. A small product has too few large
tiles: at n = 512 the 8x8 kernel has 16 blocks for 132 multiprocessors, and 2.9 TFLOP/s against 8.4 of the 2x2 kernel.

These rungs start from k06 and read single words, so that only one idea is new: k11 is slower than k10 (20.1). k13 needs half
of the reads of k12, but gains little: with 167 registers per thread only one block fits on a multiprocessor.
"""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import FAST, cuda, device_function
from nbody.compute.in_kernels.unroll import unrolled
from nbody.linalg.rung import Rung, by_tiles, tile_reads
from nbody.linalg.staging import slab_filler

SIDE = 16
"""Threads along each side of a block."""
DEPTH = 8
"""Numbers along k that are in shared memory at a time."""


@cache
def kernel(real: Any, side: int) -> Any:
    """``side`` x ``side`` results per thread: rows y, y + 16, ... and columns x, x + 16, ... of the block's tile."""
    tile, threads = SIDE * side, SIDE * SIDE
    each = tile * DEPTH // threads  # numbers of a slab that a thread loads

    @device_function
    def step(i, sums, left, right, a_slab, b_slab, x, y):
        for r in range(side):
            left[r] = a_slab[y + r * SIDE, i]
            right[r] = b_slab[i, x + r * SIDE]
        for r in range(side):
            for q in range(side):
                sums[r, q] += left[r] * right[q]

    multiply = unrolled(step, DEPTH)
    fill_a, fill_b = slab_filler(real, tile, DEPTH, threads), slab_filler(real, DEPTH, tile, threads)

    @compute.kernel("gpu", **FAST)
    def outer_products(a, b, c):
        a_slab = cuda.shared.array((tile, DEPTH), real)
        b_slab = cuda.shared.array((DEPTH, tile), real)
        registers = cuda.local.array(each, real)
        left = cuda.local.array(side, real)
        right = cuda.local.array(side, real)
        sums = cuda.local.array((side, side), real)
        m, k = a.shape
        n = b.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, column = cuda.blockIdx.y * tile, cuda.blockIdx.x * tile
        for r in range(side):
            for q in range(side):
                sums[r, q] = real(0)
        for first in range(0, k, DEPTH):
            fill_a(a_slab, registers, a, row, first, y * SIDE + x)
            fill_b(b_slab, registers, b, first, column, y * SIDE + x)
            cuda.syncthreads()
            multiply(sums, left, right, a_slab, b_slab, x, y)
            cuda.syncthreads()
        for r in range(side):
            for q in range(side):
                i, j = row + y + r * SIDE, column + x + q * SIDE
                if i < m and j < n:
                    c[i, j] = sums[r, q]

    return outer_products


def _rung(side: int, improves: str) -> Rung:
    tile = SIDE * side

    return Rung(
        title=f"outer products, {side}x{side} results per thread",
        idea=f"A thread multiplies {side} numbers of A with {side} of B in registers: {side * side} multiply-adds "
        f"for {2 * side} shared reads.",
        limit="one number per shared read, since a column of A is not contiguous."
        if side == 8
        else f"{2 / side:g} shared reads per multiply-add; a larger tile needs fewer.",
        launch=by_tiles(lambda real: kernel(real, side), tile, (SIDE, SIDE)),
        reads=tile_reads((tile, tile), (side, side)),
        improves=improves,
    )


TWO = _rung(2, "k06")
FOUR = _rung(4, "k11")
EIGHT = _rung(8, "k12")
