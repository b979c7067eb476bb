"""Forces and potentials of a few bodies: each pair once, in order, in plain loops.

Other compiled loops inline these sums, so that a scheme makes many steps without returning to Python
(:mod:`nbody.integrators.schemes.table_few`). All arithmetic is float64 without fast mathematics, so a sum has the same bits
wherever it is inlined.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.forces.engine import Engine
from nbody.forces.layers.sorted import Sorted
from nbody.law import inverse_root, pair_law, pair_slopes, potential_factor
from nbody.state import State

NEAREST2 = 1e-200
"""The square of the distance at which bodies without softening exert no force: 1/r³ would overflow."""


class FewKernels(NamedTuple):
    """Compiled functions ``f(position, mass, G, length2, result)`` for (N, D) positions of any precision; ``jerks`` is
    ``f(position, velocity, mass, G, length2, acceleration, jerk)``."""

    accelerations: Callable
    potentials: Callable
    jerks: Callable


def inlines_sums(engine: Engine, state: State) -> bool:
    """True if other compiled loops may inline the sums over the pairs of a state's bodies."""
    return state.count <= engine.can.few and not engine.gravity.per_species and not isinstance(state.workspace, Sorted)


part_of_loop = inner(forceinline=True, _nrt=False)
"""Compiles a part of a compiled loop that allocates and returns no arrays, so that references to them are not counted.
(Three bodies were 1.6 times slower where LLVM chose what to inline, and 2 times with such counts.)"""


def summing(pair: Callable, separation: Callable, first_i: int = 1, first_j: int = 0) -> Callable:
    """For kernels: ``add(x, m, G, law, sums)`` adds the accelerations G m_j f d of pairs to ``sums`` (3, N), each pair
    once, in order.

    Args:
        pair: ``(i, j, dx, dy, dz, law) -> f``.
        separation: ``(x, j, xi, yi, zi)``, of body j from a position, in float64.
        first_i, first_j: the first bodies of pairs i > j.
    """

    @part_of_loop
    def add(x, m, G, law, sums):
        for i in range(first_i, m.size):
            gm_i = G * m[i]
            xi, yi, zi = separation(x, i, 0.0, 0.0, 0.0)
            ax, ay, az = sums[0, i], sums[1, i], sums[2, i]
            for j in range(first_j, i):
                dx, dy, dz = separation(x, j, xi, yi, zi)
                f = pair(i, j, dx, dy, dz, law)
                of_j, of_i = G * m[j] * f, gm_i * f
                ax += of_j * dx
                ay += of_j * dy
                az += of_j * dz
                sums[0, j] -= of_i * dx
                sums[1, j] -= of_i * dy
                sums[2, j] -= of_i * dz
            sums[0, i], sums[1, i], sums[2, i] = ax, ay, az

    return add


def summing_slopes(pair: Callable, separation: Callable, first_i: int = 1, first_j: int = 0) -> Callable:
    """For kernels: ``add(x, v, m, G, law, sums)`` adds the accelerations of :func:`summing`, with the same bits, and their
    derivatives along v, G m_j (f w + g (d·w) d), to ``sums`` (6, N). With velocities v these are the jerks, with a
    tangent vector's positions the forces on that.

    Args:
        pair: ``(i, j, dx, dy, dz, law) -> f, g`` with g = (1/r) df/dr.
        separation, first_i, first_j: as there; w is the separation of v.
    """

    @part_of_loop
    def add(x, v, m, G, law, sums):
        for i in range(first_i, m.size):
            gm_i = G * m[i]
            xi, yi, zi = separation(x, i, 0.0, 0.0, 0.0)
            ui, vi, wi = separation(v, i, 0.0, 0.0, 0.0)
            for j in range(first_j, i):
                dx, dy, dz = separation(x, j, xi, yi, zi)
                vx, vy, vz = separation(v, j, ui, vi, wi)
                f, g = pair(i, j, dx, dy, dz, law)
                change = g * (dx * vx + dy * vy + dz * vz)
                jx, jy, jz = f * vx + change * dx, f * vy + change * dy, f * vz + change * dz
                gm_j = G * m[j]
                sums[0, i] += gm_j * f * dx
                sums[1, i] += gm_j * f * dy
                sums[2, i] += gm_j * f * dz
                sums[3, i] += gm_j * jx
                sums[4, i] += gm_j * jy
                sums[5, i] += gm_j * jz
                sums[0, j] -= gm_i * f * dx
                sums[1, j] -= gm_i * f * dy
                sums[2, j] -= gm_i * f * dz
                sums[3, j] -= gm_i * jx
                sums[4, j] -= gm_i * jy
                sums[5, j] -= gm_i * jz

    return add


@cache
def adding_pairs(softening: str, dimensions: int) -> Callable:
    """For kernels: ``add_pairs(x, m, G, length2, sums)``, a_i = G Σ_j m_j f d for (N, D) positions; ``sums`` is (3, N)
    float64."""
    law = law_of(softening, dimensions)

    @part_of_loop
    def pair(i, j, dx, dy, dz, smallest2):
        f, _ = law(dx, dy, dz, smallest2)
        return f

    add = summing(pair, in_rows(dimensions))

    @part_of_loop
    def add_pairs(x, m, G, length2, sums):
        sums[:] = 0.0
        add(x, m, G, max(length2, NEAREST2), sums)

    return add_pairs


@cache
def adding_jerks(softening: str, dimensions: int) -> Callable:
    """For kernels: ``add_jerks(x, v, m, G, length2, sums)``, the accelerations of :func:`adding_pairs` and their
    derivatives along v, j_i = G Σ_j m_j (f w + g (d·w) d) with the separation w of v; ``sums`` is (6, N) float64."""
    add = summing_slopes(slope_of(softening, dimensions), in_rows(dimensions))

    @part_of_loop
    def add_jerks(x, v, m, G, length2, sums):
        sums[:] = 0.0
        add(x, v, m, G, max(length2, NEAREST2), sums)

    return add_jerks


@cache
def slope_of(softening: str, dimensions: int) -> Callable:
    """For kernels: ``(i, j, dx, dy, dz, length2) -> f, g``, a law and its derivative g = (1/r) df/dr."""
    law, slopes = law_of(softening, dimensions), _slopes(softening, dimensions)
    cubic, slopes = slopes is None, slopes or law  # an unused function must be one, too

    @part_of_loop
    def pair(i, j, dx, dy, dz, length2):
        f, u = law(dx, dy, dz, length2)
        return f, (-3.0 * f * u * u if cubic else slopes(dx, dy, dz, length2)[0])

    return pair


@cache
def in_rows(dimensions: int) -> Callable:
    """For kernels: the separation of body j of (N, D) rows from a position, in float64."""
    flat = dimensions == 2

    @part_of_loop
    def separation(x, j, xi, yi, zi):
        return x[j, 0] - xi, x[j, 1] - yi, 0.0 if flat else x[j, 2] - zi

    return separation


@cache
def adding_potentials(softening: str, dimensions: int) -> Callable:
    """For kernels: ``add_potentials(x, m, G, length2, sums)``, φ_i = -G Σ_j m_j u, as :func:`adding_pairs`; ``sums`` is
    (N,). Without softening that of a body in the place of another one with mass is -infinity."""
    law, flat = law_of(softening, dimensions), dimensions == 2
    factor = inner(potential_factor)

    @inner
    def add_potentials(x, m, G, length2, sums):
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
                sums[i] -= gm_j * factor(u, gm_j)
                sums[j] -= gm_i * factor(u, gm_i)

    return add_potentials


_rsqrt = inner(inverse_root)


@inner
def _inverse_cube(x):
    return 1.0 / (x * np.sqrt(x))


@cache
def law_of(softening: str, dimensions: int) -> Callable:
    """A law for kernels, in float64: :func:`~nbody.law.pair_law`."""
    return pair_law(softening, dimensions, _rsqrt, inner, _inverse_cube)


@cache
def _slopes(softening: str, dimensions: int) -> Callable | None:
    return pair_slopes(softening, dimensions, _rsqrt, inner, _inverse_cube)


@cache
def few_kernels(softening: str, dimensions: int) -> FewKernels:
    """The sums of all bodies as kernels of their own."""
    add_pairs, add_jerks = adding_pairs(softening, dimensions), adding_jerks(softening, dimensions)
    add_potentials = adding_potentials(softening, dimensions)

    @compute.kernel("cpu")
    def accelerations(position, mass, G, length2, acceleration):
        sums = np.empty((3, mass.size))
        add_pairs(position, mass, G, length2, sums)
        for i in range(mass.size):
            for k in range(position.shape[1]):
                acceleration[i, k] = sums[k, i]

    @compute.kernel("cpu")
    def potentials(position, mass, G, length2, potential):
        sums = np.empty(mass.size)
        add_potentials(position, mass, G, length2, sums)
        for i in range(mass.size):
            potential[i] = sums[i]

    @compute.kernel("cpu")
    def jerks(position, velocity, mass, G, length2, acceleration, jerk):
        sums = np.empty((6, mass.size))
        add_jerks(position, velocity, mass, G, length2, sums)
        for i in range(mass.size):
            for k in range(position.shape[1]):
                acceleration[i, k], jerk[i, k] = sums[k, i], sums[3 + k, i]

    return FewKernels(accelerations, potentials, jerks)
