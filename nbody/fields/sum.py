"""The sum of several fields as one function, compiled for the CPU or the GPU."""

from collections.abc import Callable, Sequence
from typing import Any


def summed(functions: Sequence[Callable], compile: Callable[[Any], Any]) -> Callable:
    """The compiled function ``total(x, y, z, t, p) -> (ax, ay, az, phi)``: the sum of ``functions``
    (:attr:`nbody.fields.field.Field.evaluate`), where row k of p (K, 3 + MOST) has the centre and the parameters of
    function k."""
    total: Callable | None = None
    for k, function in enumerate(functions):
        total = _plus(total, compile(function), k, compile)
    assert total is not None
    return total


def _plus(before: Callable | None, function: Callable, k: int, compile: Callable[[Any], Any]) -> Callable:
    if before is None:

        @compile
        def alone(x, y, z, t, p):
            return function(x - p[k, 0], y - p[k, 1], z - p[k, 2], t, p[k, 3:])

        return alone

    @compile
    def both(x, y, z, t, p):
        ax, ay, az, phi = before(x, y, z, t, p)
        bx, by, bz, psi = function(x - p[k, 0], y - p[k, 1], z - p[k, 2], t, p[k, 3:])
        return ax + bx, ay + by, az + bz, phi + psi

    return both
