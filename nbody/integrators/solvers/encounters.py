"""The motion of bodies that meet during a step of :mod:`.hybrid` (:mod:`.near`), by :mod:`.radau`.

A group of planets moves by itself about the star at rest in the origin. A group of which one is near the star, and a planet
alone that is, move with the star: it is drawn by them, and drifts with the mean velocity that the other planets give it in
the step. If there is but one, a comet, the tides of the planets kick it during the step; else those that do not meet are on
Kepler orbits about a star that moves straight. A body without mass moves among copies of those that it is near to, so that
it changes no bit of their motion.
"""

from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.post_newtonian import STRICT
from nbody.integrators.adaptive import END, NEXT
from nbody.integrators.collisions.contact import any_contact, fill
from nbody.integrators.collisions.orbit import orbit_contact
from nbody.integrators.solvers.kepler import kepler_step
from nbody.integrators.solvers.near import holds, is_comet
from nbody.integrators.solvers.pair_forces import FIXED, FREE, TEST_BODY, Attraction
from nbody.integrators.solvers.radau import RadauStep, StepLimits, stepper_for
from nbody.integrators.solvers.systems.arrays import copy

PARTS, TIDE = 8, 1e-6
"""Of a comet's step, if a tide is stronger than this: G m h²/r³."""

encounter_steps = inner(stepper_for("encounter"), calls=True)


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
    """Move comet i about the star, which it draws, in parts of the step, between which the tides of the planets kick it.
    Their paths are the cubics through their ends."""
    h, begin_Q, begin_V, _, _ = motions
    others, own, parts = m.copy(), 1.0 + m[i] / m[0], 1
    others[0] = others[i] = 0.0
    x, v, at, planets = np.empty((3, 1)), np.empty((3, 1)), np.empty(3), np.flatnonzero(others > 0.0)
    for c in range(3):
        x[c, 0], v[c, 0] = begin_Q[c, i], own * begin_V[c, i]
        for j in planets:
            v[c, 0] += m[j] / m[0] * begin_V[c, j]
    for j in planets:
        if m[j] * h * h > TIDE * (Q[0, j] ** 2 + Q[1, j] ** 2 + Q[2, j] ** 2) ** 1.5:
            parts = PARTS
    for k in range(parts + 1):
        t, part = k / parts, h / parts
        begins, ends = (1.0 + 2.0 * t) * (1.0 - t) ** 2, t * t * (3.0 - 2.0 * t)
        leaves, arrives = h * t * (1.0 - t) ** 2, h * t * t * (t - 1.0)
        for j in planets:
            p2, d2, strength = 0.0, 0.0, m[j] * (part if 0 < k < parts else 0.5 * part)
            for c in range(3):
                at[c] = begins * begin_Q[c, j] + leaves * begin_V[c, j] + ends * Q[c, j] + arrives * V[c, j]
                p2, d2 = p2 + at[c] ** 2, d2 + (at[c] - x[c, 0]) ** 2
            f, g = strength / (d2 * np.sqrt(d2)), strength / (p2 * np.sqrt(p2))
            for c in range(3):
                v[c, 0] += f * (at[c] - x[c, 0]) - g * at[c]
        if k < parts:
            kepler_step(0, x, v, m[0] + m[i], part)
    for c in range(3):
        for j in planets:
            v[c, 0] -= m[j] / m[0] * V[c, j]
        Q[c, i], V[c, i] = x[c, 0], v[c, 0] / own


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
def move(free, drift, Q, V, bodies, motions, company, contacts):
    """The Kepler part of a step: planets on their orbits about the star, those that meet with their attraction.

    Args:
        free: of those that move with the star; it has the velocity -``drift``, (3,), by the others.

    Returns:
        False if the steps of an encounter become too short; and :class:`Contacts`, with those that are new.
    """
    m, radius, n = bodies.m, bodies.radius, bodies.m.size
    h, begin_Q, begin_V, guess, eta = motions
    rows, good = np.empty(n if company.counts[0] > 0 else 0, np.int64), True
    for i in range(1, n):
        if company.hurried[i] != free or (m[i] > 0.0 and company.group[i] != i):
            continue
        if not company.meets[i]:
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
    good, contacts = move(False, drift, Q, V, bodies, motions, company, no_others)
    if company.hurried.any():
        flow(V, m, company.hurried, momenta)
        for c in range(3):
            drift[c] += 0.5 * momenta[0, c] / m[0]
        fine, contacts = move(True, drift, Q, V, bodies, motions, company, contacts)
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
