"""What bodies do that meet during a step of :mod:`.hybrid`: which they are, and their motion by :mod:`.radau`.

Two planets are *near* each other if they are, or within half a step were or will be, closer than ``hill`` Hill radii. A
planet is near the star if its orbit turns by about a radian in a step. Both answers are the same for reversed velocities, so
that a step and its reverse agree about them (Lu, Hernandez & Rein 2024).

Planets with mass that are near each other, directly or through others, are a group, which moves by itself about the star at
rest in the origin. A group of which one is near the star, and a planet alone that is, move with the star: it is drawn by
them, and drifts with the mean velocity that the other planets give it in the step. So a single planet is on a Kepler orbit
about a star that moves straight, however close it comes, and no other body is a part of its passage. A body without mass
moves among copies of those that it is near to, so that it changes no bit of their motion; and if it alone is near the star,
as a comet, the tides of planets kick it during the step.
"""

import math
from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.post_newtonian import STRICT
from nbody.forces.direct.cpu_few import summing
from nbody.integrators.adaptive import END, NEXT
from nbody.integrators.collisions.contact import any_contact, fill
from nbody.integrators.collisions.orbit import orbit_contact
from nbody.integrators.solvers.kepler import kepler_step
from nbody.integrators.solvers.pair_forces import FIXED, FREE, TEST_BODY, Attraction, separation
from nbody.integrators.solvers.radau import RadauStep, StepLimits, stepper_for
from nbody.integrators.solvers.systems.arrays import copy

WIDER = 1.5
"""Pairs are compared before the kick that ends a step. Those closer than this many times the distance at which they are near
each other are looked at again after it."""

EARLIER = 4.0
"""A planet that will pass the star is near it as soon as a step is longer than its time scale divided by this. (With 1, as
in TRACE, the change from one motion to the other changes a comet's energy by 1e-4 of it, however short the steps are.)"""

PARTS, TIDE = 8, 1e-6
"""Of a comet's step, if a tide is stronger than this: G m h²/r³."""

encounter_steps = inner(stepper_for("encounter"), calls=True)


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
            old.a,
            np.empty((2 * count, 2), np.int64),
            np.empty(2 * count, np.bool_),
            old.hurried,
            old.falling,
            old.critical,
            old.counts,
        )


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


_is_near, _about_star = inner(is_near, fastmath=STRICT), inner(about_star, fastmath=STRICT)


@inner(fastmath=STRICT)
def towards_star(i, Q, V, mu, h, touching):
    """The answers of :func:`about_star`; a planet that is near the star at its pericentre is so from :data:`EARLIER` on."""
    x, y, z, u, v, w = Q[0, i], Q[1, i], Q[2, i], V[0, i], V[1, i], V[2, i]
    near, falls = _about_star(x, y, z, u, v, w, mu, h, touching)
    if not (near or falls) and _about_star(x, y, z, u, v, w, mu, EARLIER * h, 0.0)[0]:
        a, b, c = y * w - z * v, z * u - x * w, x * v - y * u
        j2, energy2 = a * a + b * b + c * c, u * u + v * v + w * w - 2.0 * mu / math.sqrt(x * x + y * y + z * z)
        q = j2 / (mu + math.sqrt(max(0.0, mu * mu + energy2 * j2)))
        near = q == 0.0 or _about_star(q, 0.0, 0.0, 0.0, math.sqrt(j2) / q, 0.0, mu, h, 0.0)[0]
    return near, falls


@inner
def look(Q, V, bodies, found):
    """Fill in which pairs are near each other, and which bodies are near the star. A planet that is about to fall onto it
    stays on its orbit. Returns True if any are near."""
    any_of_them, radius = False, bodies.radius
    for i in range(1, radius.size):
        touching = radius[0] + radius[i]
        found.hurried[i], found.falling[i] = towards_star(i, Q, V, bodies.m[0], 2.0 * bodies.half, touching)
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
        size: (N,) the number of bodies of the group that begins with a body.
        pairs: (P, 2) all pairs i > j within groups, and those of a body without mass and one that it is near to; the first
            ``counts[0]`` are in use. Their attraction is not a part of kicks.
        hurried: (N,) the bodies that move with the star.
        counts: (2,) and the number of bodies with mass that move with the star.
    """

    group: np.ndarray
    size: np.ndarray
    pairs: np.ndarray
    hurried: np.ndarray
    counts: np.ndarray


@inner
def no_company(n):
    """The company of n bodies that move alone."""
    return Company(
        np.arange(n), np.ones(n, np.int64), np.empty((8, 2), np.int64), np.zeros(n, np.bool_), np.zeros(2, np.int64)
    )


@inner
def holds(pairs, count, i, j):
    """True if the pair i > j is one of the first ``count`` rows."""
    for k in range(count):  # noqa: SIM110  (Numba compiles no generators)
        if pairs[k, 0] == i and pairs[k, 1] == j:
            return True
    return False


@inner
def gather(m, found, company):
    """Add the bodies that are near each other in a survey to a company. Returns it, and True if it has grown."""
    group, size, pairs, hurried, counts = company
    grown, old, old_count = False, pairs, counts[0]
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
    size[:] = 0
    for i in range(m.size):
        size[group[i]] += 1
    count = found.counts[0] + old_count
    for i in range(1, m.size):
        count += size[i] * size[i]
    pairs, counts[0] = np.empty((count, 2), np.int64), 0
    for i in range(1, m.size):
        if size[group[i]] > 1:
            for j in range(group[i], i):
                if group[j] == group[i]:
                    pairs[counts[0], 0], pairs[counts[0], 1] = i, j
                    counts[0] += 1
                    hurried[group[i]] |= hurried[i] or hurried[j]
    for i in range(1, m.size):
        hurried[i] |= hurried[group[i]]
    for rows, used, count in (
        (old, np.ones(len(old), np.bool_), old_count),
        (found.close, found.near, found.counts[0]),
    ):
        for k in range(count):
            i, j = rows[k]
            if used[k] and (m[i] == 0.0 or m[j] == 0.0) and not holds(pairs, counts[0], i, j):
                pairs[counts[0], 0], pairs[counts[0], 1] = i, j
                counts[0] += 1
                hurried[i] |= m[i] == 0.0 and m[j] > 0.0 and hurried[j]
                hurried[j] |= m[j] == 0.0 and m[i] > 0.0 and hurried[i]
    counts[1] = np.sum(hurried & (m > 0.0))
    return Company(group, size, pairs, hurried, counts), True


@inner
def is_alone(i, m, company):
    """True if body i moves with no other planet."""
    if m[i] > 0.0:
        return company.size[company.group[i]] == 1
    for k in range(company.counts[0]):  # noqa: SIM110
        if company.pairs[k, 0] == i or company.pairs[k, 1] == i:
            return False
    return True


@inner
def is_comet(i, m, company):
    """True if body i has no mass, and is near the star without planets."""
    return company.hurried[i] and m[i] == 0.0 and company.counts[1] == 0 and is_alone(i, m, company)


@inner(fastmath=STRICT)
def attract(i, j, sign, Q, m, a):
    """Add the attraction of a pair to accelerations, or take it away."""
    dx, dy, dz = Q[0, j] - Q[0, i], Q[1, j] - Q[1, i], Q[2, j] - Q[2, i]
    r2 = dx * dx + dy * dy + dz * dz
    f = sign / (r2 * np.sqrt(r2))
    of_i, of_j = m[i] * f, m[j] * f
    a[0, i], a[1, i], a[2, i] = a[0, i] + of_j * dx, a[1, i] + of_j * dy, a[2, i] + of_j * dz
    a[0, j], a[1, j], a[2, j] = a[0, j] - of_i * dx, a[1, j] - of_i * dy, a[2, j] - of_i * dz


@inner
def kick(Q, V, m, h, found, company, a):
    """Kick planets by all those with which they do not move together."""
    copy(found.a, a)
    for k in range(found.counts[0]):
        i, j = found.close[k]
        if not holds(company.pairs, company.counts[0], i, j):
            attract(i, j, 1.0, Q, m, a)
    for k in range(company.counts[0]):
        i, j = company.pairs[k]
        if not holds(found.close, found.counts[0], i, j):
            attract(i, j, -1.0, Q, m, a)
    for i in range(1, m.size):
        if not is_comet(i, m, company):
            for c in range(3):
                V[c, i] += h * a[c, i]


class Contacts(NamedTuple):
    """The shorter steps in which bodies touch that move together.

    Attributes:
        times: (S, 2) their beginnings and ends, in units of the step.
        ends: (S, 4, 3, N) positions and velocities at the beginning, and at the end.
        members: (S, N) which bodies move together; of others ``ends`` has nothing.
        owners: (S,) the body without mass that moves among copies of the others; 0 if there are no copies.
    """

    times: np.ndarray
    ends: np.ndarray
    members: np.ndarray
    owners: np.ndarray


@inner
def no_contacts(n):
    """No steps of n bodies."""
    return Contacts(np.empty((0, 2)), np.empty((0, 4, 3, n)), np.empty((0, n), np.bool_), np.empty(0, np.int64))


@inner
def with_row(old, rows, times, ends, owner):
    """The contacts and another step, of the bodies ``rows``."""
    k = len(old.times)
    new = Contacts(
        np.empty((k + 1, 2)), np.zeros((k + 1, *old.ends.shape[1:])), np.zeros((k + 1, old.members.shape[1]), np.bool_),
        np.empty(k + 1, np.int64),
    )  # fmt: skip
    fill(old.times, new.times)
    fill(old.ends, new.ends)
    fill(old.members, new.members)
    fill(old.owners, new.owners)
    new.times[k, 0], new.times[k, 1] = times
    new.owners[k] = owner
    for at in range(1, len(rows)):
        new.members[k, rows[at]] = True
        for c in range(3):
            for e in range(4):
                new.ends[k, e, c, rows[at]] = ends[e][c, at]
    return new


@inner(calls=True)
def together(rows, owner, x, v, m, kinds, h, guess, eta, radius, contacts):
    """Move the bodies ``rows``, of which the first is the star, for a time h: x and v, (3, K).

    Args:
        owner: see :class:`Contacts`.
        kinds: (K,) see :func:`.pair_forces.encounter`.
        guess: the length of the first step; it becomes that of the next one.

    Returns:
        False if the steps become too short; the next guess; and the contacts, with those that are new.
    """
    forward = np.sign(h)  # a step back is one of the reversed velocities
    v *= forward
    h = abs(h)
    before_x, before_v, size = x.copy(), v.copy(), radius[rows]
    begin, clock = np.empty((3, *x.shape)), np.zeros(4)
    copy(x, begin[0])
    copy(v, begin[1])
    clock[NEXT] = min(guess, h)
    b, e, no_growth = np.zeros((7, x.size)), np.zeros((7, x.size)), np.empty((2, 0, 5))
    step = RadauStep(begin, clock, b, e, np.zeros(x.shape), np.zeros(x.shape), no_growth)
    law = Attraction(m[rows], 1.0, 0.0, kinds)
    steps = 1 if size.max() > 0.0 else 2**62
    size[0] = -np.inf  # contacts with the star are looked for on orbits
    time, good = 0.0, True
    while time < h and good:
        copy(x, before_x)
        copy(v, before_v)
        begun = time
        _, good = encounter_steps(x, v, law, step, StepLimits(h, h, steps, h, eta))
        time = clock[END]
        if steps == 1 and any_contact(before_x, before_v, x, v, time - begun, size):
            contacts = with_row(contacts, rows, (begun / h, time / h), (before_x, before_v, x, v), owner)
    v *= forward
    return good, clock[NEXT], contacts


@inner
def members(i, m, company, rows):
    """Fill in the star and the bodies with which body i moves, in order, and itself. Returns their number."""
    group, _, pairs, _, counts = company
    rows[0], count = 0, 1
    for j in range(1, m.size):
        if m[i] > 0.0:
            together = m[j] > 0.0 and group[j] == group[i]
        else:
            together = j == i or holds(pairs, counts[0], max(i, j), min(i, j))
        if together:
            rows[count] = j
            count += 1
    return count


@inner(fastmath=STRICT)
def flow(V, m, hurried, momenta):
    """Fill in the momenta, (2, 3), of the planets that do not move with the star, and of those that do."""
    for c in range(3):
        others, with_star = 0.0, 0.0
        for i in range(1, m.size):
            if hurried[i]:
                with_star += m[i] * V[c, i]
            else:
                others += m[i] * V[c, i]
        momenta[0, c], momenta[1, c] = others, with_star


@inner(fastmath=STRICT)
def jump(Q, V, m, h, company, momenta):
    """Shift planets: the star moves against them. Those that move with it are shifted by what others of these give it."""
    some = False
    for c in range(3):
        total = momenta[0, c] + momenta[1, c]
        for i in range(1, m.size):
            if company.hurried[i]:
                some = True
            else:
                Q[c, i] += h * total / m[0]
    rows = np.empty(m.size if some else 0, np.int64)
    for i in range(1, m.size if some else 0):
        if company.hurried[i]:
            count = members(i, m, company, rows)
            for c in range(3):
                own = 0.0
                for k in range(1, count):
                    own += m[rows[k]] * V[c, rows[k]]
                Q[c, i] += h * (momenta[1, c] - own) / m[0]


@inner(fastmath=STRICT)
def pass_star(i, Q, V, m, h, drift):
    """Move planet i about the star, which it draws, and which has the velocity -``drift`` otherwise."""
    f = 1.0 + m[i] / m[0]
    for c in range(3):
        V[c, i] = V[c, i] * f + drift[c]
    kepler_step(i, Q, V, m[0] + m[i], h)
    for c in range(3):
        V[c, i] = (V[c, i] - drift[c]) / f


@inner(fastmath=STRICT)
def pass_star_in_tides(i, Q, V, m, motions):
    """Move comet i about the star in parts of the step, between which the tides of the planets kick it. Their paths are the
    cubics through their ends."""
    h, begin_Q, begin_V, _, _ = motions
    x, v, at, planets, parts = np.empty((3, 1)), np.empty((3, 1)), np.empty(3), np.flatnonzero(m[1:] > 0.0) + 1, 1
    for c in range(3):
        x[c, 0], v[c, 0] = begin_Q[c, i], begin_V[c, i]
        for j in planets:
            v[c, 0] += m[j] / m[0] * begin_V[c, j]
    for j in planets:
        if m[j] * h * h > TIDE * (Q[0, j] ** 2 + Q[1, j] ** 2 + Q[2, j] ** 2) ** 1.5:
            parts = PARTS
    for k in range(parts + 1):
        t, part = k / parts, h / parts
        weights = (
            (1.0 + 2.0 * t) * (1.0 - t) ** 2,
            h * t * (1.0 - t) ** 2,
            t * t * (3.0 - 2.0 * t),
            h * t * t * (t - 1.0),
        )
        strength = part if 0 < k < parts else 0.5 * part
        for j in planets:
            p2, d2 = 0.0, 0.0
            for c in range(3):
                of_begin = weights[0] * begin_Q[c, j] + weights[1] * begin_V[c, j]
                at[c] = of_begin + weights[2] * Q[c, j] + weights[3] * V[c, j]
                p2, d2 = p2 + at[c] ** 2, d2 + (at[c] - x[c, 0]) ** 2
            f, g = strength * m[j] / (d2 * np.sqrt(d2)), strength * m[j] / (p2 * np.sqrt(p2))
            for c in range(3):
                v[c, 0] += f * (at[c] - x[c, 0]) - g * at[c]
        if k < parts:
            kepler_step(0, x, v, m[0], part)
    for c in range(3):
        Q[c, i], V[c, i] = x[c, 0], v[c, 0]
        for j in planets:
            V[c, i] -= m[j] / m[0] * V[c, j]


class Motions(NamedTuple):
    """How the Kepler part of a step moves planets.

    Attributes:
        h: the time.
        begin_Q, begin_V: (3, N) where it begins.
        guess: (N,) the length of the first step of those that meet, of each one's group.
        eta: the accuracy of those steps.
    """

    h: float
    begin_Q: np.ndarray
    begin_V: np.ndarray
    guess: np.ndarray
    eta: float


@inner(calls=True)
def move(first, last, free, drift, Q, V, bodies, motions, company, contacts):
    """The Kepler part of a step: planets on their orbits about the star, those that meet with their attraction.

    Args:
        first, last: of the planets and groups that begin with ``first`` … ``last`` - 1.
        free: of those that move with the star; it has the velocity -``drift``, (3,), by the others.

    Returns:
        False if the steps of an encounter become too short; and :class:`Contacts`, with those that are new.
    """
    m, radius, n = bodies.m, bodies.radius, bodies.m.size
    h, begin_Q, begin_V, guess, eta = motions
    rows, good = np.empty(n if company.counts[0] > 0 else 0, np.int64), True
    for i in range(first, last):
        if company.hurried[i] != free or (m[i] > 0.0 and company.group[i] != i):
            continue
        if is_alone(i, m, company):
            if is_comet(i, m, company):
                pass_star_in_tides(i, Q, V, m, motions)
            elif free:
                pass_star(i, Q, V, m, h, drift)
            else:
                kepler_step(i, Q, V, m[0], h)
            continue
        count = members(i, m, company, rows)
        x, v, kinds = np.zeros((3, count)), np.zeros((3, count)), np.empty(count)
        kinds[0] = FREE if free else FIXED
        for c in range(3):
            v[c, 0] = -drift[c] if free else 0.0
        for k in range(1, count):
            b = rows[k]
            kinds[k] = TEST_BODY if m[b] == 0.0 else 1.0 if free else 1.0 + company.group[b]
            for c in range(3):
                x[c, k], v[c, k] = begin_Q[c, b], begin_V[c, b]
                if free:
                    v[c, 0] -= m[b] / m[0] * v[c, k]
        fine, guess[i], contacts = together(
            rows[:count], i if m[i] == 0.0 else 0, x, v, m, kinds, h, guess[i], eta, radius, contacts
        )
        good &= fine
        for k in range(1, count):
            b = rows[k]
            if m[i] > 0.0 or b == i:
                for c in range(3):
                    Q[c, b], V[c, b] = x[c, k] - x[c, 0], v[c, k]
    return good, contacts


@inner
def move_all(Q, V, bodies, h, company, guess, eta, no_others):
    """:func:`move` of all planets, those that move with the star last, with half a :func:`jump` before and after.
    ``no_others``: :func:`no_contacts`."""
    momenta, drift, m = np.empty((2, 3)), np.empty(3), bodies.m
    flow(V, m, company.hurried, momenta)
    jump(Q, V, m, 0.5 * h, company, momenta)
    some = company.counts[0] > 0 or company.hurried.any()
    begin_Q, begin_V = (Q.copy(), V.copy()) if some else (Q, V)
    motions = Motions(h, begin_Q, begin_V, guess, eta)
    for c in range(3):
        drift[c] = 0.5 * momenta[0, c] / m[0]
    good, contacts = move(1, m.size, False, drift, Q, V, bodies, motions, company, no_others)
    if company.hurried.any():
        flow(V, m, company.hurried, momenta)
        for c in range(3):
            drift[c] += 0.5 * momenta[0, c] / m[0]
        fine, contacts = move(1, m.size, True, drift, Q, V, bodies, motions, company, contacts)
        good &= fine
    flow(V, m, company.hurried, momenta)
    jump(Q, V, m, 0.5 * h, company, momenta)
    return good, contacts


@inner
def falls(begin_Q, begin_V, Q, V, m, h, radius):
    """True if a planet touches the star in a step, on its orbit about it."""
    relative, star = np.empty((4, 3)), np.zeros((2, 3))
    for c in range(3):
        for i in range(1, m.size):
            star[0, c], star[1, c] = star[0, c] - m[i] / m[0] * begin_V[c, i], star[1, c] - m[i] / m[0] * V[c, i]
    for i in range(1, m.size):
        if radius[0] + radius[i] > 0.0:
            for c in range(3):
                relative[0, c], relative[3, c] = begin_Q[c, i], Q[c, i]
                relative[1, c] = relative[0, c] + (begin_V[c, i] - star[0, c]) * (h / 3)
                relative[2, c] = relative[3, c] - (V[c, i] - star[1, c]) * (h / 3)
            if orbit_contact(relative, radius[0] + radius[i], 0.0, (m[0] + m[i]) * h * h) <= 1.0:
                return True
    return False
