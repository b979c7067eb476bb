"""k01: one block, one thread per element: the simplest kernel, and its limit.

A block has at most 1024 threads and runs on one multiprocessor: at most 32x32 results, while the other 131
multiprocessors of an H200 are idle.
"""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import FAST, cuda
from nbody.linalg.rung import ProductLaunch, ProductShape, Rung

LARGEST = 32
"""Rows and columns of C: 32² = 1024 threads, the most that a block can have."""


@cache
def kernel(real: Any) -> Any:
    """The kernel for a NumPy scalar type."""

    @compute.kernel("gpu", **FAST)
    def one_block(a, b, c):
        row, column = cuda.threadIdx.y, cuda.threadIdx.x
        total = real(0)
        for i in range(a.shape[1]):
            total += a[row, i] * b[i, column]
        c[row, column] = total

    return one_block


def launch(shape: ProductShape, dtype: Any) -> ProductLaunch:
    """One block with the shape of the result."""
    return ProductLaunch(kernel(dtype.type), (1, 1), (shape.n, shape.m))


RUNG = Rung(
    title="one block",
    idea="A thread computes one element; threadIdx gives its row and column.",
    limit="a block has at most 1024 threads and one multiprocessor; larger products need many blocks (k02).",
    launch=launch,
    improves="k00",
    largest=LARGEST,
)
