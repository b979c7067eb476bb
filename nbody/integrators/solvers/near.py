"""Which bodies are near each other, or near the star, in a step of :mod:`.hybrid`, and move together (:mod:`.encounters`).

Two planets are *near* each other if they are, or within half a step were or will be, closer than ``hill`` Hill radii. A
planet is near the star if its orbit turns by about a radian in a step. Both answers are the same for reversed velocities, so
that a step and its reverse agree about them (Lu, Hernandez & Rein 2024).

Planets with mass that are near each other, directly or through others, are a group. A body without mass has no group.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.post_newtonian import STRICT
from nbody.forces.direct.cpu_few import summing
from nbody.integrators.solvers.pair_forces import separation

WIDER = 1.5
"""Pairs are compared before the kick that ends a step. Those closer than this many times the distance at which they are near
each other are looked at again after it."""

EARLIER = 4.0
"""A planet that will pass the star is near it as soon as a step is longer than its time scale divided by this. (With 1, as
in TRACE, the change from one motion to the other changes a comet's energy by 1e-4 of it, however short the steps are.)"""


class Survey(NamedTuple):
    """What is known of the bodies at one end of a step.

    Attributes:
        a: (3, N) the accelerations by planets that are not ``close``.
        close: (P, 2) pairs i > j that may be near each other, of which ``counts[0]`` are in use.
        near: (P,) which of them are.
        hurried, falling: (N,) which bodies are near the star, and whose orbits come to its surface.
        critical: (N,) the critical distances.
        counts: (1,).
    """

    a: np.ndarray
    close: np.ndarray
    near: np.ndarray
    hurried: np.ndarray
    falling: np.ndarray
    critical: np.ndarray
    counts: np.ndarray


class StarBodies(NamedTuple):
    """What does not change in the steps of a call.

    Attributes:
        m: (N,) G times the masses.
        size: (N,) the critical distances, in units of those from the star.
        radius: (N,) 0 if nothing looks for contacts.
        half: half the length of a step.
    """

    m: np.ndarray
    size: np.ndarray
    radius: np.ndarray
    half: float


class Search(NamedTuple):
    """What :func:`far_pair` needs: bodies, their velocities, and the survey that notes pairs."""

    bodies: StarBodies
    V: np.ndarray
    survey: Survey


@inner(fastmath=STRICT)
def distance(i, j, bodies, found):
    """The distance at which two planets are near each other; 0 if neither has a mass or a radius."""
    return max(found.critical[i], found.critical[j], bodies.radius[i] + bodies.radius[j])


@inner(fastmath=STRICT)
def far_pair(i, j, dx, dy, dz, pairs):
    """1/r³ of two planets; 0 if they may be near each other. Then they are noted, if there is room."""
    bodies, V, r2 = pairs.bodies, pairs.V, dx * dx + dy * dy + dz * dz
    limit = distance(i, j, bodies, pairs.survey)
    if limit == 0.0:
        return 0.0
    u, v, w = V[0, j] - V[0, i], V[1, j] - V[1, i], V[2, j] - V[2, i]
    way2 = bodies.half * bodies.half * (u * u + v * v + w * w)
    if r2 >= 2.0 * WIDER * WIDER * (limit * limit + way2):
        return 1.0 / (r2 * np.sqrt(r2))
    k = pairs.survey.counts[0]
    if k < len(pairs.survey.close):
        pairs.survey.close[k, 0], pairs.survey.close[k, 1] = i, j
    pairs.survey.counts[0] = k + 1
    return 0.0


add_far_pairs = summing(far_pair, separation, 2, 1)


@inner
def no_survey(n):
    """The arrays of a survey of n bodies."""
    return Survey(
        np.empty((3, n)), np.empty((8, 2), np.int64), np.empty(8, np.bool_),
        np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n),
        np.zeros(1, np.int64),
    )  # fmt: skip


@inner
def survey(Q, V, bodies, old):
    """Fill in accelerations and close pairs. Returns the survey, with longer arrays if there are more pairs."""
    found, size = old, bodies.size
    while True:
        for i in range(1, size.size):
            found.critical[i] = size[i] * np.sqrt(Q[0, i] * Q[0, i] + Q[1, i] * Q[1, i] + Q[2, i] * Q[2, i])
        found.a[:], found.counts[0] = 0.0, 0
        add_far_pairs(Q, bodies.m, 1.0, Search(bodies, V, found), found.a)
        count = found.counts[0]
        if count <= len(found.close):
            return found
        found = Survey(
            old.a, np.empty((2 * count, 2), np.int64), np.empty(2 * count, np.bool_), old.hurried, old.falling,
            old.critical, old.counts,
        )  # fmt: skip


def is_near(dx, dy, dz, u, v, w, half, limit):
    """True if two planets are closer than ``limit`` now, or on straight lines at a time within ``half`` of it, from their
    separation and relative velocity. To be compiled, for both processors."""
    r2, rv, v2 = dx * dx + dy * dy + dz * dz, dx * u + dy * v + dz * w, u * u + v * v + w * w
    t = min(half, abs(rv) / v2) if v2 > 0.0 else 0.0
    return r2 < limit * limit or r2 - t * (2.0 * abs(rv) - t * v2) < limit * limit


def about_star(x, y, z, vx, vy, vz, mu, h, touching):
    """Two truth values: the planet is near the star; its orbit comes as close to the star as ``touching``. To be compiled,
    for both processors.

    It is near if a step is longer than the time scale of its motion, √(2 a²/(j² + a s)) with the acceleration a and its
    derivatives j and s (Pham, Rein & Spiegel 2024): 1/ω on a circle."""
    r2, rv, v2 = x * x + y * y + z * z, x * vx + y * vy + z * vz, vx * vx + vy * vy + vz * vz
    r = math.sqrt(r2)
    u = mu / (r2 * r)  # the acceleration is -u (x, y, z)
    if h * h * (u + v2 / r2) < 0.1:  # far from both
        return False, False
    if touching > 0.0 and rv * rv >= (r - touching) * (2.0 * mu - (2.0 * mu / r - v2) * (r + touching)):
        return False, True
    slope = rv / r2
    first = -3.0 * u * slope
    second = -3.0 * (first * slope + u * ((v2 - u * r2) / r2 - 2.0 * slope * slope)) - u * u
    jx, jy, jz = u * vx + first * x, u * vy + first * y, u * vz + first * z
    sx, sy, sz = second * x + 2.0 * first * vx, second * y + 2.0 * first * vy, second * z + 2.0 * first * vz
    jerk2, snap2 = jx * jx + jy * jy + jz * jz, sx * sx + sy * sy + sz * sz
    a2 = u * u * r2
    return h * h * (jerk2 + math.sqrt(a2 * snap2)) > 2.0 * a2, False


def star_function(compiled: Callable) -> Any:
    """The function ``towards_star(x, y, z, vx, vy, vz, mu, h, touching)`` for a processor: the answers of
    :func:`about_star`; a planet that is near the star at its pericentre is so from :data:`EARLIER` on."""
    about = compiled(about_star)

    @compiled
    def towards_star(x, y, z, u, v, w, mu, h, touching):
        near, falls = about(x, y, z, u, v, w, mu, h, touching)
        if not (near or falls) and about(x, y, z, u, v, w, mu, EARLIER * h, 0.0)[0]:
            a, b, c = y * w - z * v, z * u - x * w, x * v - y * u
            j2, energy2 = a * a + b * b + c * c, u * u + v * v + w * w - 2.0 * mu / math.sqrt(x * x + y * y + z * z)
            q = j2 / (mu + math.sqrt(max(0.0, mu * mu + energy2 * j2)))
            near = q == 0.0 or about(q, 0.0, 0.0, 0.0, math.sqrt(j2) / q, 0.0, mu, h, 0.0)[0]
        return near, falls

    return towards_star


_is_near, _towards_star = inner(is_near, fastmath=STRICT), star_function(inner(fastmath=STRICT))


@inner
def look(Q, V, bodies, found):
    """Fill in which pairs are near each other, and which bodies are near the star. A planet that is about to fall onto it
    stays on its orbit. Returns True if any are near."""
    any_of_them, radius = False, bodies.radius
    for i in range(1, radius.size):
        touching = radius[0] + radius[i]
        found.hurried[i], found.falling[i] = _towards_star(
            Q[0, i], Q[1, i], Q[2, i], V[0, i], V[1, i], V[2, i], bodies.m[0], 2.0 * bodies.half, touching
        )
        any_of_them |= found.hurried[i]
    for k in range(found.counts[0]):
        i, j = found.close[k]
        on_orbits = found.falling[i] or found.falling[j]
        found.near[k] = not on_orbits and _is_near(
            Q[0, j] - Q[0, i], Q[1, j] - Q[1, i], Q[2, j] - Q[2, i], V[0, j] - V[0, i], V[1, j] - V[1, i],
            V[2, j] - V[2, i], bodies.half, distance(i, j, bodies, found),
        )  # fmt: skip
        any_of_them |= found.near[k]
    return any_of_them


class Company(NamedTuple):
    """Which bodies move together in a step.

    Attributes:
        group: (N,) the first body of the group of each one with mass; itself if it is alone.
        meets: (N,) which bodies do not move alone.
        pairs: (P, 2) all pairs i > j within groups, and those of a body without mass and one that it is near to; the first
            ``counts[0]`` are in use. Their attraction is not a part of kicks.
        hurried: (N,) the bodies that move with the star.
        counts: (2,) and the number of bodies with mass that move with the star.
    """

    group: np.ndarray
    meets: np.ndarray
    pairs: np.ndarray
    hurried: np.ndarray
    counts: np.ndarray


@inner
def no_company(n):
    """The company of n bodies that move alone."""
    none = np.zeros(n, np.bool_)
    return Company(np.arange(n), none, np.empty((8, 2), np.int64), none.copy(), np.zeros(2, np.int64))


@inner
def holds(pairs, count, i, j):
    """True if the pair i > j is one of the first ``count`` rows."""
    for k in range(count):  # noqa: SIM110  (Numba compiles no generators)
        if pairs[k, 0] == i and pairs[k, 1] == j:
            return True
    return False


@inner
def join(i, j, m, company):
    """Let the pair i > j move together."""
    k = company.counts[0]
    company.pairs[k, 0], company.pairs[k, 1], company.counts[0] = i, j, k + 1
    company.meets[i] |= m[i] == 0.0 or m[j] > 0.0
    company.meets[j] |= m[j] == 0.0 or m[i] > 0.0


@inner
def gather(m, found, company):
    """Add the bodies that are near each other in a survey to a company. Returns it, and True if it has grown."""
    group, meets, old, hurried, counts = company
    grown, old_count = False, counts[0]
    for i in range(1, m.size):
        if found.hurried[i] and not hurried[i]:
            hurried[i] = grown = True
    for k in range(found.counts[0]):
        i, j = found.close[k]
        if found.near[k] and not holds(old, old_count, i, j):
            grown = True
            if m[i] > 0.0 and m[j] > 0.0:
                first, other = min(group[i], group[j]), max(group[i], group[j])
                for b in range(1, m.size):
                    if group[b] == other:
                        group[b] = first
    if not grown:
        return company, False
    sizes = np.zeros(m.size, np.int64)
    for i in range(m.size):
        sizes[group[i]] += 1
    most = np.sum(sizes[1:] * sizes[1:]) + found.counts[0] + old_count
    counts[0] = 0
    new = Company(group, meets, np.empty((most, 2), np.int64), hurried, counts)
    for i in range(1, m.size):
        for j in range(group[i], i if sizes[group[i]] > 1 else 0):
            if group[j] == group[i]:
                join(i, j, m, new)
                hurried[group[i]] |= hurried[i] or hurried[j]
    for i in range(1, m.size):
        hurried[i] |= hurried[group[i]]
    for rows, used, count in (
        (old, np.ones(len(old), np.bool_), old_count),
        (found.close, found.near, found.counts[0]),
    ):
        for k in range(count):
            i, j = rows[k]
            if used[k] and (m[i] == 0.0 or m[j] == 0.0) and not holds(new.pairs, counts[0], i, j):
                join(i, j, m, new)
                hurried[i] |= m[i] == 0.0 and m[j] > 0.0 and hurried[j]
                hurried[j] |= m[j] == 0.0 and m[i] > 0.0 and hurried[i]
    counts[1] = np.sum(hurried & (m > 0.0))
    return new, True


@inner
def is_comet(i, m, company):
    """True if body i is near the star without others with mass."""
    return company.hurried[i] and company.counts[1] == (m[i] > 0.0) and not company.meets[i]
