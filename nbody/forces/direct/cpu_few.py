"""Forces and potentials of a few bodies: each pair once, in order, in plain loops.

Other compiled loops inline these sums, so that a scheme makes many steps without returning to Python
(:mod:`nbody.integrators.table_few`). All arithmetic is float64 without fast mathematics, so a sum has the same bits wherever
it is inlined.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from nbody.forces.direct.cpu_cache import disk_cached
from nbody.forces.direct.cpu_pairs import SOURCES
from nbody.law import LAWS, pair_law

NEAREST2 = 1e-200
"""The square of the distance at which bodies without softening exert no force: 1/r³ would overflow."""


MADE_OF = hashlib.sha256(SOURCES + Path(__file__).read_bytes()).hexdigest()


class FewKernels(NamedTuple):
    """Compiled functions ``f(position, mass, G, length2, result)`` for (N, D) positions of any precision."""

    accelerations: Callable
    potentials: Callable


def variant_of(softening: str, dimensions: int) -> str:
    """The text by which a kernel asks for these sums. It changes with their sources, so that kernels on disk do."""
    return f"{LAWS.load(softening).name} {dimensions} {MADE_OF}"


def add_pairs(variant, x, m, G, length2, sums):
    """In a kernel: a_i = G Σ_j m_j f d for (N, D) positions ``x``; ``sums`` is (3, N) float64. ``variant`` is a constant
    text of :func:`variant_of`."""
    raise NotImplementedError("for kernels only")


@overload(add_pairs, prefer_literal=True)
def _add_pairs_in_a_kernel(variant, x, m, G, length2, sums):
    softening, dimensions, _ = variant.literal_value.split()
    law, flat = _law(softening, int(dimensions)), dimensions == "2"

    def add_pairs(variant, x, m, G, length2, sums):
        smallest2 = max(length2, NEAREST2)
        sums[:] = 0.0
        for i in range(1, m.size):
            xi, yi, gm_i = np.float64(x[i, 0]), np.float64(x[i, 1]), G * m[i]
            zi = 0.0 if flat else np.float64(x[i, 2])
            ax, ay, az = 0.0, 0.0, 0.0
            for j in range(i):
                dx, dy = x[j, 0] - xi, x[j, 1] - yi
                dz = 0.0 if flat else x[j, 2] - zi
                f, _ = law(dx, dy, dz, smallest2)
                of_j, of_i = G * m[j] * f, gm_i * f
                ax += of_j * dx
                ay += of_j * dy
                az += of_j * dz
                sums[0, j] -= of_i * dx
                sums[1, j] -= of_i * dy
                sums[2, j] -= of_i * dz
            sums[0, i], sums[1, i], sums[2, i] = ax, ay, az

    return add_pairs


def add_potentials(variant, x, m, G, length2, sums):
    """In a kernel: φ_i = -G Σ_j m_j u, as :func:`add_pairs`; ``sums`` is (N,). Without softening that of a body in the place
    of another one with mass is -infinity."""
    raise NotImplementedError("for kernels only")


@overload(add_potentials, prefer_literal=True)
def _add_potentials_in_a_kernel(variant, x, m, G, length2, sums):
    softening, dimensions, _ = variant.literal_value.split()
    law, flat = _law(softening, int(dimensions)), dimensions == "2"

    def add_potentials(variant, x, m, G, length2, sums):
        smallest2 = max(length2, NEAREST2)
        sums[:] = 0.0
        for i in range(1, m.size):
            gm_i = G * m[i]
            for j in range(i):
                dx, dy = np.float64(x[j, 0]) - x[i, 0], np.float64(x[j, 1]) - x[i, 1]
                dz = 0.0 if flat else np.float64(x[j, 2]) - x[i, 2]
                _, u = law(dx, dy, dz, smallest2)
                if length2 == 0.0 and dx == 0.0 and dy == 0.0 and dz == 0.0:
                    u = np.inf
                gm_j = G * m[j]
                if gm_j != 0.0:  # 0 · infinity is a NaN
                    sums[i] -= gm_j * u
                if gm_i != 0.0:
                    sums[j] -= gm_i * u

    return add_potentials


@cache
def _law(softening: str, dimensions: int) -> Callable:
    @njit(error_model="numpy")
    def rsqrt(x):
        return 1.0 / np.sqrt(x)

    @njit(error_model="numpy")
    def inverse_cube(x):
        return 1.0 / (x * np.sqrt(x))

    return pair_law(softening, dimensions, rsqrt, njit(error_model="numpy"), inverse_cube)


@cache
def few_kernels(softening: str, dimensions: int) -> FewKernels:
    """The sums of all bodies as kernels of their own."""
    variant = variant_of(softening, dimensions)

    def accelerations(position, mass, G, length2, acceleration):
        sums = np.empty((3, mass.size))
        add_pairs(variant, position, mass, G, length2, sums)
        for i in range(mass.size):
            for k in range(position.shape[1]):
                acceleration[i, k] = sums[k, i]

    def potentials(position, mass, G, length2, potential):
        sums = np.empty(mass.size)
        add_potentials(variant, position, mass, G, length2, sums)
        potential[:] = sums

    return FewKernels(disk_cached(accelerations), disk_cached(potentials))
