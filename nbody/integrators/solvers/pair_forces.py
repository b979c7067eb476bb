"""Accelerations of a few bodies, for kernels that call them in their own loops: each pair once, in order, in float64.

A kernel names a *variant* of them: a pair law (``none``, ``plummer``, …), a law with general relativity's term
(``none+1pn``), or ``encounter``: planets that meet, about a star that is at rest in the origin.
"""

import hashlib
from functools import cache
from pathlib import Path

import numpy as np
from numba import njit
from numba.extending import overload

from nbody import law
from nbody.fields import post_newtonian
from nbody.fields.post_newtonian import STRICT
from nbody.law import pair_law

RELATIVITY = "+1pn"
"""The end of the names of variants with the 1PN term."""

NEAREST = 0.1
"""Two planets closer than this share of their critical distance attract each other in the encounter's forces alone."""


def variant_of(name: str) -> str:
    """The text by which kernels ask for a variant. It changes with the source of the forces, so that kernels on disk do."""
    files = sorted(Path(law.__file__).parent.glob("*.py"))
    made_of = b"".join(file.read_bytes() for file in [*files, Path(__file__), Path(post_newtonian.__file__)])
    return f"{name} {hashlib.sha256(made_of).hexdigest()}"


def accelerate(variant, x, v, m, G, length2, more, a):
    """In a kernel: a_i = G Σ_j m_j f d for (3, N) positions ``x`` and masses ``m``, and what the variant adds.

    Args:
        variant: a constant text of :func:`variant_of`.
        v: (3, N) velocities, of which only relativity depends.
        length2: the softening length squared.
        more: further numbers of the variant: 1/c² of relativity; of ``encounter`` the (N,) critical distances.
    """
    raise NotImplementedError("for kernels only")


@overload(accelerate, prefer_literal=True)
def _accelerate_in_a_kernel(variant, x, v, m, G, length2, more, a):
    name = variant.literal_value.split()[0]
    if name == "encounter":
        return _encounter
    compiled = _accelerations(name.removesuffix(RELATIVITY))

    def of_pairs(variant, x, v, m, G, length2, more, a):
        compiled(x, m, G, length2, a)

    def with_relativity(variant, x, v, m, G, length2, more, a):
        compiled(x, m, G, length2, a)
        post_newtonian.add_forces(x, v, m, G, more[0], a)

    return with_relativity if name.endswith(RELATIVITY) else of_pairs


def _encounter(variant, x, v, m, G, length2, more, a):
    encounter(x, m, more, a)


@njit(error_model="numpy", fastmath=STRICT)
def share_of_kick(distance, critical):
    """The share L of the attraction of two planets that belongs to the map's kick: 1 beyond the critical distance, 0 below
    :data:`NEAREST` of it, and between them 35 y⁴ - 84 y⁵ + 70 y⁶ - 20 y⁷. (Chambers 1999 takes 10 y³ - 15 y⁴ + 6 y⁵;
    with the smoother one the energy error of an encounter was 1.6 times smaller, and after it 3 to 10 times.)"""
    y = (distance / critical - NEAREST) / (1.0 - NEAREST)
    if y >= 1.0:
        return 1.0
    if y <= 0.0:
        return 0.0
    return y * y * y * y * (35.0 + y * (-84.0 + y * (70.0 - 20.0 * y)))


@njit(error_model="numpy", fastmath=STRICT)
def encounter(x, m, critical, a):
    """Planets 1 … N-1 relative to the star 0: its attraction, and the share 1 - L of that between planets. The masses are
    multiplied by G; the star stays in the origin."""
    a[:, 0] = 0.0
    for i in range(1, m.size):
        r2 = x[0, i] * x[0, i] + x[1, i] * x[1, i] + x[2, i] * x[2, i]
        f = -m[0] / (r2 * np.sqrt(r2))
        ax, ay, az = f * x[0, i], f * x[1, i], f * x[2, i]
        for j in range(1, i):
            dx, dy, dz = x[0, j] - x[0, i], x[1, j] - x[1, i], x[2, j] - x[2, i]
            r2 = dx * dx + dy * dy + dz * dz
            r = np.sqrt(r2)
            share = 1.0 - share_of_kick(r, max(critical[i], critical[j]))
            if share > 0.0:
                f = share / (r2 * r)
                ax += f * m[j] * dx
                ay += f * m[j] * dy
                az += f * m[j] * dz
                a[0, j] -= f * m[i] * dx
                a[1, j] -= f * m[i] * dy
                a[2, j] -= f * m[i] * dz
        a[0, i], a[1, i], a[2, i] = ax, ay, az


@cache
def _accelerations(law_name):
    @njit
    def rsqrt(x):
        return 1.0 / np.sqrt(x)

    @njit
    def inverse_cube(x):
        return 1.0 / (x * np.sqrt(x))

    pair = pair_law(law_name, 3, rsqrt, njit(error_model="numpy"), inverse_cube)

    @njit(error_model="numpy", fastmath=STRICT)
    def accelerations(x, m, G, length2, a):
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

    return accelerations
