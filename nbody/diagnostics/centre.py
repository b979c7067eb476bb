"""The centre of mass and its velocity."""

import numpy as np

from nbody.particles import Particles


def centre_of_mass(particles: Particles) -> np.ndarray:
    """Σ m x / Σ m, (D,) float64; the mean position if all masses are zero."""
    return _weights(particles) @ particles.position


def centre_velocity(particles: Particles) -> np.ndarray:
    """The velocity of the centre of mass, Σ m v / Σ m, (D,) float64; the mean if all masses are zero."""
    return _weights(particles) @ particles.velocity


def _weights(particles: Particles) -> np.ndarray:
    total = particles.mass.sum()
    return particles.mass / total if total else np.full(particles.count, 1 / particles.count)


WITHIN = 0.95
"""The fraction of the bodies that pictures show."""


def square_around(particles: Particles) -> tuple[np.ndarray, float]:
    """The centre (D,) and half the width of the square that a picture shows: around the centre of mass, and all but a few
    bodies far out."""
    centre = centre_of_mass(particles)
    return centre, 1.1 * float(np.quantile(distances(particles, centre), WITHIN, method="higher")) or 1.0


def distances(particles: Particles, centre: np.ndarray | None = None) -> np.ndarray:
    """The distance of every body from ``centre`` (D,), by default the centre of mass; (N,) float64."""
    offset = particles.position - (centre_of_mass(particles) if centre is None else np.asarray(centre, np.float64))
    return np.sqrt(np.einsum("ij,ij->i", offset, offset))
