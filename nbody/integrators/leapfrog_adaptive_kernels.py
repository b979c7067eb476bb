"""The kernels of :mod:`.leapfrog_adaptive`: the rate of the steps, and whole steps of a few bodies in one loop."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numba import njit, prange

from nbody import compute
from nbody.forces.direct.cpu_few import adding_pairs
from nbody.forces.direct.cpu_roots import FAST


def rate_of_pairs(x, v, m, G, length2, scale):
    """ρ η of (3, N) positions and velocities, to be compiled. ``scale`` is near the result, so that its powers neither
    overflow nor vanish."""
    sums, unit = np.zeros(m.size), 1.0 / scale**2
    for i in prange(m.size):
        total = 0.0
        xi, yi, zi, vxi, vyi, vzi, mi = x[0, i], x[1, i], x[2, i], v[0, i], v[1, i], v[2, i], m[i]
        for j in range(i):
            dx, dy, dz = x[0, j] - xi, x[1, j] - yi, x[2, j] - zi
            vx, vy, vz = v[0, j] - vxi, v[1, j] - vyi, v[2, j] - vzi
            r2 = length2 + dx * dx + dy * dy + dz * dz
            both = mi + m[j]
            square = unit * (vx * vx + vy * vy + vz * vz + G * both / np.sqrt(r2)) / r2
            square *= square
            square *= square
            total += square * square if both > 0.0 else 0.0
        sums[i] = total
    return scale * sums.sum() ** (1 / 16)


@cache
def rate(parallel: bool) -> Callable:
    """:func:`rate_of_pairs`, compiled."""
    return compute.kernel("cpu", parallel=parallel, fastmath=FAST)(rate_of_pairs)


rate_alone = njit(rate_of_pairs, error_model="numpy", fastmath=FAST)


@cache
def steps_for(softening: str, dimensions: int) -> Callable:
    """The kernel of a law."""
    add_pairs = adding_pairs(softening, dimensions)

    def make_steps(x, v, a, m, law, moment, limits, rates, eta):
        """Make steps until the next one would go beyond the end, or can't be made.

        Args:
            x, v, a: (N, D) positions, velocities and accelerations, changed in place.
            law: G and the softening length squared.
            moment: the time, and the largest step.
            limits: the number of steps, and the time until.
            rates: ρ of the next step, and ρ(x, v) η.

        Returns:
            The number of steps made, the time, and the rates.
        """
        (time, longest), (steps, until), (rate, scale) = moment, limits, rates
        G, length2 = law
        sums, place, speed = np.empty((3, m.size)), np.zeros((3, m.size)), np.zeros((3, m.size))
        real, done = x.dtype.type, 0
        while done < steps:
            h = min(longest, 1 / rate if rate > 0.0 else np.inf)
            if not (rate >= 0.0 and h < np.inf and time + h != time and time + h <= until):
                break
            half, whole = real(h / 2), real(h)
            for i in range(m.size):
                for d in range(dimensions):
                    v[i, d] += a[i, d] * half
                    x[i, d] += v[i, d] * whole
            add_pairs(x, m, G, length2, sums)
            for i in range(m.size):
                for d in range(dimensions):
                    a[i, d] = sums[d, i]
                    v[i, d] += a[i, d] * half
                    place[d, i], speed[d, i] = x[i, d], v[i, d]
            done += 1
            time += h
            if scale > 0.0:
                scale = rate_alone(place, speed, m, G, length2, scale)
            rate = 2 * (scale / eta) - rate
        return done, time, rate, scale

    return compute.kernel("cpu")(make_steps)
