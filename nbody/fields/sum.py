"""The sum of several fields as one function, compiled for the CPU or the GPU."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any


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
