"""When two bodies first touch on their paths through a step, and the search for such pairs.

A path is a cubic; as a Bézier curve it lies within the hull of four control points. A piece of the relative path of two
bodies whose control points are all beyond the plane at distance R is outside the sphere of radius R. Pieces that are not
are halved, the earlier half first, until the first contact is known to rounding.

Where a scheme moves bodies on Kepler orbits about body 0, contacts with body 0 are those of the orbits (:mod:`.orbit`): a
cubic misses a pericentre that is passed in a step.
"""

import math

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.integrators.collisions.orbit import NEVER, orbit_contact

FINEST = 45
"""The shortest piece of a path is 2 to minus this power of a step."""


def paths(x0: np.ndarray, v0: np.ndarray, x1: np.ndarray, v1: np.ndarray, h: float) -> np.ndarray:
    """The control points of the paths through a step, (N, 4, 3) float64.

    Args:
        x0, v0: (N, D) positions and velocities at the beginning of the step.
        x1, v1: (N, D) at its end.
        h: the length of the step.
    """
    begin, end, start, finish = (np.zeros((len(x0), 3)) for _ in range(4))
    for rows, given in ((begin, x0), (end, x1), (start, v0), (finish, v1)):
        rows[:, : given.shape[1]] = given
    return np.stack([begin, begin + start * (h / 3), end - finish * (h / 3), end], axis=1)


@inner
def piece(path, a, b, found):
    """The control points of the piece from a to b of a path (4, 3): its polar form."""
    for c in range(3):
        p, q, r, s = path[0, c], path[1, c], path[2, c], path[3, c]
        for k in range(4):
            t = b if k > 2 else a
            u = b if k > 1 else a
            w = b if k > 0 else a
            one, two, three = p + (q - p) * t, q + (r - q) * t, r + (s - r) * t
            one, two = one + (two - one) * u, two + (three - two) * u
            found[k, c] = one + (two - one) * w


def beyond(p, q, r, s, radius):
    """True if four control points are beyond a plane at distance ``radius`` that faces the middle of their piece, or are too
    far away to be compared (no halving would end), or are no numbers. To be compiled, for both processors."""
    mx = p[0] + 3.0 * (q[0] + r[0]) + s[0]
    my = p[1] + 3.0 * (q[1] + r[1]) + s[1]
    mz = p[2] + 3.0 * (q[2] + r[2]) + s[2]
    size = math.sqrt(mx * mx + my * my + mz * mz)
    nearest = min(
        p[0] * mx + p[1] * my + p[2] * mz, q[0] * mx + q[1] * my + q[2] * mz,
        r[0] * mx + r[1] * my + r[2] * mz, s[0] * mx + s[1] * my + s[2] * mz,
    )  # fmt: skip
    return not nearest <= radius * size < math.inf


_beyond = inner(beyond)


@inner
def outside(part, radius):
    """:func:`beyond` of the control points (4, 3)."""
    return _beyond(
        (part[0, 0], part[0, 1], part[0, 2]), (part[1, 0], part[1, 1], part[1, 2]), (part[2, 0], part[2, 1], part[2, 2]),
        (part[3, 0], part[3, 1], part[3, 2]), radius,
    )  # fmt: skip


@inner
def first_contact(path, radius, begin, part):
    """The first moment from ``begin`` on, in units of the step, at which the relative path (4, 3) is not farther than
    ``radius`` from the origin; NEVER if there is none. ``part`` is (4, 3) scratch space."""
    size, number = 1.0, 0  # the piece [number, number + 1] · size of the rest of the step
    rest = 1.0 - begin
    while True:
        a, b = begin + rest * (number * size), begin + rest * ((number + 1) * size)
        piece(path, a, b, part)
        if part[0, 0] ** 2 + part[0, 1] ** 2 + part[0, 2] ** 2 <= radius * radius:
            return a
        if not outside(part, radius):
            if size > 2.0**-FINEST:
                size, number = 0.5 * size, 2 * number
                continue
            if part[3, 0] ** 2 + part[3, 1] ** 2 + part[3, 2] ** 2 <= radius * radius:
                return b
        number += 1
        while number % 2 == 0:  # both halves are done: go on with the next larger piece
            number, size = number // 2, 2.0 * size
        if size == 1.0:
            return NEVER


@inner
def fill(rows, more):
    """Copy an array into the first rows of a longer one. (An assignment of a slice compiles Numba's error message for a
    second.)"""
    for k in range(rows.size):
        more.flat[k] = rows.flat[k]


@inner
def doubled(rows):
    """An array with twice as many rows, of which the first half are these."""
    more = np.empty((2 * rows.shape[0], *rows.shape[1:]), rows.dtype)
    fill(rows, more)
    return more


@inner
def strength(attraction, i, j):
    """G (m₁ + m₂) h² of the orbit of bodies i and j; 0 if their path is a cubic. ``attraction``: see :func:`contacts`."""
    if attraction is None:
        return 0.0
    return attraction[i] + attraction[j] if min(i, j) == 0 else 0.0


@inner
def contact_of(paths, i, j, radius, begin, attraction, relative, part):
    """The first contact of bodies i and j from ``begin`` on."""
    for k in range(4):
        for c in range(3):
            relative[k, c] = paths[j, k, c] - paths[i, k, c]
    mu = strength(attraction, i, j)
    return orbit_contact(relative, radius, begin, mu) if mu > 0.0 else first_contact(relative, radius, begin, part)


@inner
def any_contact(x0, v0, x1, v1, h, radius, attraction=None):
    """True if two of a few bodies touch in a step of length h: (3, N) each at its beginning and end. ``attraction``: see
    :func:`contacts`."""
    relative, part = np.empty((4, 3)), np.empty((4, 3))
    for i in range(1, radius.size):
        for j in range(i):
            for c in range(3):
                relative[0, c], relative[3, c] = x0[c, i] - x0[c, j], x1[c, i] - x1[c, j]
                relative[1, c] = relative[0, c] + (v0[c, i] - v0[c, j]) * (h / 3)
                relative[2, c] = relative[3, c] - (v1[c, i] - v1[c, j]) * (h / 3)
            both = radius[i] + radius[j]
            mu = strength(attraction, i, j)
            if both > 0.0 and mu > 0.0 and orbit_contact(relative, both, 0.0, mu) <= 1.0:
                return True
            if both > 0.0 and mu == 0.0 and not outside(relative, both) and first_contact(relative, both, 0.0, part) <= 1.0:
                return True
    return False


@compute.kernel("cpu")
def any_contact_of_few(x0, v0, x1, v1, h, radius, attraction=None):
    """:func:`any_contact`, compiled on its own: for few bodies 50 times as fast as :func:`contacts`."""
    return any_contact(x0, v0, x1, v1, h, radius, attraction)


@compute.kernel("cpu")
def pair_search(paths, radius, order, low, high, attraction):
    """All pairs that touch in a step: bodies (K, 2), the smaller number first, and times (K,) in the step.

    Bodies are visited in the order of ``low`` along one axis; only those whose boxes overlap are compared.

    Args:
        paths: (N, 4, 3), see :func:`paths`.
        radius: (N,).
        order: the bodies sorted by ``low[:, 0]``.
        low, high: (N, 3) the box of each body's path, its radius included.
        attraction: see :func:`contacts`.
    """
    pairs, times, count = np.empty((16, 2), np.int64), np.empty(16), 0
    relative, part = np.empty((4, 3)), np.empty((4, 3))
    for first in range(order.size):
        i = order[first]
        for second in range(first + 1, order.size):
            j = order[second]
            if low[j, 0] > high[i, 0]:
                break
            if low[j, 1] > high[i, 1] or low[i, 1] > high[j, 1] or low[j, 2] > high[i, 2] or low[i, 2] > high[j, 2]:
                continue
            both = radius[i] + radius[j]
            time = contact_of(paths, i, j, both, 0.0, attraction, relative, part) if both > 0.0 else NEVER
            if time <= 1.0:
                if count == times.size:
                    pairs, times = doubled(pairs), doubled(times)
                pairs[count, 0], pairs[count, 1], times[count] = min(i, j), max(i, j), time
                count += 1
    return pairs[:count], times[:count]


def contacts(paths: np.ndarray, radius: np.ndarray, attraction: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All pairs that touch in a step, in order of their times: bodies (K, 2) int64, the smaller number first, and times (K,)
    in units of the step. Pairs that touch when it begins have the time 0.

    Args:
        paths: (N, 4, 3), see :func:`paths`.
        radius: (N,). Two bodies of radius 0 never touch.
        attraction: (N,) G m h² for a step of length h in which bodies move on Kepler orbits about body 0; None if their
            paths are the cubics.
    """
    moving = paths - paths.mean(axis=0)  # a motion of all bodies together makes no box longer
    low, high = moving.min(axis=1) - radius[:, None], moving.max(axis=1) + radius[:, None]
    axes = np.argsort(-np.ptp(low, axis=0), kind="stable")  # few boxes overlap along the longest axis
    if attraction is not None:
        low[0], high[0] = -np.inf, np.inf  # orbits about body 0 are not within the boxes of cubics
    low, high = (np.ascontiguousarray(rows[:, axes]) for rows in (low, high))
    order = np.argsort(low[:, 0], kind="stable")
    pairs, times = pair_search(paths, radius, order, low, high, attraction)
    sorting = np.lexsort((pairs[:, 1], pairs[:, 0], times))
    return pairs[sorting], times[sorting]


@compute.kernel("cpu")
def later_contacts(paths, radius, i, begin, attraction, times):
    """Fill ``times`` (N,) with the moments from ``begin`` on at which body i touches each other one."""
    relative, part = np.empty((4, 3)), np.empty((4, 3))
    for j in range(radius.size):
        both = radius[i] + radius[j]
        times[j] = NEVER
        if j != i and both > 0.0:
            times[j] = contact_of(paths, i, j, both, begin, attraction, relative, part)


def moment(path: np.ndarray, s: float, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity on a path (4, 3) at the moment s of a step of length h."""
    p, q, r, t = path
    one, two, three = p + (q - p) * s, q + (r - q) * s, r + (t - r) * s
    one, two = one + (two - one) * s, two + (three - two) * s
    return one + (two - one) * s, (two - one) * (3 / h)
