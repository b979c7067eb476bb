"""k09: a window of shared memory slides along k; more work per thread, by strides.

The tile and the block now have different shapes: 256 threads compute 64x64 results, sixteen each, and the shared window is
only 16 deep. Threads fill it by strides (element t, t + 256, ...), so any depth is possible, and a larger tile fits. Global
reads are half of those of 32x32 tiles.

H200, n = 2048: 12.0 TFLOP/s in float32 and 6.7 in float64. That is less than k08 (15.6 and 8.9), although the model predicts
1.8 times as much; at n = 1024 the difference is small, 13.9 and 8.5 (14.7 and 8.6). Global reads are halved, but shared
reads are not: 17 instead of 20 for 16 multiply-adds, since each needs another number of A. And a thread takes 128 registers
(k08: 56), so that a multiprocessor holds 16 warps instead of 32, and there are two barriers per 16 steps along k instead of
per 32. (Limiting the registers for twice as many blocks would spill 72 bytes per thread, 184 in float64.) The shape is
useful with the loads of k10 and the register tiles after it.
"""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import FAST, cuda, device_function
from nbody.compute.in_kernels.unroll import unrolled
from nbody.linalg.rung import Rung, by_tiles, tile_reads
from nbody.linalg.staging import slab_filler

TILE = 64
"""Rows and columns of C that a block computes."""
DEPTH = 16
"""Numbers along k that are in shared memory at a time."""
ROWS = 4
"""Threads along the rows; each computes every fourth row of its column."""
THREADS = TILE * ROWS
RESULTS = TILE // ROWS
EACH = TILE * DEPTH // THREADS  # numbers of a window that a thread loads


@cache
def kernel(real: Any) -> Any:
    """The kernel for a NumPy scalar type."""

    @device_function
    def step(i, sums, a_window, b_window, x, y):
        b_i = b_window[i, x]
        for r in range(RESULTS):
            sums[r] += a_window[y + r * ROWS, i] * b_i

    multiply = unrolled(step, DEPTH)
    fill_a, fill_b = slab_filler(real, TILE, DEPTH, THREADS), slab_filler(real, DEPTH, TILE, THREADS)

    @compute.kernel("gpu", **FAST)
    def sliding_window(a, b, c):
        a_window = cuda.shared.array((TILE, DEPTH), real)
        b_window = cuda.shared.array((DEPTH, TILE), real)
        registers = cuda.local.array(EACH, real)
        sums = cuda.local.array(RESULTS, real)
        m, k = a.shape
        n = b.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        top, left = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
        for r in range(RESULTS):
            sums[r] = real(0)
        for first in range(0, k, DEPTH):
            fill_a(a_window, registers, a, top, first, y * TILE + x)
            fill_b(b_window, registers, b, first, left, y * TILE + x)
            cuda.syncthreads()
            multiply(sums, a_window, b_window, x, y)
            cuda.syncthreads()
        for r in range(RESULTS):
            row, column = top + y + r * ROWS, left + x
            if row < m and column < n:
                c[row, column] = sums[r]

    return sliding_window


RUNG = Rung(
    title="sliding window, work by strides",
    idea="A shallow window of A and B slides along k under a tile of 64x64 results; a thread has 16 of them.",
    limit="each multiply-add still reads another number of A from shared memory.",
    launch=by_tiles(kernel, TILE, (TILE, ROWS)),
    reads=tile_reads((TILE, TILE), (RESULTS, 1)),
    improves="k08",
)
