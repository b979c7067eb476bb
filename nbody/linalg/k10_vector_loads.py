"""k10: 128-bit loads. One instruction loads four float32 (two float64), from global and from shared memory.

All lanes of a warp read the same number of A (a broadcast), so that 16 bytes take no longer than 4: a thread reads V = 4
(float64: 2) numbers of a row of A along k at a time, and the window is filled with 1/V of the loads. Rows whose length is
not a multiple of V are copied number by number.

H200, n = 2048: 20.1 TFLOP/s in float32, 10.5 in float64.
"""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import FAST, cuda
from nbody.linalg.intrinsics import move_vector, vector_length
from nbody.linalg.k09_sliding_window import DEPTH, RESULTS, ROWS, THREADS, TILE
from nbody.linalg.rung import Reads, Rung, by_tiles
from nbody.linalg.staging import vector_fetcher


@cache
def kernel(real: Any) -> Any:
    """The kernel of k09 with V numbers (16 bytes) per load."""
    length = vector_length(real)
    fetch = vector_fetcher(real)
    a_vectors, b_vectors = DEPTH // length, TILE // length

    @compute.kernel("gpu", **FAST)
    def vector_loads(a, b, c):
        a_window = cuda.shared.array((TILE, DEPTH), real)
        b_window = cuda.shared.array((DEPTH, TILE), real)
        words = cuda.local.array(length, real)
        sums = cuda.local.array(RESULTS, real)
        m, k = a.shape
        n = b.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        top, left = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
        for r in range(RESULTS):
            sums[r] = real(0)
        for first in range(0, k, DEPTH):
            for e in range(y * TILE + x, TILE * a_vectors, THREADS):
                fetch(words, 0, a, top + e // a_vectors, first + e % a_vectors * length)
                move_vector(a_window, e * length, words, 0)
                fetch(words, 0, b, first + e // b_vectors, left + e % b_vectors * length)
                move_vector(b_window, e * length, words, 0)
            cuda.syncthreads()
            for i in range(0, DEPTH, length):
                for r in range(RESULTS):
                    move_vector(words, 0, a_window, (y + r * ROWS) * DEPTH + i)
                    for word in range(length):
                        sums[r] += words[word] * b_window[i + word, x]
            cuda.syncthreads()
        for r in range(RESULTS):
            row, column = top + y + r * ROWS, left + x
            if row < m and column < n:
                c[row, column] = sums[r]

    return vector_loads


RUNG = Rung(
    title="128-bit loads",
    idea="Four numbers per load: the window is filled, and A's rows are read from it, in vectors along k.",
    limit="a thread still works on one column: each vector of A serves four multiply-adds.",
    launch=by_tiles(kernel, TILE, (TILE, ROWS)),
    reads=lambda shape: Reads(2 * shape.k / TILE, shape.k / 4 + shape.k / RESULTS),
    improves="k09",
    claims=frozenset({"vector loads"}),
)
