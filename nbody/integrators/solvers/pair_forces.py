"""Accelerations of a few bodies, for kernels that call them in their own loops: each pair once, in order, in float64.

Their *kind* is a pair law (``none``, ``plummer``, …), a law with general relativity's term (``none+1pn``), or ``encounter``:
planets that meet, about a star that is at rest in the origin.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import njit

from nbody.fields import post_newtonian
from nbody.fields.compiled import adding_fields
from nbody.fields.field import Term
from nbody.fields.post_newtonian import STRICT
from nbody.law import pair_law

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

        @njit(error_model="numpy")
        def in_fields(x, v, law, time, a):
            add_pairs(x, v, law, time, a)
            add_fields(x[:D].T, v[:D].T, law.m, time, law.more, a[:D].T)

        return in_fields
    if not kind.endswith(RELATIVITY):
        return add_pairs

    @njit(error_model="numpy")
    def with_relativity(x, v, law, time, a):
        add_pairs(x, v, law, time, a)
        post_newtonian.add_forces(x, v, law.m, law.G, law.more[0], a)

    return with_relativity


@njit(error_model="numpy", fastmath=STRICT)
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


@njit(error_model="numpy", fastmath=STRICT)
def encounter(x, v, law, time, a):
    """Planets 1 … N-1 relative to the star 0: its attraction, and the fraction 1 - K of that between planets. The masses are
    multiplied by G; the star stays in the origin."""
    m, critical = law.m, law.more
    a[:, 0] = 0.0
    for i in range(1, m.size):
        r2 = x[0, i] * x[0, i] + x[1, i] * x[1, i] + x[2, i] * x[2, i]
        f = -m[0] / (r2 * np.sqrt(r2))
        ax, ay, az = f * x[0, i], f * x[1, i], f * x[2, i]
        for j in range(1, i):
            dx, dy, dz = x[0, j] - x[0, i], x[1, j] - x[1, i], x[2, j] - x[2, i]
            r2 = dx * dx + dy * dy + dz * dz
            r = np.sqrt(r2)
            fraction = 1.0 - changeover(r, max(critical[i], critical[j]))
            if fraction > 0.0:
                f = fraction / (r2 * r)
                ax += f * m[j] * dx
                ay += f * m[j] * dy
                az += f * m[j] * dz
                a[0, j] -= f * m[i] * dx
                a[1, j] -= f * m[i] * dy
                a[2, j] -= f * m[i] * dz
        a[0, i], a[1, i], a[2, i] = ax, ay, az


@cache
def _sums(law_name: str) -> Callable:
    @njit
    def rsqrt(x):
        return 1.0 / np.sqrt(x)

    @njit
    def inverse_cube(x):
        return 1.0 / (x * np.sqrt(x))

    pair = pair_law(law_name, 3, rsqrt, njit(error_model="numpy"), inverse_cube)

    @njit(error_model="numpy", fastmath=STRICT)
    def add_pairs(x, v, law, time, a):
        m, G, length2 = law.m, law.G, law.length2
        a[:] = 0.0
        for i in range(1, m.size):
            ax, ay, az = 0.0, 0.0, 0.0
            for j in range(i):
                dx, dy, dz = x[0, j] - x[0, i], x[1, j] - x[1, i], x[2, j] - x[2, i]
                f, _ = pair(dx, dy, dz, length2)
                of_j, of_i = G * f * m[j], G * f * m[i]
                ax += of_j * dx
                ay += of_j * dy
                az += of_j * dz
                a[0, j] -= of_i * dx
                a[1, j] -= of_i * dy
                a[2, j] -= of_i * dz
            a[0, i] += ax
            a[1, i] += ay
            a[2, i] += az

    return add_pairs
