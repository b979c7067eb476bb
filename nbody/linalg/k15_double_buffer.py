"""k15: double buffering. While one slab is multiplied, the next one is loaded: 128x128 results, slabs 8 deep.

There are two slabs of each matrix. A thread starts to load its part of slab s + 1 from global memory, multiplies slab s, and
only then uses the loaded numbers: the latency of about 600 cycles is hidden by 512 multiply-adds. Writers and readers use
different slabs, so one barrier per slab is enough.

H200, n = 2048: 37.0 TFLOP/s in float32, 19.9 in float64 (k14: 36.7 and 15.5). The loaded numbers need registers (161 per
thread; limited to 128 they would spill 48 bytes), so k14's second block does not fit, and in float32 that block hid the
latency as well. The copies of k17 bypass the registers.
"""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import FAST, cuda
from nbody.linalg.intrinsics import vector_length
from nbody.linalg.k14_transposed import DEPTH, RESULTS, SIDE, SUMS, TILE, pieces
from nbody.linalg.rung import Rung, by_tiles, tile_reads


@cache
def kernel(real: Any) -> Any:
    """The kernel for a NumPy scalar type."""
    length = vector_length(real)
    tile, staged, pitch, fetch, put = pieces(real)
    slabs = 2 * DEPTH

    @compute.kernel("gpu", **FAST)
    def double_buffer(a, b, c):
        a_slabs = cuda.shared.array((slabs, pitch), real)
        b_slabs = cuda.shared.array((slabs, TILE), real)
        registers_a = cuda.local.array(staged, real)
        registers_b = cuda.local.array(staged, real)
        left = cuda.local.array(RESULTS, real)
        right = cuda.local.array(RESULTS, real)
        sums = cuda.local.array(SUMS, real)
        k = a.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        t = y * SIDE + x
        row, column = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
        tile.clear(sums)
        fetch(registers_a, registers_b, a, b, row, column, 0, t)
        put(a_slabs, b_slabs, 0, registers_a, registers_b, t)
        cuda.syncthreads()
        now = 0
        for first in range(0, k, DEPTH):
            more = first + DEPTH < k
            if more:
                fetch(registers_a, registers_b, a, b, row, column, first + DEPTH, t)
            at = now * DEPTH
            tile.multiply(sums, left, right, a_slabs, at * pitch + y * length, b_slabs, at * TILE + x * length)
            now = 1 - now
            if more:
                put(a_slabs, b_slabs, now, registers_a, registers_b, t)
            cuda.syncthreads()
        tile.store(sums, c, 0, c.shape[0], row + y * length, column + x * length)

    return double_buffer


RUNG = Rung(
    title="double-buffered slabs",
    idea="Two slabs of each matrix: the next is fetched while the present one is multiplied.",
    limit="the next slab waits in registers, which limits a multiprocessor to few warps.",
    launch=by_tiles(kernel, TILE, (SIDE, SIDE)),
    reads=tile_reads((TILE, TILE), (RESULTS, RESULTS), words=4),
    improves="k14",
    claims=frozenset({"vector loads"}),
)
