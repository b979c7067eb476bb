"""Kernels, and functions that are parts of them, called in an order; the results of all."""

import sys

import numpy as np
from numba import njit

from nbody.compute import kernel


@njit
def part(x, n):
    total = 0.0
    for k in range(n):
        total += x[k % len(x)] / (k + 1)
    if total > 1e30:
        raise ValueError("large")
    return total, x


@njit
def other(x, n):
    return part(x, n)[0] + 1, (x, n)


def kernels(times):
    @kernel("cpu")
    def first(x, n):
        return times * part(x, n)[0], other(x, n)

    @kernel("cpu", parallel=True)
    def second(x, n):
        return times * other(x, n)[0] + part(x, n)[0]

    return first, second


x = np.arange(1.0, 6.0)
functions = dict(zip("abcdpo", (*kernels(2.0), *kernels(3.0), part, other), strict=True))
for name in sys.argv[1]:
    functions[name](x, 7)
    for each in functions.values():  # those that were called already, and those that were not
        try:
            each(1e31 * x, 7)
        except ValueError as error:
            assert str(error) == "large"
print(*(functions[name](x, 7)[0] if name in "acpo" else functions[name](x, 7) for name in "abcdpo"))
