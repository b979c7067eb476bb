"""The centre of mass and its velocity."""

import numpy as np

from nbody.particles import Particles


def centre_of_mass(particles: Particles) -> np.ndarray:
    """Σ m x / Σ m, (D,) float64."""
    return particles.mass @ particles.position / particles.mass.sum()


def centre_velocity(particles: Particles) -> np.ndarray:
    """The velocity of the centre of mass, Σ m v / Σ m, (D,) float64."""
    return particles.mass @ particles.velocity / particles.mass.sum()


def distances(particles: Particles, centre: np.ndarray | None = None) -> np.ndarray:
    """The distance of every body from ``centre`` (D,), by default the centre of mass; (N,) float64."""
    offset = particles.position - (centre_of_mass(particles) if centre is None else np.asarray(centre, np.float64))
    return np.sqrt(np.einsum("ij,ij->i", offset, offset))
