"""Lagrangian radii: how the mass is distributed around a centre."""

from collections.abc import Sequence

import numpy as np

from nbody.diagnostics.centre import distances
from nbody.particles import Particles

FRACTIONS = (0.1, 0.5, 0.9)
"""The fractions of the total mass whose radii are recorded and plotted by default."""


def lagrangian_radii(
    particles: Particles, fractions: Sequence[float] = FRACTIONS, centre: np.ndarray | None = None
) -> np.ndarray:
    """The radii that contain the given fractions of the total mass, (F,) float64.

    Each is the distance of the first body, from the inside out, with which the enclosed mass reaches the fraction.

    Args:
        fractions: each from 0 to 1.
        centre: (D,); by default the centre of mass. For a star cluster the density centre is the better choice.
    """
    radius = distances(particles, centre)
    order = np.argsort(radius, kind="stable")
    enclosed = np.cumsum(particles.mass[order])
    first = np.searchsorted(enclosed, np.asarray(fractions, np.float64) * enclosed[-1])
    return radius[order[np.minimum(first, particles.count - 1)]]


def half_mass_radius(particles: Particles, centre: np.ndarray | None = None) -> float:
    """The radius around ``centre`` (by default the centre of mass) that contains half of the mass."""
    return float(lagrangian_radii(particles, (0.5,), centre)[0])
