"""Bodies that are leaving: those with a positive energy."""

import numpy as np

from nbody.diagnostics.centre import centre_velocity, distances
from nbody.particles import Particles


def escapers(particles: Particles, G: float = 1.0, centre: np.ndarray | None = None) -> int:
    """The number of bodies with ½ v² + φ(r) > 0.

    φ(r) = -G (M(<r)/r + Σ_{r_j>r} m_j/r_j) is the potential of the other bodies, each spread over a sphere around the
    centre: it takes a sort instead of all pairs, and ignores the softening and external fields. The velocity v is relative
    to the centre of mass.

    Args:
        G: the gravitational constant.
        centre: (D,); by default the centre of mass.
    """
    radius = distances(particles, centre)
    order = np.argsort(radius, kind="stable")
    r, m = radius[order], particles.mass[order]
    inside = np.append(0.0, np.cumsum(m)[:-1])  # without the body itself
    per_radius = np.divide(m, r, out=np.zeros_like(r), where=r > 0)
    outside = np.append(np.cumsum(per_radius[::-1])[-2::-1], 0.0)
    potential = -G * (np.divide(inside, r, out=np.zeros_like(r), where=r > 0) + outside)
    v = (particles.velocity - centre_velocity(particles))[order]
    return int(np.count_nonzero(0.5 * np.einsum("ij,ij->i", v, v) + potential > 0))
