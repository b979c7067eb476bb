"""The sum of several fields as one compiled function, for engines, schemes and solvers; and its loop on the CPU."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
from numba import njit


def summed(functions: Sequence[Callable], compile: Callable[[Any], Any]) -> Callable:
    """The compiled function ``total(x, y, z, t, p) -> (ax, ay, az, phi)``: the sum of ``functions``
    (:attr:`nbody.fields.field.Field.evaluate`), where row k of p (K, 3 + MOST) has the centre and the parameters of
    function k. Equal functions in a row are one loop, so that a thousand of them are compiled as fast as one."""

    @compile
    def nothing(x, y, z, t, p):
        return 0.0, 0.0, 0.0, 0.0

    total, first = nothing, 0
    for function, equal in groupby(functions):
        last = first + len(list(equal))
        total, first = _plus(total, compile(function), first, last, compile), last
    return total


def _plus(before: Callable, function: Callable, first: int, last: int, compile: Callable[[Any], Any]) -> Callable:
    @compile
    def both(x, y, z, t, p):
        ax, ay, az, phi = before(x, y, z, t, p)
        for k in range(first, last):
            bx, by, bz, psi = function(x - p[k, 0], y - p[k, 1], z - p[k, 2], t, p[k, 3:])
            ax, ay, az, phi = ax + bx, ay + by, az + bz, phi + psi
        return ax, ay, az, phi

    return both


def values_at(
    functions: Sequence[Callable], parameters: np.ndarray, position: np.ndarray, times: np.ndarray
) -> np.ndarray:
    """Acceleration and potential of the sum of the functions at positions (N, D), each at its time (N,): (N, 4). A body in
    a singular centre gets infinities, which stop the run at its next frame."""
    points, found = np.zeros((len(position), 3)), np.empty((len(position), 4))
    points[:, : position.shape[1]] = position
    _loop(tuple(functions))(points, times, parameters, found)  # on one core: N evaluations beside N² pairs
    return found


@cache
def _loop(functions: tuple[Callable, ...]) -> Callable:
    compile = njit(error_model="numpy")
    total = summed(functions, compile)

    @compile
    def loop(points, times, parameters, found):
        for i in range(len(points)):
            found[i, 0], found[i, 1], found[i, 2], found[i, 3] = total(
                points[i, 0], points[i, 1], points[i, 2], times[i], parameters
            )

    return loop


@cache
def adding_fields(functions: tuple[Callable, ...]) -> Callable:
    """For the loops of :mod:`nbody.integrators.schemes.table_few`: ``add_fields(x, time, parameters, a)`` adds the fields
    at a time to the accelerations ``a``, (N, D), of positions ``x``, with the bits of
    :meth:`nbody.fields.added.AddedFields.add`."""
    total = summed(functions, njit(error_model="numpy"))

    @njit(error_model="numpy")
    def add_fields(x, time, parameters, a):
        flat = x.shape[1] == 2
        for i in range(len(x)):
            z = 0.0 if flat else np.float64(x[i, x.shape[1] - 1])
            ax, ay, az, _ = total(np.float64(x[i, 0]), np.float64(x[i, 1]), z, time, parameters)
            a[i, 0], a[i, 1] = a[i, 0] + ax, a[i, 1] + ay
            if not flat:
                a[i, x.shape[1] - 1] += az

    return add_fields
