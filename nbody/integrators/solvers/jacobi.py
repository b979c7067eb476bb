"""Jacobi coordinates of (3, N) positions or velocities, and relativity's momenta in them, for kernels."""

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.post_newtonian import STRICT

part = inner(fastmath=STRICT, _nrt=False)
"""Compiles a part of the map, which allocates nothing: references to arrays are not counted."""


@part
def to_jacobi(x, m, X):
    """Jacobi coordinates X of x, (3, N): relative to the centre of mass of the bodies before; column 0 is that of all."""
    for c in range(3):
        total, weighted = m[0], m[0] * x[c, 0]
        for i in range(1, m.size):
            X[c, i] = x[c, i] - weighted / total
            total += m[i]
            weighted += m[i] * x[c, i]
        X[c, 0] = weighted / total


@part
def from_jacobi(X, m, inner, x):
    """The inverse of :func:`to_jacobi`; ``inner[i]`` is the sum of the masses 0 … i."""
    for c in range(3):
        centre = X[c, 0]
        for i in range(m.size - 1, 0, -1):
            centre -= m[i] / inner[i] * X[c, i]  # of the bodies before i
            x[c, i] = centre + X[c, i]
        x[c, 0] = centre


@part
def add_kick(V, a, h, m, inner):
    """Change Jacobi velocities by accelerations, (3, N), over a time h."""
    for c in range(3):
        weighted = m[0] * a[c, 0]
        for i in range(1, m.size):
            V[c, i] += h * (a[c, i] - weighted / inner[i - 1])
            weighted += m[i] * a[c, i]
        V[c, 0] += h * weighted / inner[m.size - 1]


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


@part
def to_velocities(X, V, inner, per_c2):
    """The inverse of :func:`to_momenta`, to rounding."""
    for i in range(1, inner.size):
        r, p2 = sizes(i, X, V)
        factor = 1.0
        for _ in range(4):  # each time the error falls by (v/c)²
            factor = 1.0 / (1.0 + per_c2 * (0.5 * p2 * factor * factor + 3.0 * inner[i] / r))
        for c in range(3):
            V[c, i] *= factor
