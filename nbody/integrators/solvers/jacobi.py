"""The coordinates of maps of (3, N) positions or velocities, and relativity's momenta in them, for kernels.

Jacobi's are relative to the centre of mass of the bodies before. Democratic ones are positions relative to the star, and
velocities relative to the centre of mass of all (Duncan, Levison & Lee 1998). Column 0 is the centre of mass of all.
"""

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.post_newtonian import STRICT

part = inner(fastmath=STRICT, _nrt=False)
"""Compiles a part of the map, which allocates nothing: references to arrays are not counted."""


@part
def to_map(x, m, democratic, velocities, X):
    """The coordinates X of positions or ``velocities`` x, (3, N), which may be the same array."""
    for c in range(3):
        star = x[c, 0]
        total, weighted = m[0], m[0] * star
        for i in range(1, m.size):
            own = x[c, i]
            X[c, i] = own if democratic else own - weighted / total
            total += m[i]
            weighted += m[i] * own
        X[c, 0] = weighted / total
        for i in range(1, m.size if democratic else 0):
            X[c, i] -= X[c, 0] if velocities else star


def from_map(X, m, democratic, velocities, x):
    """The inverse of :func:`to_map`, for either processor; x may be X."""
    for c in range(3):
        total, weighted = m[0], 0.0
        for i in range(1, m.size):
            total += m[i]
            weighted += m[i] * X[c, i]
        centre = X[c, 0]
        if democratic:
            x[c, 0] = centre - weighted / (m[0] if velocities else total)
            for i in range(1, m.size):
                x[c, i] = (centre if velocities else x[c, 0]) + X[c, i]
        else:
            for i in range(m.size - 1, 0, -1):
                centre -= m[i] / total * X[c, i]  # of the bodies before i
                x[c, i] = centre + X[c, i]
                total -= m[i]
            x[c, 0] = centre


@part
def shift_jacobi(x, m, inner, dm, factor, dX):
    """Change Jacobi coordinates dX, (3, n) but for the centre of mass, by ``factor`` times the derivative of those of x
    along a change of the masses."""
    for c in range(3):
        weighted, changed, total = m[0] * x[c, 0], dm[0] * x[c, 0], dm[0]
        for i in range(1, m.size):
            dX[c, i] -= factor * (changed - total * weighted / inner[i - 1]) / inner[i - 1]
            weighted, changed, total = weighted + m[i] * x[c, i], changed + dm[i] * x[c, i], total + dm[i]


@part
def shift_from_jacobi(X, m, inner, dm, sums, dx):
    """Change positions dx, (3, n), by the derivative of those of Jacobi coordinates X along a change dm of the masses, whose
    sums 0 … i are given."""
    for c in range(3):
        centre = 0.0
        for i in range(m.size - 1, 0, -1):
            centre -= (dm[i] - m[i] / inner[i] * sums[i]) / inner[i] * X[c, i]
            dx[c, i] += centre
        dx[c, 0] += centre


@part
def sizes(i, X, V):
    """The distance of planet i, and the square of its speed."""
    r2 = X[0, i] * X[0, i] + X[1, i] * X[1, i] + X[2, i] * X[2, i]
    return np.sqrt(r2), V[0, i] * V[0, i] + V[1, i] * V[1, i] + V[2, i] * V[2, i]


@part
def to_momenta(X, V, inner, per_c2):
    """Turn velocities into momenta per mass, v (1 + (v²/2 + 3 μ/r)/c²)."""
    for i in range(1, inner.size):
        r, v2 = sizes(i, X, V)
        for c in range(3):
            V[c, i] *= 1.0 + per_c2 * (0.5 * v2 + 3.0 * inner[i] / r)


def velocity_of_momentum(r, p2, mu, per_c2):
    """The velocity for a momentum per mass 1, for either processor; ``p2`` is the square of the momentum per mass."""
    factor = 1.0
    for _ in range(4):  # each time the error falls by (v/c)²
        factor = 1.0 / (1.0 + per_c2 * (0.5 * p2 * factor * factor + 3.0 * mu / r))
    return factor


_velocity_of_momentum = part(velocity_of_momentum)


@part
def to_velocities(X, V, inner, per_c2):
    """The inverse of :func:`to_momenta`, to rounding."""
    for i in range(1, inner.size):
        r, p2 = sizes(i, X, V)
        factor = _velocity_of_momentum(r, p2, inner[i], per_c2)
        for c in range(3):
            V[c, i] *= factor
