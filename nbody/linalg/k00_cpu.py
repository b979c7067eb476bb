"""k00 and numpy: the product on the CPU, by three simple loops, and by NumPy as the referee.

The loops run in the order row, column, k: B is read along its columns, one cache line per number. The lecture starts from
this loop without improving it.
"""

from functools import cache
from typing import Any

import numpy as np

from nbody.linalg.rung import Rung


@cache
def triple_loop() -> Any:
    """The three loops, compiled by Numba for one core."""
    from numba import njit

    @njit
    def multiply(a, b, c):
        m, k = a.shape
        n = b.shape[1]
        for row in range(m):
            for column in range(n):
                total = a[row, 0] * b[0, column]
                for i in range(1, k):
                    total += a[row, i] * b[i, column]
                c[row, column] = total

    return multiply


def numpy_product(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """c = a·b by NumPy's BLAS, on all cores."""
    np.matmul(a, b, out=c)


LOOP = Rung(
    title="three loops on the CPU",
    idea="C[i,j] is the sum of A[i,k] B[k,j] over k: three nested loops, one core.",
    limit="B is read along its columns: every number costs a cache line.",
    launch=lambda shape, dtype: triple_loop(),
    on="cpu",
)

NUMPY = Rung(
    title="NumPy",
    idea="The CPU's BLAS: blocked for the caches, SIMD, all cores. In float64 it is the referee of all rungs.",
    limit="the multiply-add units of the CPU's cores.",
    launch=lambda shape, dtype: numpy_product,
    improves="k00",
    on="cpu",
)
