"""The forces of the planets of a map on each other, in the lanes of vectors, and their derivatives along tangent vectors.

A vector of planets meets one whose lanes are rotated, lane by lane; so each pair of two vectors is computed once.
"""

from collections.abc import Callable

import numpy as np

from nbody.compute.in_kernels.cpu_vectors import (
    LANES,
    choose,
    fma,
    lane,
    load,
    root,
    rotated,
    spread,
    store,
    sums_before,
    sums_from,
)  # fmt: skip
from nbody.integrators.solvers.jacobi import part
from nbody.integrators.solvers.map_bodies import (
    DISTANCE,
    FIRST,
    FORCE,
    FRACTION,
    HOME,
    INNER,
    MASS,
    OF_STAR,
    PER_BEFORE,
    SITE,
    STAR,
    V,
    X,
    dot,
    loaded,
    stored,
)  # fmt: skip


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
    """Position, mass and distance from the star."""
    (x, y, z), m, r = loaded(rows, SITE, at), load(rows, MASS, at), load(rows, DISTANCE, at)
    return x, y, z, m, r


@part
def force_of_star(own, rows, at):
    """That on all planets but the first."""
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
    """Positions, the tangent vector's, and masses."""
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
    """The change of that on all planets but the first."""
    x, y, z, dx, dy, dz, _ = own
    (a, b, c), m = slope(x, y, z, dx, dy, dz), load(rows, OF_STAR, at)
    return -m * a, -m * b, -m * c, spread(0.0)


@part
def slope_of_pair(own, other, sums, back):
    """The change of the force."""
    (x, y, z, dx, dy, dz, m), (x_, y_, z_, dx_, dy_, dz_, m_) = own, other
    a, b, c = slope(x_ - x, y_ - y, z_ - z, dx_ - dx, dy_ - dy, dz_ - dz)
    (ax, ay, az, most), (bx, by, bz) = sums, back
    return ((fma(m_, a, ax), fma(m_, b, ay), fma(m_, c, az), most), (fma(m, a, bx), fma(m, b, by), fma(m, c, bz)))


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


@part
def shift_sites(k, planets):
    """Change a tangent vector's positions relative to the star by their derivative along changes of the masses."""
    rows, one, dm, sums = planets.rows, planets.tangents[k], planets.masses[k], planets.sums[k]
    for c in range(3):
        before = 0.0
        for i in range(1, planets.bodies):
            at = STAR + i
            one[2, c, i + STAR] += before
            before += (dm[i] - rows[FRACTION, at] * sums[i]) / rows[INNER, at] * rows[X + c, at]


@part
def kick_by_masses(h, k, planets):
    """Add what changes of masses attract to a tangent vector's accelerations, and kick by the change of coordinates."""
    rows, one, dm, sums, n = planets.rows, planets.tangents[k], planets.masses[k], planets.sums[k], planets.bodies
    for i in range(2, n):
        for j in range(i):
            r2 = 0.0
            for c in range(3):
                r2 += (rows[SITE + c, STAR + j] - rows[SITE + c, STAR + i]) ** 2
            f = 1.0 / (r2 * np.sqrt(r2))
            for c in range(3):
                d = rows[SITE + c, STAR + j] - rows[SITE + c, STAR + i]
                one[3, c, STAR + i] += dm[j] * f * d
                if j:
                    one[3, c, STAR + j] -= dm[i] * f * d
    for c in range(3):
        changed, further = 0.0, 0.0
        for i in range(n - 1, 0, -1):
            at = STAR + i
            a, r2 = rows[FORCE + c, at], rows[X, at] ** 2 + rows[X + 1, at] ** 2 + rows[X + 2, at] ** 2
            changed, further, before = changed + dm[i] * a, further + rows[MASS, at] * a, rows[INNER, at - 1]
            slope = (changed - sums[i - 1] / before * further) / before
            if i > 1:
                slope += sums[i] / (r2 * np.sqrt(r2)) * rows[X + c, at]
            one[1, c, at] += h * slope
