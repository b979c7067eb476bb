"""The moves of Wisdom and Holman's map in Jacobi coordinates on a CPU: Kepler drifts and kicks, eight planets at a time.

The planets are columns of a matrix, whose rows load as vectors with a planet in each lane (:mod:`.cpu_vectors`). Body 0 is in
the column before them, and a last vector that is not full has lanes without mass, far from all planets. So the columns from
:data:`STAR` on are (3, N) coordinates. Formulas and sources: :mod:`.wisdom_holman`.

Tangent vectors are moved by the derivative of each move, so theirs are those of the map, not of the differential equation
(Mikkola & Innanen 1999).
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.compute.in_kernels.cpu_vectors import (
    LANES, any_of, choose, fma, lane, load, root, rotated, spread, store, sums_before, sums_from,
)  # fmt: skip
from nbody.fields.field import Term
from nbody.integrators.solvers.jacobi import add_kick, from_jacobi, part, to_jacobi, to_momenta, to_velocities
from nbody.integrators.solvers.kepler import kepler_step, kepler_tangents
from nbody.integrators.solvers.kepler_lanes import lane_changed, lane_moved, lane_solution
from nbody.integrators.solvers.map_fields import MapFields, map_accelerations

STAR, FIRST = LANES - 1, LANES
"""The columns of body 0 and of the innermost planet."""

X, V, SITE, FORCE, OLD_X, OLD_V, DISTANCE, WRONG, MASS, INNER, FRACTION, PER_BEFORE, OF_STAR, OF_INNER, REAL = (
    0, 3, 6, 9, 12, 15, 18, 19, 20, 21, 22, 23, 24, 25, 26,
)  # fmt: skip
ROWS = 27
"""The rows: coordinates and velocities; positions relative to the star, and accelerations, in the last kick; of planets that
a drift has to move singly, coordinates before it; distances after the last drift, and the time of these planets, else NaN; G times the masses, sums of them from the star to a planet, a
planet's part of that, and 1 over the sum before it; the masses of the star and of that sum, 0 for planet 1, of which all of
the star's force is Kepler motion; 1, or 0 in lanes without a planet."""

HOME = LANES // 2 + 1
"""How far a vector is rotated that was rotated by one less than half of the lanes, until its lanes are where they were."""

FAR = 1e30


class MapBodies(NamedTuple):
    """What the moves of a map of n bodies depend on and change.

    Attributes:
        rows: (ROWS, columns), see :data:`ROWS`.
        bodies: n.
        limit: of (m + m') (d + d')³/r³, with two planets' distances d from the star; in a closer encounter the map fails.
        per_c2: 1/c² of relativity, 0 without it.
        met: two planets that were too close in the last kick, or 0 and 0.
        fields: external ones; None without any.
        x: (3, n) scratch of these: positions, which the accelerations replace.
        tangents: (M, 4, 3, columns) the tangent vectors of X and V, which the moves move too, and their ``SITE`` and ``FORCE``.
        varied: ``(True,)`` if there are any, else ``()``: two types, so that a kernel without them has no code for them.
    """

    rows: np.ndarray
    bodies: int
    limit: float
    per_c2: float
    met: np.ndarray
    fields: MapFields | None
    x: np.ndarray
    tangents: np.ndarray
    varied: tuple


@inner
def aligned(rows, columns):
    """A matrix whose vectors do not cross lines of the cache."""
    numbers = np.zeros(rows * columns + LANES)
    begin = (-(numbers.ctypes.data >> 3)) & (LANES - 1)
    return numbers[begin : begin + rows * columns].reshape(rows, columns)


@inner
def planets_of(X_, V_, m, hill, per_c2, fields, tangents, varied):
    """The planets with coordinates X_, V_, (3, N), and G times the masses ``m``, which may come as close as ``hill`` mutual
    Hill radii."""
    n, columns = m.size, LANES * ((m.size - 2) // LANES + 2)
    rows, last = aligned(ROWS, columns), STAR + n
    rows[X, last:], rows[INNER, last:], rows[PER_BEFORE, FIRST:] = FAR, m[0], 1.0
    for i in range(n):
        at = STAR + i
        for c in range(3):
            rows[X + c, at], rows[V + c, at] = X_[c, i], V_[c, i]
        rows[MASS, at], rows[INNER, at] = m[i], m[i]
        if i:
            before = rows[INNER, at - 1]
            rows[INNER, at] = before + m[i]
            rows[FRACTION, at], rows[PER_BEFORE, at], rows[REAL, at] = m[i] / rows[INNER, at], 1.0 / before, 1.0
            rows[DISTANCE, at] = np.sqrt(X_[0, i] ** 2 + X_[1, i] ** 2 + X_[2, i] ** 2)
        if i > 1:
            rows[OF_STAR, at], rows[OF_INNER, at] = m[0], rows[INNER, at]
    for at in range(last, columns):
        rows[X, at] = FAR * (at - STAR)
    vectors = np.zeros((len(tangents), 4, 3, columns))
    if varied:
        vectors[:, :2, :, STAR:last] = tangents
    limit = 24.0 * m[0] / hill**3 if hill > 0.0 else np.inf
    met = np.zeros(2, np.int64)
    return MapBodies(rows, n, limit, per_c2, met, fields, np.empty((3, n)), vectors, varied)


@inner
def present_of(planets):
    """A copy of the planets, without tangent vectors."""
    rows, bodies, limit, per_c2, met, fields, x, vectors, _ = planets
    copy = aligned(rows.shape[0], rows.shape[1])
    copy[:] = rows
    return MapBodies(copy, bodies, limit, per_c2, met.copy(), fields, x, vectors, ())


@inner
def keep(planets, X_, V_, tangents):
    """Copy the coordinates and the tangent vectors back to (3, N) arrays."""
    rows, last = planets.rows, STAR + planets.bodies
    for c in range(3):
        for i in range(planets.bodies):
            X_[c, i], V_[c, i] = rows[X + c, STAR + i], rows[V + c, STAR + i]
    if planets.varied:
        tangents[:] = planets.tangents[:, :2, :, STAR:last]


@part
def loaded(rows, row, at):
    """Three rows of one vector of planets."""
    return load(rows, row, at), load(rows, row + 1, at), load(rows, row + 2, at)


@part
def stored(rows, row, at, x, y, z):
    store(rows, row, at, x)
    store(rows, row + 1, at, y)
    store(rows, row + 2, at, z)


@part
def dot(x, y, z, u, v, w):
    return fma(x, u, fma(y, v, z * w))


@part
def drift(h, planets):
    """Kepler motion of all planets, and the straight motion of the centre of mass."""
    rows, per_c2, vectors, rate = planets.rows, planets.per_c2, planets.tangents, 3.0 * h * planets.per_c2
    for c in range(3):
        rows[X + c, STAR] += h * rows[V + c, STAR]
        for k in range(len(vectors) if planets.varied else 0):
            vectors[k, 0, c, STAR] += h * vectors[k, 1, c, STAR]
    for at in range(FIRST, rows.shape[1], LANES):
        (x, y, z), (u, v, w), mu = loaded(rows, X, at), loaded(rows, V, at), load(rows, INNER, at)
        time = spread(h)
        if per_c2 > 0.0:
            time = time + rate * (0.5 * dot(u, v, w, u, v, w) - mu / root(dot(x, y, z, x, y, z)))
        solution, wrong = lane_solution(x, y, z, u, v, w, mu, time)
        some = any_of(wrong)
        if some:
            store(rows, WRONG, at, choose(wrong, time, spread(np.nan)))
            stored(rows, OLD_X, at, x, y, z)
            stored(rows, OLD_V, at, u, v, w)
        for k in range(len(vectors) if planets.varied else 0):
            one = vectors[k]
            (dx, dy, dz), (du, dv, dw) = loaded(one, X, at), loaded(one, V, at)
            change = lane_changed((x, y, z, u, v, w), (dx, dy, dz, du, dv, dw), mu, rate, solution)
            if some:
                stored(one, SITE, at, dx, dy, dz)
                stored(one, FORCE, at, du, dv, dw)
            stored(one, X, at, change[0], change[1], change[2])
            stored(one, V, at, change[3], change[4], change[5])
        x, y, z, u, v, w = lane_moved(x, y, z, u, v, w, mu, solution)
        stored(rows, X, at, x, y, z)
        stored(rows, V, at, u, v, w)
        store(rows, DISTANCE, at, solution[10] * load(rows, REAL, at))
        if some:
            drift_singly(at, rate, planets)


@part
def drift_singly(at, rate, planets):
    """Move the planets of a vector for which the steps are too long."""
    rows, vectors = planets.rows, planets.tangents
    for i in range(at, min(at + LANES, STAR + planets.bodies)):
        time = rows[WRONG, i]
        if time == time:
            x, v, mu = rows[OLD_X : OLD_X + 3], rows[OLD_V : OLD_V + 3], rows[INNER, i]
            if planets.varied:
                rows[DISTANCE, i] = kepler_tangents(i, x, v, mu, time, rate, vectors[:, 2:])
            else:
                rows[DISTANCE, i] = kepler_step(i, x, v, mu, time)
            for c in range(3):
                rows[X + c, i], rows[V + c, i] = x[c, i], v[c, i]
                for k in range(len(vectors) if planets.varied else 0):
                    vectors[k, 0, c, i], vectors[k, 1, c, i] = vectors[k, 2, c, i], vectors[k, 3, c, i]


@part
def shift(h, planets):
    """Relativity's term -v⁴/(2c²)."""
    rows, rate, vectors = planets.rows, 2.0 * h * planets.per_c2, planets.tangents
    for at in range(FIRST, rows.shape[1], LANES):
        u, v, w = loaded(rows, V, at)
        f = rate * dot(u, v, w, u, v, w)
        for k in range(len(vectors) if planets.varied else 0):
            one = vectors[k]
            (dx, dy, dz), (du, dv, dw) = loaded(one, X, at), loaded(one, V, at)
            g = 2.0 * rate * dot(u, v, w, du, dv, dw)
            stored(one, X, at, dx - (f * du + g * u), dy - (f * dv + g * v), dz - (f * dw + g * w))
        x, y, z = loaded(rows, X, at)
        stored(rows, X, at, x - f * u, y - f * v, z - f * w)


@part
def settle(rows, fraction):
    """Positions relative to the star, of coordinates; ``fraction``: the matrix with that row."""
    for c in range(3):
        carried = 0.0
        for at in range(FIRST, rows.shape[-1], LANES):
            x = load(rows, X + c, at)
            part_of_all = load(fraction, FRACTION, at) * x
            before = sums_before(part_of_all) + carried
            store(rows, SITE + c, at, x + before)
            carried = lane(before + part_of_all, LANES - 1)


def summing_pairs(sides: Callable, alone: Callable, pair: Callable) -> Callable:
    """For kernels: ``add(rows, to, planets)``, which puts accelerations into the rows ``FORCE`` of ``to``, and returns the
    largest fourth component of the sums.

    Args:
        sides: ``(rows, to, at)``, what a pair must know of a vector of planets.
        alone: ``(own, rows, at)``, the sums of the planets without others: a tuple of four vectors.
        pair: ``(own, other, sums, back)``, the sums with those of pairs, and ``back`` with what acts on the others.
    """

    @part
    def add(rows, to, planets):
        worst, zero = spread(0.0), spread(0.0)
        for at in range(FIRST, rows.shape[1], LANES):
            own = sides(rows, to, at)
            other, sums, back = own, alone(own, rows, at), (zero, zero, zero)
            for _ in range(LANES // 2 - 1):  # each lane with the next three, which it acts on too
                other, back = rotated(other, 1), rotated(back, 1)
                sums, back = pair(own, other, sums, back)
            other, back = rotated(other, 1), rotated(back, HOME)
            sums, _ = pair(own, other, sums, (zero, zero, zero))
            x, y, z, most = sums
            x, y, z, sums = x - back[0], y - back[1], z - back[2], (zero, zero, zero, most)
            for before in range(FIRST, at, LANES):
                other, back = sides(rows, to, before), (zero, zero, zero)
                for _ in range(LANES):
                    sums, back = pair(own, other, sums, back)
                    other, back = rotated(other, 1), rotated(back, 1)
                a, b, c = loaded(to, FORCE, before)
                stored(to, FORCE, before, a - back[0], b - back[1], c - back[2])
            stored(to, FORCE, at, x + sums[0], y + sums[1], z + sums[2])
            worst = choose(sums[3] > worst, sums[3], worst)
        return worst

    return add


@part
def force_sides(rows, to, at):
    (x, y, z), m, r = loaded(rows, SITE, at), load(rows, MASS, at), load(rows, DISTANCE, at)
    return x, y, z, m, r


@part
def force_of_star(own, rows, at):
    x, y, z, _, _ = own
    r2 = dot(x, y, z, x, y, z)
    f = load(rows, OF_STAR, at) / (r2 * root(r2))
    return -f * x, -f * y, -f * z, spread(0.0)


@part
def force_of_pair(own, other, sums, back):
    """The force, and in the fourth sum the largest (m + m') (d + d')³/r³."""
    (x, y, z, m, r), (x_, y_, z_, m_, r_), (ax, ay, az, most), (bx, by, bz) = own, other, sums, back
    dx, dy, dz, d = x_ - x, y_ - y, z_ - z, r + r_
    r2 = dot(dx, dy, dz, dx, dy, dz)
    f = 1.0 / (r2 * root(r2))
    near = (m + m_) * f * (d * d * d)
    g, h = f * m_, f * m
    return (
        (fma(g, dx, ax), fma(g, dy, ay), fma(g, dz, az), choose(near > most, near, most)),
        (fma(h, dx, bx), fma(h, dy, by), fma(h, dz, bz)),
    )


add_forces = summing_pairs(force_sides, force_of_star, force_of_pair)


@part
def slope_sides(rows, to, at):
    (x, y, z), (dx, dy, dz) = loaded(rows, SITE, at), loaded(to, SITE, at)
    return x, y, z, dx, dy, dz, load(rows, MASS, at)


@part
def slope(x, y, z, dx, dy, dz):
    """The derivative of d/|d|³ along a change of d."""
    r2 = dot(x, y, z, x, y, z)
    per_r2 = 1.0 / r2
    f, along = per_r2 / root(r2), -3.0 * dot(x, y, z, dx, dy, dz) * per_r2
    return f * fma(along, x, dx), f * fma(along, y, dy), f * fma(along, z, dz)


@part
def slope_of_star(own, rows, at):
    x, y, z, dx, dy, dz, _ = own
    (a, b, c), m = slope(x, y, z, dx, dy, dz), load(rows, OF_STAR, at)
    return -m * a, -m * b, -m * c, spread(0.0)


@part
def slope_of_pair(own, other, sums, back):
    (x, y, z, dx, dy, dz, m), (x_, y_, z_, dx_, dy_, dz_, m_) = own, other
    a, b, c = slope(x_ - x, y_ - y, z_ - z, dx_ - dx, dy_ - dy, dz_ - dz)
    (ax, ay, az, most), (bx, by, bz) = sums, back
    return (
        (fma(m_, a, ax), fma(m_, b, ay), fma(m_, c, az), most),
        (fma(m, a, bx), fma(m, b, by), fma(m, c, bz)),
    )


add_slopes = summing_pairs(slope_sides, slope_of_star, slope_of_pair)


@part
def accelerate(h, rows, to):
    """Change Jacobi velocities by accelerations, whose forces are all between the bodies, over a time h."""
    for c in range(3):
        carried = 0.0
        for at in range(rows.shape[1] - LANES, STAR, -LANES):
            a = load(to, FORCE + c, at)
            further = sums_from(load(rows, MASS, at) * a) + carried
            store(to, V + c, at, fma(h, fma(load(rows, PER_BEFORE, at), further, a), load(to, V + c, at)))
            carried = lane(further, 0)


@part
def kick(h, planets):
    """Kick with all forces but those of the Kepler motion."""
    rows, per_c2, vectors = planets.rows, planets.per_c2, planets.tangents
    if per_c2 > 0.0:
        shift(0.5 * h, planets)
    settle(rows, rows)
    too_close = add_forces(rows, rows, planets) > planets.limit
    accelerate(h, rows, rows)
    for k in range(len(vectors) if planets.varied else 0):
        one = vectors[k]
        settle(one, rows)
        add_slopes(rows, one, planets)
        accelerate(h, rows, one)
    for at in range(FIRST, rows.shape[1], LANES):
        (x, y, z), (u, v, w), mu = loaded(rows, X, at), loaded(rows, V, at), load(rows, OF_INNER, at)
        r2 = dot(x, y, z, x, y, z)
        f, g = h * mu / (r2 * root(r2)), spread(0.0)
        if per_c2 > 0.0:
            strength = load(rows, INNER, at) / r2
            g = 2.0 * h * per_c2 * strength * strength
        stored(rows, V, at, fma(f - g, x, u), fma(f - g, y, v), fma(f - g, z, w))
        for k in range(len(vectors) if planets.varied else 0):
            one = vectors[k]
            (dx, dy, dz), (du, dv, dw) = loaded(one, X, at), loaded(one, V, at)
            along = dot(x, y, z, dx, dy, dz) / r2 * (4.0 * g - 3.0 * f)
            stored(
                one, V, at, fma(along, x, fma(f - g, dx, du)), fma(along, y, fma(f - g, dy, dv)),
                fma(along, z, fma(f - g, dz, dw)),
            )  # fmt: skip
    planets.met[:] = 0
    if any_of(too_close):
        note_closest(planets)
    if per_c2 > 0.0:
        shift(0.5 * h, planets)


@part
def note_closest(planets):
    """Note the two planets that are closest in Hill radii."""
    rows, most = planets.rows, 0.0
    for i in range(FIRST + 1, STAR + planets.bodies):
        for j in range(FIRST, i):
            r2 = 0.0
            for c in range(3):
                r2 += (rows[SITE + c, i] - rows[SITE + c, j]) ** 2
            near = (rows[MASS, i] + rows[MASS, j]) * ((rows[DISTANCE, i] + rows[DISTANCE, j]) / np.sqrt(r2)) ** 3
            if near > most:
                most, planets.met[0], planets.met[1] = near, i - STAR, j - STAR


class MapSteps(NamedTuple):
    """The functions ``move(moves, planets)``, ``begin`` and ``present`` of :func:`moving`, for kernels."""

    move: Callable
    begin: Callable
    present: Callable


@cache
def moving(terms: tuple[Term, ...] = ()) -> MapSteps:
    """The functions of a map in external fields."""
    add_fields, in_fields = map_accelerations(terms), bool(terms)

    @inner
    def kick_by_fields(h, planets):
        rows, x, last = planets.rows, planets.x, STAR + planets.bodies
        m, sums = rows[MASS, STAR:last], rows[INNER, STAR:last]
        from_jacobi(rows[X : X + 3, STAR:last], m, sums, x)
        add_fields(x, x, planets.fields)
        add_kick(rows[V : V + 3, STAR:last], x, h, m, sums)

    @part
    def move(moves, planets):
        """Make moves, (M, 2): each is a kick, perhaps over no time, and the drift after it."""
        for k in range(len(moves)):
            if moves[k, 0] != 0.0:
                kick(moves[k, 0], planets)
                if in_fields:
                    kick_by_fields(moves[k, 0], planets)
            drift(moves[k, 1], planets)
            if in_fields:
                planets.fields.clock[0] += moves[k, 1]

    @inner
    def begin(x, v, from_present, planets):
        """Put positions x and velocities v, (3, N) each, into the map, with tangent vectors at the present."""
        rows, last = planets.rows, STAR + planets.bodies
        m, X_, V_ = rows[MASS, STAR:last], rows[X : X + 3, STAR:last], rows[V : V + 3, STAR:last]
        to_jacobi(x, m, X_)
        to_jacobi(v, m, V_)
        for k in range(len(planets.tangents) if planets.varied else 0):
            for c in range(2):
                one = planets.tangents[k, c, :, STAR:last]
                to_jacobi(one.copy(), m, one)
        if planets.per_c2 > 0.0:
            to_momenta(X_, V_, rows[INNER, STAR:last], planets.per_c2)
        move(from_present, planets)

    @inner
    def present(to_present, planets, x, v):
        """Positions x and velocities v, (3, N), of planets, which move to the present."""
        rows, last = planets.rows, STAR + planets.bodies
        m, sums, X_, V_ = (
            rows[MASS, STAR:last], rows[INNER, STAR:last], rows[X : X + 3, STAR:last], rows[V : V + 3, STAR:last],
        )  # fmt: skip
        move(to_present, planets)
        if planets.per_c2 > 0.0:
            to_velocities(X_, V_, sums, planets.per_c2)
        from_jacobi(X_, m, sums, x)
        from_jacobi(V_, m, sums, v)

    return MapSteps(move, begin, present)
