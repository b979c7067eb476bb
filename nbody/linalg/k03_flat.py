"""k03: the same with a one-dimensional launch: 256 threads, row = id // n, column = id % n.

C is one long row of m·n numbers in memory, so one index is enough, at the price of one division per thread. A block is now
a strip of one row instead of a square: its threads share a row of A, but no two of them share a column of B.

H200, n = 2048: 1.24 TFLOP/s in float32 (k02: 1.36), 1.25 in float64 (1.25).
"""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import FAST, cuda
from nbody.linalg.rung import ProductLaunch, ProductShape, Rung

THREADS = 256


@cache
def kernel(real: Any) -> Any:
    """The kernel for a NumPy scalar type."""

    @compute.kernel("gpu", **FAST)
    def flat(a, b, c):
        m, n = c.shape
        i = cuda.grid(1)
        if i < m * n:
            row, column = i // n, i % n
            total = real(0)
            for s in range(a.shape[1]):
                total += a[row, s] * b[s, column]
            c[row, column] = total

    return flat


def launch(shape: ProductShape, dtype: Any) -> ProductLaunch:
    """256 consecutive elements of C per block."""
    return ProductLaunch(kernel(dtype.type), (-(-shape.m * shape.n // THREADS),), (THREADS,))


RUNG = Rung(
    title="one-dimensional launch",
    idea="One index for all of C: row = id // n, column = id % n.",
    limit="2k reads for one result, as before; a strip of C reuses fewer cache lines of B than a square.",
    launch=launch,
    improves="k02",
)
