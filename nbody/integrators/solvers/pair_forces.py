"""Accelerations of a few bodies, for kernels that call them in their own loops: each pair once, in order, in float64.

Their *kind* is a pair law (``none``, ``plummer``, …), a law with general relativity's term (``none+1pn``) or with tangent
vectors (``none+tangents``), or ``encounter``: planets that meet, and their star.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.fields import mutual_relativity, post_newtonian
from nbody.fields.compiled import adding_fields
from nbody.fields.field import MUTUAL, POST_NEWTONIAN, Term
from nbody.fields.post_newtonian import STRICT
from nbody.forces.direct.cpu_few import law_of, slope_of, summing, summing_slopes

RELATIVITY = {POST_NEWTONIAN: "+1pn", MUTUAL: "+eih"}
"""The ends of the names of kinds with the 1PN term of the heaviest body, and with those of all."""

VARIED = "+tangents"
"""The end of those with tangent vectors."""

FIXED, FREE, TEST_BODY = 0.0, 1.0, -1.0
"""Of ``encounter``: a star that is at rest in the origin, one that moves, and a body without mass."""


class Attraction(NamedTuple):
    """What forces depend on besides positions and velocities.

    Attributes:
        m: (N,) masses.
        G, length2: the gravitational constant, and the softening length squared.
        more: further numbers of the kind: 1/c² of relativity, (1,), and 4 N working numbers if it is that of all bodies; of
            ``encounter`` the kinds of bodies, (N,); the parameters of external fields, (K, 3 + n), with relativity in a row
            more, which begins with 1/c²; of tangent vectors the
            changes of masses, (M, N), or (0, N): they have none.
    """

    m: np.ndarray
    G: float
    length2: float
    more: np.ndarray


@cache
def accelerations_of(kind: str, terms: tuple[Term, ...] = (), dimensions: int = 3) -> Callable:
    """For kernels: ``accelerate(x, v, law, time, a)``, a_i = G Σ_j m_j f d for (3, N) positions ``x`` and an
    :class:`Attraction` ``law``, and what the kind, or the ``terms`` of external fields, add. Only relativity and fields
    depend on the velocities ``v`` and on the time."""
    if kind == "encounter":
        return encounter
    law_name, _, relativity = kind.partition("+")
    if kind.endswith(VARIED):
        return _with_tangents(law_name)
    add_pairs, D = _sums(law_name), dimensions
    if not (relativity or terms):
        return add_pairs
    mutual, by_heaviest, in_fields = kind.endswith(RELATIVITY[MUTUAL]), bool(relativity), bool(terms)
    add_fields = adding_fields(terms)
    strength = inner(lambda more: more[-1, 0]) if terms else inner(lambda more: more[0])

    @inner
    def with_others(x, v, law, time, a):
        add_pairs(x, v, law, time, a)
        if in_fields:  # their accelerations are a part of A in the 1PN term
            add_fields(x[:D].T, v[:D].T, law.m, time, law.more, a[:D].T)
        if mutual:
            mutual_relativity.add_mutual_forces(x, v, law.m, law.G, law.more[0], law.more[1:], a)
        elif by_heaviest:
            post_newtonian.add_forces(x, v, law.m, law.G, strength(law.more), a)

    return with_others


@inner(fastmath=STRICT)
def separation(x, j, xi, yi, zi):
    """The separation of body j of x, (3, N), from a position."""
    return x[0, j] - xi, x[1, j] - yi, x[2, j] - zi


@inner(fastmath=STRICT)
def encounter_pair(i, j, dx, dy, dz, kinds):
    """The attraction of two planets of one kind, or if one is a test body."""
    if kinds[i] != kinds[j] and kinds[i] != TEST_BODY and kinds[j] != TEST_BODY:
        return 0.0
    r2 = dx * dx + dy * dy + dz * dz
    return 1.0 / (r2 * np.sqrt(r2))


add_encounters = summing(encounter_pair, separation, 2, 1)


@inner(fastmath=STRICT)
def encounter(x, v, law, time, a):
    """The star 0, which is at rest in the origin or free, and planets that meet. The masses are multiplied by G."""
    a[:] = 0.0
    add_encounters(x, law.m, 1.0, law.more, a)
    for i in range(1, law.m.size):
        dx, dy, dz = x[0, i] - x[0, 0], x[1, i] - x[1, 0], x[2, i] - x[2, 0]
        r2 = dx * dx + dy * dy + dz * dz
        f = 1.0 / (r2 * np.sqrt(r2))
        of_star, of_i = law.m[0] * f, law.m[i] * f if law.more[0] == FREE else 0.0
        a[0, i], a[1, i], a[2, i] = a[0, i] - of_star * dx, a[1, i] - of_star * dy, a[2, i] - of_star * dz
        a[0, 0], a[1, 0], a[2, 0] = a[0, 0] + of_i * dx, a[1, 0] + of_i * dy, a[2, 0] + of_i * dz


@cache
def _sums(law_name: str) -> Callable:
    factor = law_of(law_name, 3)

    @inner(fastmath=STRICT)
    def pair(i, j, dx, dy, dz, law):
        f, _ = factor(dx, dy, dz, law.length2)
        return law.G * f

    add = summing(pair, separation)

    @inner(fastmath=STRICT)
    def add_pairs(x, v, law, time, a):
        a[:] = 0.0
        add(x, law.m, 1.0, law, a)

    return add_pairs


@cache
def _with_tangents(law_name: str) -> Callable:
    """The rows of a tangent vector follow those before it: 3k + 3 … 3k + 5 of x and a. Its accelerations are the derivative
    of the bodies', and linear in the change of the masses."""
    slope = slope_of(law_name, 3)

    @inner(fastmath=STRICT)
    def pair(i, j, dx, dy, dz, law):
        f, g = slope(i, j, dx, dy, dz, law.length2)
        return law.G * f, law.G * g

    @inner(fastmath=STRICT)
    def force(i, j, dx, dy, dz, law):
        return pair(i, j, dx, dy, dz, law)[0]

    add, add_of_masses = summing_slopes(pair, separation), summing(force, separation)

    @inner(fastmath=STRICT)
    def accelerate(x, v, law, time, a):
        for k in range(x.shape[0] // 3 - 2, -1, -1):  # the last one first: the rows before are those of the bodies for now
            row = 3 * k
            a[row : row + 6] = 0.0
            add(x, x[row + 3 : row + 6], law.m, 1.0, law, a[row : row + 6])
            if k < len(law.more):
                add_of_masses(x, law.more[k], 1.0, law, a[row + 3 : row + 6])

    return accelerate
