"""Lagrangian radii: how the mass is distributed around a centre."""

from collections.abc import Sequence

import numpy as np

from nbody.diagnostics.centre import distances
from nbody.diagnostics.core import density_centre
from nbody.particles import Particles

FRACTIONS = (0.1, 0.5, 0.9)
"""The fractions of the total mass whose radii are recorded and plotted by default."""

REST_BITS = 44
"""Bits of a radius in float64 that do not count for its shell: the others are the exponent and 8 bits, 256 shells for each
factor of two."""


def lagrangian_radii(
    particles: Particles,
    fractions: Sequence[float] = FRACTIONS,
    centre: np.ndarray | None = None,
    radius: np.ndarray | None = None,
) -> np.ndarray:
    """The radii that contain the given fractions of the total mass, (F,) float64.

    Each is the distance of the first body, from the inside out, with which the enclosed mass reaches the fraction.

    Args:
        fractions: each from 0 to 1.
        centre: (D,); by default the :func:`~nbody.diagnostics.core.density_centre`, which bodies that leave do not move.
        radius: the distance of every body from the centre (N,), if it has been computed.
    """
    if radius is None:
        radius = distances(particles, density_centre(particles) if centre is None else centre)
    # Only the bodies of one shell per fraction are sorted; a shell is a range of the leading bits of the radius. For 10⁶
    # bodies this takes 25 ms, and sorting all 146 ms.
    shell = radius.view(np.int64) >> REST_BITS
    shell -= shell.min()
    enclosed = np.cumsum(np.bincount(shell, particles.mass))
    found = []
    for mass in np.asarray(fractions, np.float64) * enclosed[-1]:
        which = min(int(np.searchsorted(enclosed, mass)), len(enclosed) - 1)
        bodies = np.flatnonzero(shell == which)
        bodies = bodies[np.argsort(radius[bodies], kind="stable")]
        inside = enclosed[which - 1] if which else 0.0
        first = int(np.searchsorted(inside + np.cumsum(particles.mass[bodies]), mass))
        found.append(radius[bodies[min(first, len(bodies) - 1)]])
    return np.array(found)


def half_mass_radius(particles: Particles, centre: np.ndarray | None = None, radius: np.ndarray | None = None) -> float:
    """The radius around ``centre`` that contains half of the mass; see :func:`lagrangian_radii`."""
    return float(lagrangian_radii(particles, (0.5,), centre, radius)[0])
