"""The moves of Wisdom and Holman's map on a CPU: Kepler drifts and kicks, eight planets at a time (:mod:`.map_bodies`).

Formulas and sources: :mod:`.wisdom_holman`. Tangent vectors are moved by the derivative of each move, so theirs are those of
the map, not of the differential equation (Mikkola & Innanen 1999).
"""

import numpy as np

from nbody.compute.in_kernels.cpu_vectors import LANES, any_of, choose, fma, lane, load, root, spread, store, sums_from
from nbody.integrators.solvers.jacobi import part
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
    TIME,
    WRONG,
    V,
    X,
    dot,
    loaded,
    stored,
)  # fmt: skip
from nbody.integrators.solvers.map_forces import (
    accelerate,
    add_forces,
    add_slopes,
    kick_by_masses,
    note_closest,
    settle,
    shift_sites,
)


@part
def drift(h, planets):
    """Kepler motion of all planets, and the straight motion of the centre of mass."""
    rows, per_c2, vectors, rate = planets.rows, planets.per_c2, planets.tangents, 3.0 * h * planets.per_c2
    for c in range(3):
        rows[X + c, STAR] += h * rows[V + c, STAR]
        for k in range(len(vectors) if planets.varied else 0):
            vectors[k, 0, c, STAR] += h * vectors[k, 1, c, STAR]
    if planets.varied:
        begin_of_masses(planets)
    for at in range(FIRST, rows.shape[1], LANES):
        (x, y, z), (u, v, w), mu = loaded(rows, X, at), loaded(rows, V, at), load(rows, INNER, at)
        time = spread(h)
        if per_c2 > 0.0:
            time = time + rate * (0.5 * dot(u, v, w, u, v, w) - mu / root(dot(x, y, z, x, y, z)))
        store(rows, TIME, at, time)
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
    if planets.varied:
        end_of_masses(planets)


@part
def begin_of_masses(planets):
    """The change of Kepler motion with its centre's mass, before it. By scaling, d/dμ is (t d/dt - v d/dv)/(2 μ) for the
    motion from x and v over a time t, and as much of v itself."""
    rows, masses, sums = planets.rows, planets.masses, planets.sums
    for k in range(len(masses)):
        for i in range(1, planets.bodies):
            for c in range(3):
                planets.tangents[k, 1, c, STAR + i] -= 0.5 * sums[k, i] / rows[INNER, STAR + i] * rows[V + c, STAR + i]


@part
def end_of_masses(planets):
    """The same after it."""
    rows, vectors, sums = planets.rows, planets.tangents, planets.sums
    for k in range(len(planets.masses)):
        for i in range(1, planets.bodies):
            at = STAR + i
            half, time = 0.5 * sums[k, i] / rows[INNER, at], rows[TIME, at]
            g = time * rows[INNER, at] / rows[DISTANCE, at] ** 3
            for c in range(3):
                vectors[k, 0, c, at] += half * time * rows[V + c, at]
                vectors[k, 1, c, at] += half * (rows[V + c, at] - g * rows[X + c, at])


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
        if k < len(planets.masses):
            shift_sites(k, planets)
        add_slopes(rows, one, planets)
        if k < len(planets.masses):
            kick_by_masses(h, k, planets)
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
    """The same of one matrix: of the bodies, or of a tangent vector."""
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
    """Copy coordinates and velocities."""
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
    """Take the old coordinates."""
    for at in range(FIRST, one.shape[-1], LANES):
        for row in range(3):
            store(one, X + row, at, load(one, OLD + X + row, at))
