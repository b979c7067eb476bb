"""The bodies of Wisdom and Holman's map on a CPU, as columns of a matrix, whose rows load as vectors (:mod:`.cpu_vectors`).
Arrays are copied number by number: a slice would compile the text of an error for 3 s.

Body 0 is in the column :data:`STAR`, the planets after it. The lanes of the last vector that are left have no mass, far from
all planets. So the columns from :data:`STAR` on are (3, N) coordinates.
"""

from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.compute.in_kernels.cpu_vectors import LANES, fma, load, store
from nbody.integrators.solvers.jacobi import part
from nbody.integrators.solvers.map_fields import MapFields

STAR, FIRST = LANES - 1, LANES
"""The columns of body 0 and of the innermost planet."""

X, V, SITE, FORCE, OLD, DISTANCE, WRONG, MASS, INNER, FRACTION, PER_BEFORE, OF_STAR, OF_INNER, REAL, TIME = (
    0, 3, 6, 9, 12, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
)  # fmt: skip
ROWS = 28
"""The rows: coordinates and velocities; positions relative to the star, and accelerations, in the last kick; coordinates and
velocities that a move has put aside; distances after the last drift, and the times of planets that it has to move
singly, else NaN; G times the masses, and the centres of their Kepler motion: the sums of masses from the star to a planet;
a planet's part of that, and 1 over the sum before it; the masses of the star and of that sum, 0 for planet 1, of which all
of the star's force is Kepler motion; 1, or 0 in lanes without a planet; the times of the last
drift, if there are changes of masses. In democratic coordinates the centre is the star,
whose force is Kepler motion: the four rows before the last one are 0."""

CHANGES = 4
"""Where tangent vectors, which have the first rows too, are put aside: the index of three of their rows."""

HOME = LANES // 2 + 1
"""How far a vector is rotated that was rotated by one less than half of the lanes, until its lanes are where they were."""

FAR = 1e30


class MapBodies(NamedTuple):
    """What the moves of a map of n bodies depend on and change.

    Attributes:
        rows: (ROWS, columns), see :data:`ROWS`.
        bodies: n.
        democratic: the coordinates are relative to the star, the velocities to the centre of mass; else both are Jacobi's.
        limit: of (m + m') (d + d')³/r³, with two planets' distances d from the star; in a closer encounter the map fails.
        per_c2: 1/c² of relativity, 0 without it.
        met: two planets that were too close in the last kick, or 0 and 0.
        fields: external ones; None without any.
        tangents: (M, 6, 3, columns) the tangent vectors of X and V, which the moves move too, and their further rows.
        varied: ``(True,)`` if there are any, else ``()``: two types, so that a kernel without them has no code for them.
        masses, sums: (M, n) G times the changes of the masses that belong to them, and their sums 0 … i; or (0, n).
    """

    rows: np.ndarray
    bodies: int
    democratic: bool
    limit: float
    per_c2: float
    met: np.ndarray
    fields: MapFields | None
    tangents: np.ndarray
    varied: tuple
    masses: np.ndarray
    sums: np.ndarray


@inner
def aligned(rows, columns):
    """A matrix whose vectors do not cross lines of the cache."""
    wider = np.zeros((rows, columns + LANES))
    begin = (-(wider.ctypes.data >> 3)) & (LANES - 1)
    return wider[:, begin : begin + columns]


@inner
def planets_of(X_, V_, m, options, per_c2, fields, tangents, varied, masses):
    """The planets with coordinates X_, V_, (3, N), G times the masses ``m``, and ``options``: how close they may come, in
    mutual Hill radii, and whether the coordinates are democratic."""
    (hill, democratic), n = options, m.size
    columns, last = LANES * ((n - 2) // LANES + 2), STAR + n
    rows = aligned(ROWS, columns)
    rows[INNER, last:], rows[PER_BEFORE, FIRST:] = m[0], 0.0 if democratic else 1.0
    for i in range(n):
        at = STAR + i
        for c in range(3):
            rows[X + c, at], rows[V + c, at] = X_[c, i], V_[c, i]
        rows[MASS, at], rows[INNER, at] = m[i], m[0]
        if i:
            rows[DISTANCE, at], rows[REAL, at] = np.sqrt(X_[0, i] ** 2 + X_[1, i] ** 2 + X_[2, i] ** 2), 1.0
            if not democratic:
                before = rows[INNER, at - 1]
                rows[INNER, at], rows[PER_BEFORE, at] = before + m[i], 1.0 / before
                rows[FRACTION, at] = m[i] / rows[INNER, at]
                if i > 1:
                    rows[OF_STAR, at], rows[OF_INNER, at] = m[0], rows[INNER, at]
    for at in range(last, columns):
        rows[X, at] = FAR * (at - STAR)
    vectors = np.zeros((len(tangents), 6, 3, columns))
    if varied:
        for place in np.ndindex(tangents.shape):
            vectors[place[0], place[1], place[2], STAR + place[3]] = tangents[place]
    limit = 24.0 * m[0] / hill**3 if hill > 0.0 else np.inf
    met, sums = np.zeros(2, np.int64), masses.copy()
    for i in range(1, n):
        for k in range(len(sums)):
            sums[k, i] += sums[k, i - 1]
    return MapBodies(rows, n, democratic, limit, per_c2, met, fields, vectors, varied, masses, sums)


@inner
def present_of(planets):
    """A copy of the planets, without tangent vectors."""
    rows, bodies, democratic, limit, per_c2, met, fields, vectors, _, masses, sums = planets
    copy = aligned(rows.shape[0], rows.shape[1])
    for k in np.ndindex(rows.shape):
        copy[k] = rows[k]
    return MapBodies(copy, bodies, democratic, limit, per_c2, met.copy(), fields, vectors, (), masses, sums)


@inner
def keep(planets, X_, V_, tangents):
    """Copy the coordinates and the tangent vectors back to (3, N) arrays."""
    rows = planets.rows
    for c in range(3):
        for i in range(planets.bodies):
            X_[c, i], V_[c, i] = rows[X + c, STAR + i], rows[V + c, STAR + i]
    if planets.varied:
        for k in np.ndindex(tangents.shape):
            tangents[k] = planets.tangents[k[0], k[1], k[2], STAR + k[3]]


@part
def loaded(rows, row, at):
    """Three rows of one vector of planets."""
    return load(rows, row, at), load(rows, row + 1, at), load(rows, row + 2, at)


@part
def stored(rows, row, at, x, y, z):
    """Store three rows."""
    store(rows, row, at, x)
    store(rows, row + 1, at, y)
    store(rows, row + 2, at, z)


@part
def dot(x, y, z, u, v, w):
    """The scalar product of (x, y, z) and (u, v, w)."""
    return fma(x, u, fma(y, v, z * w))
