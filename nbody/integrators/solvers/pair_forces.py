"""Accelerations of a few bodies, for kernels that call them in their own loops: each pair once, in order, in float64.

Their *kind* is a pair law (``none``, ``plummer``, …), a law with general relativity's term (``none+1pn``), or ``encounter``:
planets that meet, about a star that is at rest in the origin.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.fields import post_newtonian
from nbody.fields.compiled import adding_fields
from nbody.fields.field import Term
from nbody.fields.post_newtonian import STRICT
from nbody.forces.direct.cpu_few import law_of, summing

RELATIVITY = "+1pn"
"""The end of the names of kinds with the 1PN term."""

NEAREST = 0.1
"""Two planets closer than this fraction of their critical distance attract each other in the encounter's forces alone."""


class Attraction(NamedTuple):
    """What forces depend on besides positions and velocities.

    Attributes:
        m: (N,) masses.
        G, length2: the gravitational constant, and the softening length squared.
        more: further numbers of the kind: 1/c² of relativity, (1,); of ``encounter`` the critical distances, (N,); the
            parameters of external fields, (K, 3 + n).
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
    add_pairs = _sums(kind.removesuffix(RELATIVITY))
    if terms:
        add_fields, D = adding_fields(terms), dimensions

        @inner
        def in_fields(x, v, law, time, a):
            add_pairs(x, v, law, time, a)
            add_fields(x[:D].T, v[:D].T, law.m, time, law.more, a[:D].T)

        return in_fields
    if not kind.endswith(RELATIVITY):
        return add_pairs

    @inner
    def with_relativity(x, v, law, time, a):
        add_pairs(x, v, law, time, a)
        post_newtonian.add_forces(x, v, law.m, law.G, law.more[0], a)

    return with_relativity


@inner(fastmath=STRICT)
def changeover(distance, critical):
    """The changeover function K: the fraction of the attraction of two planets that belongs to the map's kick. It is 1
    beyond the critical distance, 0 below :data:`NEAREST` of it, and between them 35 y⁴ - 84 y⁵ + 70 y⁶ - 20 y⁷. (Chambers
    1999 takes 10 y³ - 15 y⁴ + 6 y⁵; with the smoother one the energy error of an encounter was 1.6 times smaller, and after
    it 3 to 10 times.)"""
    y = (distance / critical - NEAREST) / (1.0 - NEAREST)
    if y >= 1.0:
        return 1.0
    if y <= 0.0:
        return 0.0
    return y * y * y * y * (35.0 + y * (-84.0 + y * (70.0 - 20.0 * y)))


@inner(fastmath=STRICT)
def separation(x, j, xi, yi, zi):
    """The separation of body j of x, (3, N), from a position."""
    return x[0, j] - xi, x[1, j] - yi, x[2, j] - zi


@inner(fastmath=STRICT)
def encounter_pair(i, j, dx, dy, dz, critical):
    """The attraction of two planets that meet, less what belongs to the map's kick."""
    r2 = dx * dx + dy * dy + dz * dz
    r = np.sqrt(r2)
    return (1.0 - changeover(r, max(critical[i], critical[j]))) / (r2 * r)


add_encounters = summing(encounter_pair, separation, 2, 1)


@inner(fastmath=STRICT)
def encounter(x, v, law, time, a):
    """Planets 1 … N-1 relative to the star 0: its attraction, and the fraction 1 - K of that between planets. The masses are
    multiplied by G; the star stays in the origin."""
    a[:, 0] = 0.0
    for i in range(1, law.m.size):
        r2 = x[0, i] * x[0, i] + x[1, i] * x[1, i] + x[2, i] * x[2, i]
        f = -law.m[0] / (r2 * np.sqrt(r2))
        a[0, i], a[1, i], a[2, i] = f * x[0, i], f * x[1, i], f * x[2, i]
    add_encounters(x, law.m, 1.0, law.more, a)


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
