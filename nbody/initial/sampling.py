"""Random directions and rejection sampling, with the same bits on every machine.

IEEE 754 fixes the last bit of +, −, ×, ÷ and √ only. Sines, powers and cube roots differ between processors and
libraries (even between versions of NumPy's loops), so this module does not use them; nor do ``lecture``, and ``plummer``
with equal masses and without segregation and binaries. The other generators do: their bits are the same on the same machine
with the same versions.
"""

from collections.abc import Callable

import numpy as np

Array = np.ndarray


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
