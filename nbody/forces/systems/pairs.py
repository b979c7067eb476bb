"""The sum over the other bodies of a system, for both processors, in float64."""

from collections.abc import Callable
from typing import Any


def sum_within(law: Callable, body: Callable, compile: Callable[[Any], Any]) -> Callable:
    """``within(bodies, i, first, after, length2)``: the sums (ax, ay, az, φ), without G, of body i in a system that has the
    bodies from ``first`` to before ``after``. ``law`` is a compiled :func:`~nbody.law.pair_law`, ``body(bodies, j)`` the
    compiled function that returns x, y, z and m of a body."""

    @compile
    def within(bodies, i, first, after, length2):
        xi, yi, zi, _ = body(bodies, i)
        ax, ay, az, phi = 0.0, 0.0, 0.0, 0.0
        for j in range(first, after):
            x, y, z, m = body(bodies, j)
            dx, dy, dz = x - xi, y - yi, z - zi
            # Two bodies in the same place exert no force: in a run their system ends, and the others go on.
            if j != i and dx * dx + dy * dy + dz * dz + length2 > 0.0:
                f, u = law(dx, dy, dz, length2)
                ax += m * f * dx
                ay += m * f * dy
                az += m * f * dz
                phi -= m * u
        return ax, ay, az, phi

    return within
