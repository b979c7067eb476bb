"""The moves of Wisdom and Holman's map in Jacobi coordinates: Kepler drifts, kicks, and the stages of the corrector.

Lists of moves are the same for both processors (:func:`map_moves`); the functions are the CPU's, for one system or for each
of an ensemble. Formulas and sources: :mod:`.wisdom_holman`.

Tangent vectors are moved by the derivative of each move, so theirs are those of the map, not of the differential equation
(Mikkola & Innanen 1999).
"""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.field import Term
from nbody.fields.post_newtonian import STRICT
from nbody.forces.direct.cpu_few import summing, summing_slopes
from nbody.integrators.solvers.kepler import LANES, kepler_steps, kepler_tangents
from nbody.integrators.solvers.map_fields import MapFields, map_accelerations
from nbody.integrators.solvers.pair_forces import separation

STAGE = math.sqrt(7 / 40)
"""The drift of a corrector's first stage in time steps; the k-th drifts k times as far (Wisdom, Holman & Touma 1996)."""


DIFFERENCE = 1e-3
"""The change of bodies in differences of fields, in units of the least of their distances or speeds: errors of 1e-12."""


@cache
def corrector_kicks(order: int) -> np.ndarray:
    """The kicks of a corrector's stages, in time steps: b_k of the drifts k·:data:`STAGE`, k = 1 … (order - 1)/2.

    To first order in the planets' masses, kicks in the middle of steps differ from the continuous force by a change of
    coordinates, 1/x - 1/(2 sinh(x/2)), where x is the time step times the derivative along the orbits. The stages make
    4 Σ b_k sinh(k STAGE x) of it: the b_k are chosen so that the coefficients of x, x³, … agree.
    """
    stages = (order - 1) // 2 if order else 0
    powers = range(1, 2 * stages, 2)
    # 1/(2 sinh(x/2)) = 1/x - Σ (1 - 2^(1-2n)) B_2n x^(2n-1)/(2n)!, with Bernoulli's numbers
    bernoulli = {2: 1 / 6, 4: -1 / 30, 6: 1 / 42, 8: -1 / 30, 10: 5 / 66, 12: -691 / 2730, 14: 7 / 6, 16: -3617 / 510}
    coefficients = [(1 - 2.0**-p) * bernoulli[p + 1] / math.factorial(p + 1) for p in powers]
    matrix = [[4 * (k * STAGE) ** p / math.factorial(p) for k in range(1, stages + 1)] for p in powers]
    return np.linalg.solve(matrix, coefficients) if stages else np.zeros(0)


part = inner(fastmath=STRICT, _nrt=False)
"""Compiles a part of the map, which allocates nothing: references to arrays are not counted."""


class MapMoves(NamedTuple):
    """Moves of a map, (M, 2) each: a kick and the drift after it, in the unit of time. ``begin``: from the present to the
    map's coordinates, half a step ahead; ``step``: a step; ``present``: back to the present."""

    begin: np.ndarray
    step: np.ndarray
    present: np.ndarray


@cache
def map_moves(dt: float, corrector: int) -> MapMoves:
    """The moves of a map with time steps ``dt`` and a corrector of an order, for either processor."""
    kicks = corrector_kicks(corrector)

    def stages(sign: float) -> list[tuple[float, float]]:
        found = list[tuple[float, float]]()
        for k in range(-len(kicks), len(kicks) + 1):
            if k:
                stage, strength = k * STAGE * dt, math.copysign(dt, k * sign * dt) * float(kicks[abs(k) - 1])
                found += [(0.0, stage), (-strength, -2.0 * stage), (strength, stage)]
        return found

    half = 0.5 * dt
    moves = [*stages(1.0), (0.0, half)], [(dt, dt)], [(0.0, -half), *stages(-1.0)]
    return MapMoves(*map(np.array, moves))


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


class MapBodies(NamedTuple):
    """What the moves of a map of n bodies depend on besides its coordinates.

    Attributes:
        m, inner: (n,) G times the masses, and their sums 0 … i.
        near: (n, n) how close planets may come, in units of the sum of their distances from the star.
        per_c2: 1/c² of relativity, 0 without it.
        distance: (n,) those from the star after the last drift.
        time, lanes: scratch of a drift: (n,) its times, and that of :func:`.kepler_steps`.
        met: two planets that were too close in the last kick, or 0 and 0.
        x, a: (3, n) positions and accelerations in the last kick; if ``varied``, a is (6, n), with the derivatives of these
            along ``dx``.
        fields: external ones; None without any.
        dx: (3, n) the positions of a tangent vector.
        tangents: (M, 2, 3, n) the tangent vectors of X and V, which the moves move too.
        varied: ``(True,)`` if there are any, else ``()``: two types, so that a kernel without them has no code for them.
        masses, sums: (M, n) G times the changes of the masses that belong to them, and their sums 0 … i; or (0, n).
    """

    m: np.ndarray
    inner: np.ndarray
    near: np.ndarray
    per_c2: float
    distance: np.ndarray
    time: np.ndarray
    lanes: np.ndarray
    met: np.ndarray
    x: np.ndarray
    a: np.ndarray
    fields: MapFields | None
    dx: np.ndarray
    tangents: np.ndarray
    varied: tuple
    masses: np.ndarray
    sums: np.ndarray


@inner
def planets_of(m, hill, per_c2, fields, tangents, varied, masses):
    """The planets with G times the masses ``m``, which may come as close as ``hill`` mutual Hill radii."""
    n = m.size
    near = np.zeros((n, n))
    for i in range(1, n):
        for j in range(1, i):
            near[i, j] = 0.5 * hill * ((m[i] + m[j]) / (3.0 * m[0])) ** (1.0 / 3.0)
    x, a, dx = np.empty((3, n)), np.empty((6 if varied else 3, n)), np.empty((3, n))
    met, time, lanes = np.zeros(2, np.int64), np.empty(n), np.empty(10 * LANES)
    sums = masses.copy()
    for i in range(1, n):
        sums[:, i] += sums[:, i - 1]
    return MapBodies(
        m, np.cumsum(m), near, per_c2, np.zeros(n), time, lanes, met, x, a, fields, dx, tangents, varied, masses, sums
    )


@inner
def without_tangents(planets):
    """The same planets."""
    m, inner, near, per_c2, distance, time, lanes, met, x, a, fields, dx, tangents, _, masses, sums = planets
    return MapBodies(m, inner, near, per_c2, distance, time, lanes, met, x, a, fields, dx, tangents, (), masses, sums)


@part
def drift(X, V, h, planets):
    """Kepler motion of all planets, and the straight motion of the centre of mass."""
    inner, per_c2, tangents = planets.inner, planets.per_c2, planets.tangents
    for c in range(3):
        X[c, 0] += h * V[c, 0]
        for k in range(len(tangents) if planets.varied else 0):
            tangents[k, 0, c, 0] += h * tangents[k, 1, c, 0]
    time, rate = planets.time, h * 3.0 * per_c2
    for i in range(1, inner.size):
        time[i] = h
        if per_c2 > 0.0:
            r, v2, _ = sizes(i, X, V)
            time[i] += rate * (0.5 * v2 - inner[i] / r)
        if planets.varied:
            # By scaling, d/dμ is (t d/dt - v d/dv)/(2 μ) for the motion from x and v over a time t, and as much of v itself.
            masses, sums = planets.masses, planets.sums
            for k in range(len(masses)):
                for c in range(3):
                    tangents[k, 1, c, i] -= 0.5 * sums[k, i] / inner[i] * V[c, i]
            planets.distance[i] = kepler_tangents(i, X, V, inner[i], time[i], rate, tangents)
            for k in range(len(masses)):
                half, g = 0.5 * sums[k, i] / inner[i], time[i] * inner[i] / planets.distance[i] ** 3
                for c in range(3):
                    tangents[k, 0, c, i] += half * time[i] * V[c, i]
                    tangents[k, 1, c, i] += half * (V[c, i] - g * X[c, i])
    if not planets.varied:
        kepler_steps(1, X, V, inner, time, planets.distance, planets.lanes)


@part
def sizes(i, X, V):
    """The distance, the square of the speed, and the square of the distance of planet i."""
    r2 = X[0, i] * X[0, i] + X[1, i] * X[1, i] + X[2, i] * X[2, i]
    return np.sqrt(r2), V[0, i] * V[0, i] + V[1, i] * V[1, i] + V[2, i] * V[2, i], r2


@part
def shift(X, V, h, planets):
    """Relativity's term -v⁴/(2c²)."""
    rate, tangents = 2.0 * h * planets.per_c2, planets.tangents
    for i in range(1, X.shape[1]):
        _, v2, _ = sizes(i, X, V)
        for k in range(len(tangents) if planets.varied else 0):
            dX, dV = tangents[k, 0], tangents[k, 1]
            along = V[0, i] * dV[0, i] + V[1, i] * dV[1, i] + V[2, i] * dV[2, i]
            for c in range(3):
                dX[c, i] -= rate * (v2 * dV[c, i] + 2.0 * along * V[c, i])
        for c in range(3):
            X[c, i] -= rate * v2 * V[c, i]


@part
def to_momenta(X, V, inner, per_c2):
    """Turn velocities into momenta per mass, v (1 + (v²/2 + 3 μ/r)/c²)."""
    for i in range(1, inner.size):
        r, v2, _ = sizes(i, X, V)
        for c in range(3):
            V[c, i] *= 1.0 + per_c2 * (0.5 * v2 + 3.0 * inner[i] / r)


@part
def to_velocities(X, V, inner, per_c2):
    """The inverse of :func:`to_momenta`, to rounding."""
    for i in range(1, inner.size):
        r, p2, _ = sizes(i, X, V)
        factor = 1.0
        for _ in range(4):  # each time the error falls by (v/c)²
            factor = 1.0 / (1.0 + per_c2 * (0.5 * p2 * factor * factor + 3.0 * inner[i] / r))
        for c in range(3):
            V[c, i] *= factor


@part
def attraction(i, j, dx, dy, dz, planets):
    """1/r³ of two bodies; notes planets that are too close."""
    r2 = dx * dx + dy * dy + dz * dz
    if j and r2 < (planets.near[i, j] * (planets.distance[i] + planets.distance[j])) ** 2:
        planets.met[0], planets.met[1] = i, j
    return 1.0 / (r2 * np.sqrt(r2))


@part
def slope(i, j, dx, dy, dz, planets):
    """The same, and its derivative with respect to r over r."""
    f = attraction(i, j, dx, dy, dz, planets)
    return f, -3.0 * f / (dx * dx + dy * dy + dz * dz)


add_attraction = summing(attraction, separation, 2)  # all of that of planet 1 and the star is Kepler motion
add_slopes = summing_slopes(slope, separation, 2)


@part
def kick(X, V, h, planets):
    """Kick with all forces but those of the Kepler motion."""
    m, inner, per_c2, x, a = planets.m, planets.inner, planets.per_c2, planets.x, planets.a
    if per_c2 > 0.0:
        shift(X, V, 0.5 * h, planets)
    from_jacobi(X, m, inner, x)
    a[:], planets.met[:] = 0.0, 0
    if planets.varied:
        kick_tangents(X, h, planets)
    else:
        add_attraction(x, m, 1.0, planets, a)
    add_kick(V, a, h, m, inner)
    for i in range(2, m.size):
        r2 = X[0, i] ** 2 + X[1, i] ** 2 + X[2, i] ** 2
        f = h * inner[i] / (r2 * np.sqrt(r2))
        for c in range(3):
            V[c, i] += f * X[c, i]
    if per_c2 > 0.0:
        for i in range(1, m.size):
            _, _, r2 = sizes(i, X, V)
            for c in range(3):
                V[c, i] -= 2.0 * h * per_c2 * (inner[i] / r2) ** 2 * X[c, i]
        shift(X, V, 0.5 * h, planets)


@part
def kick_tangents(X, h, planets):
    """Kick the tangent vectors; leaves the accelerations of the bodies in the rows 0 to 2 of ``planets.a``."""
    m, inner, a, dx = planets.m, planets.inner, planets.a, planets.dx
    for k in range(len(planets.tangents)):
        dX, dV = planets.tangents[k, 0], planets.tangents[k, 1]
        from_jacobi(dX, m, inner, dx)
        a[:] = 0.0
        if k < len(planets.masses):
            dm = planets.masses[k]
            shift_from_jacobi(X, m, inner, dm, planets.sums[k], dx)
            add_attraction(planets.x, dm, 1.0, planets, a[3:])
        add_slopes(planets.x, dx, m, 1.0, planets, a)
        add_kick(dV, a[3:], h, m, inner)
        if k < len(planets.masses):
            shift_jacobi(a, m, inner, dm, h, dV)
        for i in range(1, m.size):
            r2 = X[0, i] ** 2 + X[1, i] ** 2 + X[2, i] ** 2
            along = (X[0, i] * dX[0, i] + X[1, i] * dX[1, i] + X[2, i] * dX[2, i]) / r2
            f = h * inner[i] / (r2 * np.sqrt(r2)) if i > 1 else 0.0
            g = 2.0 * h * planets.per_c2 * (inner[i] / r2) ** 2
            for c in range(3):
                dV[c, i] += f * (dX[c, i] - 3.0 * along * X[c, i]) - g * (dX[c, i] - 4.0 * along * X[c, i])
                if k < len(planets.masses):
                    dV[c, i] += f * planets.sums[k, i] / inner[i] * X[c, i]


@part
def add_kick(V, a, h, m, inner):
    """Change Jacobi velocities by accelerations, in the rows 0 to 2, over a time h."""
    for c in range(3):
        weighted = m[0] * a[c, 0]
        for i in range(1, m.size):
            V[c, i] += h * (a[c, i] - weighted / inner[i - 1])
            weighted += m[i] * a[c, i]


@inner
def tangent_to_jacobi(x, X, k, c, planets):
    """Turn positions (c = 0) or velocities of a tangent vector of x into those of Jacobi coordinates X."""
    m, inner, change = planets.m, planets.inner, planets.tangents[k, c]
    to_jacobi(change.copy(), m, change)
    if k < len(planets.masses):
        shift_jacobi(x, m, inner, planets.masses[k], 1.0, change)
        for d in range(3):
            for i in range(m.size):
                change[d, 0] += planets.masses[k, i] * (x[d, i] - X[d, 0]) / inner[m.size - 1]


@inner
def tangent_from_jacobi(X, k, c, planets):
    """The inverse of :func:`tangent_to_jacobi`."""
    m, inner, change = planets.m, planets.inner, planets.tangents[k, c]
    from_jacobi(change.copy(), m, inner, change)
    if k < len(planets.masses):
        shift_from_jacobi(X, m, inner, planets.masses[k], planets.sums[k], change)


class MapSteps(NamedTuple):
    """The functions ``move(X, V, moves, planets)``, ``begin`` and ``present`` of :func:`moving`, for kernels."""

    move: Callable
    begin: Callable
    present: Callable


@cache
def moving(terms: tuple[Term, ...] = ()) -> MapSteps:
    """The functions of a map in external fields."""
    accelerate, in_fields = map_accelerations(terms), bool(terms)
    midpoint = any(term.moving for term in terms)

    @part
    def by_fields(X, V, h, planets, found):
        """The accelerations (3, n) of Jacobi coordinates by the fields in a kick."""
        m, inner, a, work = planets.m, planets.inner, planets.a, planets.fields.work
        middle, x, v, last = work[0], work[1], work[2], m.size - 1
        from_jacobi(X, m, inner, x)
        for stage in range(2 if midpoint else 1):
            if midpoint:
                for c in range(3):
                    for i in range(m.size):
                        middle[c, i] = V[c, i] + (0.5 * h * found[c, i] if stage else 0.0)
                from_jacobi(middle, m, inner, v)
            accelerate(x, v, a, planets.fields)
            for c in range(3):
                weighted = m[0] * a[c, 0]
                for i in range(1, m.size):
                    found[c, i] = a[c, i] - weighted / inner[i - 1]
                    weighted += m[i] * a[c, i]
                found[c, 0] = weighted / inner[last]

    @part
    def kick_by_fields(X, V, h, planets):
        m, work = planets.m, planets.fields.work
        by, slope, ahead_X, ahead_V, rate = work[3], work[4], work[5], work[6], work[7]
        by_fields(X, V, h, planets, by)
        for k in range(len(planets.tangents) if planets.varied else 0):
            dX, dV = planets.tangents[k, 0], planets.tangents[k, 1]
            size = max(relative_size(dX, X), relative_size(dV, V))
            step = DIFFERENCE / size if size > 0.0 else 1.0
            for q in (-2, -1, 1, 2):  # a central difference of order 4
                weight = 8.0 * q if abs(q) == 1 else -0.5 * q
                for c in range(3):
                    for i in range(m.size):
                        ahead_X[c, i], ahead_V[c, i] = X[c, i] + q * step * dX[c, i], V[c, i] + q * step * dV[c, i]
                by_fields(ahead_X, ahead_V, h, planets, slope)
                for c in range(3):
                    for i in range(m.size):
                        rate[c, i] = (rate[c, i] if q > -2 else 0.0) + weight * slope[c, i]
            for c in range(3):
                for i in range(m.size):
                    dV[c, i] += h / (12.0 * step) * rate[c, i]
        for c in range(3):
            for i in range(m.size):
                V[c, i] += h * by[c, i]

    @part
    def move(X, V, moves, planets):
        """Make moves, (M, 2): each is a kick, perhaps over no time, and the drift after it."""
        for k in range(len(moves)):
            h = moves[k, 0]
            if h != 0.0:
                if midpoint:  # half before and half after, as both depend on velocities
                    kick_by_fields(X, V, 0.5 * h, planets)
                kick(X, V, h, planets)
                if in_fields:
                    kick_by_fields(X, V, 0.5 * h if midpoint else h, planets)
            drift(X, V, moves[k, 1], planets)
            if in_fields:
                planets.fields.clock[0] += moves[k, 1]

    @inner
    def begin(x, v, X, V, from_present, planets):
        """The map's coordinates X, V from positions x and velocities v, (3, N) each, and tangent vectors too."""
        to_jacobi(x, planets.m, X)
        to_jacobi(v, planets.m, V)
        for k in range(len(planets.tangents) if planets.varied else 0):
            tangent_to_jacobi(x, X, k, 0, planets)
            tangent_to_jacobi(v, V, k, 1, planets)
        if planets.per_c2 > 0.0:
            to_momenta(X, V, planets.inner, planets.per_c2)
        move(X, V, from_present, planets)

    @inner
    def present(X, V, to_present, planets, x, v):
        """Positions x and velocities v, (3, N), of the map's coordinates. ``planets`` are :func:`without_tangents`, or these
        move to the present too."""
        end_X, end_V = X.copy(), V.copy()
        move(end_X, end_V, to_present, planets)
        if planets.per_c2 > 0.0:
            to_velocities(end_X, end_V, planets.inner, planets.per_c2)
        from_jacobi(end_X, planets.m, planets.inner, x)
        from_jacobi(end_V, planets.m, planets.inner, v)

    return MapSteps(move, begin, present)


@part
def relative_size(change, rows):
    """The largest change of a column of (3, n) rows; of the centre of mass in units of the least of the others."""
    largest, least = 0.0, np.inf
    for i in range(rows.shape[1] - 1, -1, -1):
        size2 = change[0, i] ** 2 + change[1, i] ** 2 + change[2, i] ** 2
        if i > 0:
            least = min(least, rows[0, i] ** 2 + rows[1, i] ** 2 + rows[2, i] ** 2)
        largest = max(largest, size2 / least)
    return np.sqrt(largest)


@part
def distances(X, distance):
    """Those of all planets from the centres of their orbits."""
    for i in range(1, distance.size):
        distance[i] = np.sqrt(X[0, i] ** 2 + X[1, i] ** 2 + X[2, i] ** 2)
