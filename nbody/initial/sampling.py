"""Random directions, rejection sampling, and the energy of a sample, with the same bits on every machine.

IEEE 754 fixes the last bit of +, −, ×, ÷ and √ only. Sines, powers and cube roots differ between processors and
libraries (even between versions of NumPy's loops), so this module does not use them; nor do ``lecture``, and ``plummer``
with equal masses and without segregation and binaries. The other generators do: their bits are the same on the same machine
with the same versions.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from nbody.machine import cores
from nbody.particles import Particles

Array = np.ndarray

ALL_PAIRS = 32768
"""Up to this number of bodies every pair is counted (2.5 s for 32768 bodies in one thread of an AMD EPYC)."""

BLOCK = 32
"""Rows whose sum is added to the others' at once."""

CACHED = 1 << 15
"""Pairs whose distances fit the second-level cache, twice."""


def accepted(rng: np.random.Generator, count: int, condition: Callable[[Array, Array], Array]) -> tuple[Array, Array]:
    """``count`` pairs (u, v) of uniform numbers in [0, 1) for which ``condition(u, v)`` holds (von Neumann 1951).

    Returns:
        u and v, each (count,) float64.
    """
    found = np.empty((2, count))
    have = 0
    while have < count:
        pairs = rng.random((2, 2 * (count - have) + 16))
        pairs = pairs[:, condition(*pairs)][:, : count - have]
        found[:, have : have + pairs.shape[1]] = pairs
        have += pairs.shape[1]
    return found[0], found[1]


def in_disc(rng: np.random.Generator, count: int) -> tuple[Array, Array, Array]:
    """Points (a, b) uniform in the unit disc, without its centre, and a² + b²; each (count,)."""

    def radius2(u: Array, v: Array) -> Array:
        return (2 * u - 1) ** 2 + (2 * v - 1) ** 2

    u, v = accepted(rng, count, lambda u, v: (radius2(u, v) > 0) & (radius2(u, v) < 1))
    return 2 * u - 1, 2 * v - 1, radius2(u, v)


def on_circle(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """cos φ and sin φ, each (count,), of angles φ uniform in [0, 2π)."""
    a, b, s = in_disc(rng, count)
    length = np.sqrt(s)
    return a / length, b / length


def on_sphere(rng: np.random.Generator, count: int) -> Array:
    """(count, 3) unit vectors in uniformly distributed directions (Marsaglia 1972)."""
    a, b, s = in_disc(rng, count)
    width = 2 * np.sqrt(1 - s)
    return np.stack([a * width, b * width, 1 - 2 * s], axis=1)


def potential_energy(mass: Array, position: Array) -> float:
    """−Σ mᵢmⱼ/rᵢⱼ over all pairs, without G and softening.

    For more than :data:`ALL_PAIRS` bodies, that of spherical shells, −Σ mᵢ M(<rᵢ)/rᵢ about the origin: for a sample of a
    sphere it differs by about 1/N of the energy."""
    if len(mass) > ALL_PAIRS:
        radius = np.sqrt((position * position).sum(axis=1))
        order = np.argsort(radius, kind="stable")
        m = mass[order]
        return -float((m * (np.cumsum(m) - m) / radius[order]).sum())
    columns = np.ascontiguousarray(position.T)
    total = 0.0
    with ThreadPoolExecutor(cores()) as pool:  # NumPy's loops leave Python's lock, so the threads run side by side
        for block in pool.map(lambda first: _block(mass, columns, first), range(0, len(mass), BLOCK)):
            total -= block  # in one order, whatever the number of threads
    return total


@np.errstate(all="ignore")  # of this thread; whoever takes the energy looks whether it is finite
def _block(mass: Array, columns: Array, first: int) -> float:
    """Σ mᵢmⱼ/rᵢⱼ of the ``BLOCK`` bodies i from ``first`` on, with all j > i; a few rows at a time, which fit the cache."""
    last = min(first + BLOCK, len(mass))
    rows = max(1, min(BLOCK, CACHED // (len(mass) - first)))
    square, difference = np.empty((2, rows, len(mass) - first))
    sums = np.empty(last - first)
    for low in range(first, last, rows):
        count = min(rows, last - low)
        r2, d = square[:count], difference[:count]
        r2[:] = 0.0
        for x in columns:
            np.subtract(x[low : low + count, None], x[None, first:], out=d)
            np.multiply(d, d, out=d)
            r2 += d
        # Each pair of the block's own rows is counted once: those before the diagonal, and the diagonal, are left out.
        for row in range(count):
            r2[row, : low - first + row + 1] = np.inf
        np.sqrt(r2, out=r2)
        np.divide(mass[None, first:], r2, out=r2)
        sums[low - first : low - first + count] = r2.sum(axis=1)
    return float((sums * mass[first:last]).sum())


def rescaled(particles: Particles, G: float, energy: float) -> Particles:
    """Scale positions and velocities so that T + W = ``energy`` (negative) and T = −W/2. Changes the particles, which are at
    rest as a whole, and returns them; a single body, or bodies without gravity, stay as they are."""
    potential = G * potential_energy(particles.mass, particles.position)
    kinetic = 0.5 * float((particles.mass[:, None] * particles.velocity**2).sum())
    if potential < 0 < kinetic:
        particles.position *= potential / (2 * energy)
        particles.velocity *= float(np.sqrt(-energy / kinetic))
    return particles
