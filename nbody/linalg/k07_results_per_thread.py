"""k07 and k08: two, then four results per thread: instruction-level parallelism, and the first reuse in registers.

The tile stays 32x32, but half (a quarter) of the threads compute it, each several rows of one column. The sums of a thread
are independent, so that one addition can run while another waits; and each number of B is read once for all of them.

H200, n = 2048: 12.6 and 15.6 TFLOP/s in float32 (k06: 8.1), 6.5 and 8.9 in float64 (4.6).
"""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import FAST, cuda, device_function
from nbody.compute.in_kernels.unroll import unrolled
from nbody.linalg.rung import Rung, by_tiles, tile_reads

TILE = 32


@cache
def kernel(real: Any, results: int) -> Any:
    """Tiles of 32x32 by 32 x (32 / results) threads; thread (x, y) has the rows y, y + 32/results, ... of
    column x."""
    stride = TILE // results

    @device_function
    def step(i, sums, a_tile, b_tile, x, y):
        b_i = b_tile[i, x]
        for r in range(results):
            sums[r] += a_tile[y + r * stride, i] * b_i

    multiply = unrolled(step, TILE)

    @compute.kernel("gpu", **FAST)
    def several_results(a, b, c):
        a_tile = cuda.shared.array((TILE, TILE), real)
        b_tile = cuda.shared.array((TILE, TILE), real)
        sums = cuda.local.array(results, real)
        m, k = a.shape
        n = b.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        top, column = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE + x
        for r in range(results):
            sums[r] = real(0)
        for first in range(0, k, TILE):
            for r in range(results):
                u = y + r * stride
                a_tile[u, x] = a[top + u, first + x] if top + u < m and first + x < k else real(0)
                b_tile[u, x] = b[first + u, column] if first + u < k and column < n else real(0)
            cuda.syncthreads()
            multiply(sums, a_tile, b_tile, x, y)
            cuda.syncthreads()
        for r in range(results):
            row = top + y + r * stride
            if row < m and column < n:
                c[row, column] = sums[r]

    return several_results


def _rung(results: int, words: str, improves: str) -> Rung:
    return Rung(
        title=f"{words} results per thread",
        idea=f"Each thread adds to {words} independent sums, which share the number it reads from B.",
        limit="A's numbers are still read once for every multiply-add.",
        launch=by_tiles(lambda real: kernel(real, results), TILE, (TILE, TILE // results)),
        reads=tile_reads((TILE, TILE), (results, 1)),
        improves=improves,
    )


TWO = _rung(2, "two", "k06")
FOUR = _rung(4, "four", "k07")
