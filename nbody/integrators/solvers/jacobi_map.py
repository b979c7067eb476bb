"""The moves of Wisdom and Holman's map on a CPU: Kepler drifts and kicks, eight planets at a time (:mod:`.map_bodies`).

Formulas and sources: :mod:`.wisdom_holman`. Tangent vectors are moved by the derivative of each move, so theirs are those of
the map, not of the differential equation (Mikkola & Innanen 1999).
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.compute.in_kernels.cpu_vectors import LANES, any_of, choose, fma, lane, load, root, spread, store, sums_from
from nbody.fields.field import Term
from nbody.integrators.solvers.jacobi import from_map, part, to_map, to_momenta, to_velocities
from nbody.integrators.solvers.kepler import kepler_step, kepler_tangents
from nbody.integrators.solvers.kepler_lanes import lane_changed, lane_moved, lane_solution
from nbody.integrators.solvers.map_bodies import (
    CHANGES,
    DISTANCE,
    FIRST,
    INNER,
    MASS,
    OF_INNER,
    OLD,
    REAL,
    STAR,
    WRONG,
    V,
    X,
    dot,
    loaded,
    stored,
)  # fmt: skip
from nbody.integrators.solvers.map_fields import map_accelerations
from nbody.integrators.solvers.map_forces import accelerate, add_forces, add_slopes, note_closest, settle

DIFFERENCE = 1e-3
"""The change of bodies in differences of fields, in units of the least of their distances or speeds: errors of 1e-12."""


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
            stored(rows, OLD + X, at, x, y, z)
            stored(rows, OLD + V, at, u, v, w)
        for k in range(len(vectors) if planets.varied else 0):
            one = vectors[k]
            (dx, dy, dz), (du, dv, dw) = loaded(one, X, at), loaded(one, V, at)
            change = lane_changed((x, y, z, u, v, w), (dx, dy, dz, du, dv, dw), mu, rate, solution)
            if some:
                stored(one, OLD + X, at, dx, dy, dz)
                stored(one, OLD + V, at, du, dv, dw)
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
            x, v, mu = rows[OLD + X : OLD + X + 3], rows[OLD + V : OLD + V + 3], rows[INNER, i]
            if planets.varied:
                rows[DISTANCE, i] = kepler_tangents(i, x, v, mu, time, rate, vectors[:, CHANGES:])
            else:
                rows[DISTANCE, i] = kepler_step(i, x, v, mu, time)
            for c in range(3):
                rows[X + c, i], rows[V + c, i] = x[c, i], v[c, i]
                for k in range(len(vectors) if planets.varied else 0):
                    vectors[k, 0, c, i], vectors[k, 1, c, i] = vectors[k, CHANGES, c, i], vectors[k, CHANGES + 1, c, i]


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
def kick(h, planets):
    """Kick with all forces but those of the Kepler motion."""
    rows, per_c2, vectors = planets.rows, planets.per_c2, planets.tangents
    if planets.democratic:
        jump(0.5 * h, planets)
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
    if planets.democratic:
        jump(0.5 * h, planets)


@part
def jump(h, planets):
    """The star's motion, in democratic coordinates: all planets move relative to it."""
    rows, vectors = planets.rows, planets.tangents
    jump_of(h, rows, rows)
    for k in range(len(vectors) if planets.varied else 0):
        jump_of(h, rows, vectors[k])


@part
def jump_of(h, rows, one):
    for c in range(3):
        momentum = 0.0
        for at in range(FIRST, rows.shape[1], LANES):
            momentum += lane(sums_from(load(rows, MASS, at) * load(one, V + c, at)), 0)
        way = h / rows[MASS, STAR] * momentum
        for at in range(FIRST, rows.shape[1], LANES):
            store(one, X + c, at, load(one, X + c, at) + way)


@part
def kick_at_shifted(h, shift, planets):
    """A kick by the accelerations at positions that are moved by ``shift`` times the accelerations."""
    rows, vectors = planets.rows, planets.tangents
    put_aside(rows)
    for k in range(len(vectors) if planets.varied else 0):
        put_aside(vectors[k])
    kick(shift, planets)
    displace(rows)
    for k in range(len(vectors) if planets.varied else 0):
        displace(vectors[k])
    kick(h, planets)
    take_back(rows)
    for k in range(len(vectors) if planets.varied else 0):
        take_back(vectors[k])


@part
def put_aside(one):
    for at in range(FIRST, one.shape[-1], LANES):
        for row in range(6):
            store(one, OLD + row, at, load(one, row, at))


@part
def displace(one):
    """Change positions by what was added to velocities, and take the old velocities."""
    for at in range(FIRST, one.shape[-1], LANES):
        for row in range(3):
            old = load(one, OLD + V + row, at)
            store(one, X + row, at, load(one, X + row, at) + (load(one, V + row, at) - old))
            store(one, V + row, at, old)


@part
def take_back(one):
    for at in range(FIRST, one.shape[-1], LANES):
        for row in range(3):
            store(one, X + row, at, load(one, OLD + X + row, at))


class MapSteps(NamedTuple):
    """The functions ``move(moves, planets)``, ``begin`` and ``present`` of :func:`moving`, for kernels."""

    move: Callable
    begin: Callable
    present: Callable


@cache
def moving(terms: tuple[Term, ...] = ()) -> MapSteps:
    """The functions of a map in external fields."""
    add_fields, in_fields = map_accelerations(terms), bool(terms)
    midpoint = any(term.moving for term in terms)

    @part
    def by_fields(X_, V_, h, planets, found):
        """The accelerations (3, n) of the map's coordinates by the fields in a kick."""
        work, m, democratic = planets.fields.work, planets.rows[MASS, STAR : STAR + planets.bodies], planets.democratic
        middle, x, v = work[0], work[1], work[2]
        from_map(X_, m, democratic, False, x)
        for stage in range(2 if midpoint else 1):
            if midpoint:
                for c in range(3):
                    for i in range(m.size):
                        middle[c, i] = V_[c, i] + (0.5 * h * found[c, i] if stage else 0.0)
                from_map(middle, m, democratic, True, v)
            add_fields(x, v, found, planets.fields)
            to_map(found, m, democratic, True, found)

    @part
    def kick_by_fields(h, planets):
        work, n, last = planets.fields.work, planets.bodies, STAR + planets.bodies
        X_, V_ = planets.rows[X : X + 3, STAR:last], planets.rows[V : V + 3, STAR:last]
        by, slope, ahead_X, ahead_V, rate = work[3], work[4], work[5], work[6], work[7]
        by_fields(X_, V_, h, planets, by)
        for k in range(len(planets.tangents) if planets.varied else 0):
            dX, dV = planets.tangents[k, 0, :, STAR:last], planets.tangents[k, 1, :, STAR:last]
            size = max(relative_size(dX, X_), relative_size(dV, V_))
            step = DIFFERENCE / size if size > 0.0 else 1.0
            for q in (-2, -1, 1, 2):  # a central difference of order 4
                weight = 8.0 * q if abs(q) == 1 else -0.5 * q
                for c in range(3):
                    for i in range(n):
                        ahead_X[c, i], ahead_V[c, i] = X_[c, i] + q * step * dX[c, i], V_[c, i] + q * step * dV[c, i]
                by_fields(ahead_X, ahead_V, h, planets, slope)
                for c in range(3):
                    for i in range(n):
                        rate[c, i] = (rate[c, i] if q > -2 else 0.0) + weight * slope[c, i]
            for c in range(3):
                for i in range(n):
                    dV[c, i] += h / (12.0 * step) * rate[c, i]
        for c in range(3):
            for i in range(n):
                V_[c, i] += h * by[c, i]

    @part
    def move(moves, planets):
        """Make moves, (M, 3): each is a kick, perhaps over no time, and the drift after it; and the shift of the kick."""
        for k in range(len(moves)):
            h, way, shift = moves[k]
            if h != 0.0:
                if midpoint:  # half before and half after, as both depend on velocities
                    kick_by_fields(0.5 * h, planets)
                if shift != 0.0:
                    kick_at_shifted(h, shift, planets)
                else:
                    kick(h, planets)
                if in_fields:
                    kick_by_fields(0.5 * h if midpoint else h, planets)
            drift(way, planets)
            if in_fields:
                planets.fields.clock[0] += way

    @inner
    def begin(x, v, from_present, planets):
        """Put positions x and velocities v, (3, N) each, into the map, with tangent vectors at the present."""
        rows, last, democratic = planets.rows, STAR + planets.bodies, planets.democratic
        m, X_, V_ = rows[MASS, STAR:last], rows[X : X + 3, STAR:last], rows[V : V + 3, STAR:last]
        to_map(x, m, democratic, False, X_)
        to_map(v, m, democratic, True, V_)
        for k in range(len(planets.tangents) if planets.varied else 0):
            for c in range(2):
                one = planets.tangents[k, c, :, STAR:last]
                to_map(one, m, democratic, c == 1, one)
        if planets.per_c2 > 0.0:
            to_momenta(X_, V_, rows[INNER, STAR:last], planets.per_c2)
        move(from_present, planets)

    @inner
    def present(to_present, planets, x, v):
        """Positions x and velocities v, (3, N), of planets, which move to the present."""
        rows, last = planets.rows, STAR + planets.bodies
        X_, V_ = rows[X : X + 3, STAR:last], rows[V : V + 3, STAR:last]
        move(to_present, planets)
        if planets.per_c2 > 0.0:
            to_velocities(X_, V_, rows[INNER, STAR:last], planets.per_c2)
        inertial(planets, x, v)

    return MapSteps(move, begin, present)


@inner
def inertial(planets, x, v):
    """Positions x and velocities v, (3, N), of the map's coordinates as they are; of tangent vectors in place."""
    rows, last, democratic = planets.rows, STAR + planets.bodies, planets.democratic
    m = rows[MASS, STAR:last]
    from_map(rows[X : X + 3, STAR:last], m, democratic, False, x)
    from_map(rows[V : V + 3, STAR:last], m, democratic, True, v)
    for k in range(len(planets.tangents) if planets.varied else 0):
        for c in range(2):
            one = planets.tangents[k, c, :, STAR:last]
            from_map(one, m, democratic, c == 1, one)


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
