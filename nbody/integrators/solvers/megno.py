"""The growth of tangent vectors step by step, in kernels. Formulas: :mod:`nbody.integrators.tangents`.

The integrals over steps take the middle of each step for s, and the mean of its ends for Y. A vector that becomes long is
scaled by a power of two, which changes no bit of its direction.
"""

import math
from collections.abc import Callable
from typing import Any

from nbody.compute.compiling.cpu_inner import inner
from nbody.integrators.tangents import LATEST, LOG, MEAN, SIZE2, TIME

LARGE2, SCALE = 2.0**200, 2.0**-100
"""The square of the length from which a vector is scaled, and the factor."""


def growing(compiled: Callable) -> Any:
    """For either processor: ``grow(size2, h, numbers)`` takes in a step of length h, after which the square of a vector's
    length is ``size2``. Returns the factor by which the vector is to be scaled, 1 or :data:`SCALE`."""

    @compiled
    def grow(size2, h, numbers):
        change = 0.5 * math.log(size2 / numbers[SIZE2])
        before, latest = numbers[TIME], numbers[LATEST]
        now = before + h
        new = (before * latest + (before + now) * change) / now
        numbers[LOG] += change
        numbers[LATEST], numbers[TIME] = new, now
        numbers[MEAN] = (before * numbers[MEAN] + 0.5 * h * (latest + new)) / now
        scale = SCALE if size2 > LARGE2 else 1.0
        numbers[SIZE2] = size2 * scale * scale
        return scale

    return grow


_part = inner(_nrt=False)
grow = growing(_part)


@_part
def size2_of(dx, dv, first):
    """The square of the length of a tangent vector, (3, n) each, of the columns from ``first`` on."""
    total = 0.0
    for c in range(3):
        for i in range(first, dx.shape[1]):
            total += dx[c, i] * dx[c, i] + dv[c, i] * dv[c, i]
    return total


@_part
def begin_growth(tangents, first, numbers):
    """Let tangent vectors, (M, 2, 3, n), begin to grow; ``numbers`` is (M, 5), or (0, 5): they are not scaled."""
    for k in range(len(numbers)):
        numbers[k, :] = 0.0
        numbers[k, SIZE2] = size2_of(tangents[k, 0], tangents[k, 1], first)


@_part
def add_growth(tangents, first, h, numbers):
    """Take in a step of length h."""
    for k in range(len(numbers)):
        add_growth_of(tangents[k, 0], tangents[k, 1], first, h, numbers[k])


@_part
def add_growth_of(dx, dv, first, h, numbers):
    """The same for one vector, (3, n) each."""
    scale = grow(size2_of(dx, dv, first), h, numbers)
    if scale != 1.0:
        for c in range(3):
            for i in range(dx.shape[1]):
                dx[c, i] *= scale
                dv[c, i] *= scale
