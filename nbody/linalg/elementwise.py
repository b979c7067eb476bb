"""Map and matrix sum: two operations that gain nothing from tiles.

A tile helps if its numbers are used more than once. Here every number is read once and used once, so shared memory would
only add a detour. What matters is that neighbouring threads access neighbouring numbers, and that enough reads are in
progress; the time is the bytes moved divided by the card's bandwidth.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import FAST, cuda, device_function
from nbody.linalg.rung import ProductLaunch, ProductShape

THREADS = 256


@dataclass(frozen=True)
class Elementwise:
    """An operation on matrices of one shape: ``launch(shape, dtype)`` returns a callable (a, b, c); a map ignores b.

    ``moved`` counts the numbers read and written per result; ``reference(a, b)`` is NumPy's result.
    """

    title: str
    idea: str
    moved: int
    launch: Callable[[ProductShape, Any], ProductLaunch]
    reference: Callable[[np.ndarray, np.ndarray], np.ndarray]


@cache
def sum_kernel() -> Any:
    """c = a + b for matrices of one shape."""

    @compute.kernel("gpu", **FAST)
    def matrix_sum(a, b, c):
        m, n = c.shape
        i = cuda.grid(1)
        if i < m * n:
            c[i // n, i % n] = a[i // n, i % n] + b[i // n, i % n]

    return matrix_sum


@cache
def map_kernel(function: Callable[[Any], Any]) -> Any:
    """c = function(a), element by element; ``function`` is a plain Python function that Numba can compile."""
    compiled = device_function(function)

    @compute.kernel("gpu", **FAST)
    def matrix_map(a, b, c):
        m, n = c.shape
        i = cuda.grid(1)
        if i < m * n:
            c[i // n, i % n] = compiled(a[i // n, i % n])

    return matrix_map


def square(x):
    """The function that the benchmark maps: one operation, so that only memory matters."""
    return x * x


def _launcher(kernel: Callable[[], Any]) -> Callable[[ProductShape, Any], ProductLaunch]:
    return lambda shape, dtype: ProductLaunch(kernel(), (-(-shape.m * shape.n // THREADS),), (THREADS,))


_WHY = "Every number is read once and used once, so a tile in shared memory has nothing to save."

SUM = Elementwise("matrix sum", _WHY, 3, _launcher(sum_kernel), np.add)
MAP = Elementwise("map", _WHY, 2, _launcher(lambda: map_kernel(square)), lambda a, b: square(a))
