"""k18: the skinny product (rows x k)·(k x 4), which gravity needs. It is memory-bound: the goal is the card's bandwidth.

B has 4 columns, so every number of A is used in 4 multiply-adds and never again: tiles would gain nothing. All threads of a
block stride along k over the same few rows, with 128-bit loads of A, and load the corresponding rows of B. B is small enough
for the caches, and each of its numbers is used for all rows. At the end the block adds the sums of its threads.

H200, N = 20480: 0.378 ms in float32, 4.4 TB/s of reads (cuBLAS 1.33 ms). float64, N = 16384: 0.58 ms, 3.7 TB/s
(cuBLAS 0.53 ms).
"""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import FAST, cuda
from nbody.linalg.intrinsics import move_vector, vector_length
from nbody.linalg.rung import ProductLaunch, ProductShape, Reads, Rung

COLUMNS = 4
"""Columns of B that a block multiplies with; wider matrices take several passes over A."""
THREADS = 128
MOST_ROWS = 8
"""The most rows of A per block: B is read once for all of them."""
ENOUGH_BLOCKS = 512
"""Blocks that fill a large GPU; if there were fewer blocks, each gets fewer rows."""


@cache
def kernel(real: Any, rows: int, vectors: bool, whole: bool) -> Any:
    """The kernel for ``rows`` rows per block. ``vectors``: the rows of A have a multiple of V numbers; ``whole``: B has
    exactly 4 columns."""
    length = vector_length(real)
    words = length if vectors else 1
    values = rows * COLUMNS
    left_size, right_size, pitch = rows * words, words * COLUMNS, THREADS + 1
    parts = THREADS // values  # threads per result in the final sum, each of which adds ``values`` partial sums

    @compute.kernel("gpu", **FAST)
    def skinny(a, b, c):
        partial = cuda.shared.array((values, pitch), real)
        totals = cuda.shared.array((values, parts), real)
        left = cuda.local.array(left_size, real)
        right = cuda.local.array(right_size, real)
        sums = cuda.local.array(values, real)
        m, k = a.shape
        n = b.shape[1]
        t = cuda.threadIdx.x
        row, column = cuda.blockIdx.x * rows, cuda.blockIdx.y * COLUMNS
        for value in range(values):
            sums[value] = real(0)
        for i in range(t * words, k, THREADS * words):
            for word in range(words):
                if whole:
                    for q in range(0, COLUMNS, length):
                        move_vector(right, word * COLUMNS + q, b, (i + word) * COLUMNS + q)
                else:
                    for q in range(COLUMNS):
                        right[word * COLUMNS + q] = b[i + word, column + q] if column + q < n else real(0)
            for r in range(rows):
                row_r = min(row + r, m - 1)  # rows past the end repeat the last one and are not written
                if vectors:
                    move_vector(left, r * words, a, row_r * k + i)
                else:
                    left[r] = a[row_r, i]
            for word in range(words):
                for r in range(rows):
                    for q in range(COLUMNS):
                        sums[r * COLUMNS + q] += left[r * words + word] * right[word * COLUMNS + q]
        for value in range(values):
            partial[value, t] = sums[value]
        cuda.syncthreads()
        value, part = t % values, t // values
        total = real(0)
        for s in range(values):
            total += partial[value, part * values + s]
        totals[value, part] = total
        cuda.syncthreads()
        if t < values and row + t // COLUMNS < m and column + t % COLUMNS < n:
            total = real(0)
            for s in range(parts):
                total += totals[t, s]
            c[row + t // COLUMNS, column + t % COLUMNS] = total

    return skinny


def rows_per_block(m: int) -> int:
    """Rows of A per block, for m rows: fewer than :data:`MOST_ROWS` if there were not :data:`ENOUGH_BLOCKS`."""
    rows = MOST_ROWS
    while rows > 1 and m < rows * ENOUGH_BLOCKS:
        rows //= 2
    return rows


def launch(shape: ProductShape, dtype: Any) -> ProductLaunch:
    """A block for every few rows and every 4 columns."""
    rows = rows_per_block(shape.m)
    vectors = shape.k % vector_length(dtype) == 0
    grid = (-(-shape.m // rows), -(-shape.n // COLUMNS))
    return ProductLaunch(kernel(dtype.type, rows, vectors, shape.n == COLUMNS), grid, (THREADS,))


RUNG = Rung(
    title="skinny product",
    idea="Four columns: stream A past them once, in 128-bit loads, B from the caches, the sums in registers.",
    limit="the bandwidth of global memory: a number of A is used 4 times and never again.",
    launch=launch,
    reads=lambda shape: Reads(shape.k / COLUMNS + shape.k / rows_per_block(shape.m), 0.0),
    improves="k02",
    claims=frozenset({"vector loads"}),
    columns=COLUMNS,
)
