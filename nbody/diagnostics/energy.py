"""Energies: the conserved quantities of a run, the virial ratio, the energy error, and bodies with a positive energy."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from nbody.diagnostics.structure import centre_velocity, distances
from nbody.particles import Particles

DIRECT = 16384
"""The most bodies for which the potential is summed over pairs."""

ROWS = 128
"""Bodies per block: their distances from all others take a few megabytes."""


def conserved_quantities(sums: np.ndarray) -> dict[str, float | np.ndarray]:
    """The conserved quantities at one moment, in the scenario's units, computed from :mod:`nbody.state.sums`.

    Returns:
        ``kinetic_energy`` T = ½ Σ m v²; ``potential_energy`` W = ½ Σ m φ; ``total_energy`` T + W; ``momentum`` Σ m v
        and ``angular_momentum`` Σ m x × v, (3,) each; ``virial_ratio`` T/|W|. W includes Σ m Φ of external fields, with
        which T/|W| is not 1/2 in equilibrium.
    """
    kinetic, binding = float(sums[0]), float(sums[1])
    return {
        "kinetic_energy": kinetic,
        "potential_energy": binding,
        "total_energy": kinetic + binding,
        "momentum": sums[2:5].copy(),
        "angular_momentum": sums[5:8].copy(),
        "virial_ratio": virial_ratio(kinetic, binding),
    }


def virial_ratio(kinetic: float, potential: float) -> float:
    """T/|W|: 1/2 in equilibrium, 0 for bodies at rest, infinite without a force."""
    return kinetic / abs(potential) if potential else math.inf


def relative_energy_error(energy: float, initial: float) -> float:
    """(E - E₀)/|E₀|; the plain difference where E₀ is zero."""
    return (energy - initial) / (abs(initial) or 1.0)


def booked(observables: Mapping[str, Any]) -> Any:
    """What collisions and changes of the bodies have added to the energy: without it the energy is conserved."""
    return observables.get("booked_energy", observables.get("collision_energy", 0.0))


@dataclass(frozen=True)
class Energies:
    """Total energies of the first and the latest recorded frame (NaN before the first frame), and of the frame with the
    largest error so far. The errors are NaN if the energy is not ``conserved``: a force has no potential."""

    initial: float = math.nan
    latest: float = math.nan
    farthest: float = math.nan
    conserved: bool = True

    @classmethod
    def of(cls, energies: np.ndarray, conserved: bool = True) -> Self:
        """Those of frames with these total energies."""
        found = cls(conserved=conserved)
        for energy in energies:
            found = found.after(float(energy))
        return found

    @property
    def error(self) -> float:
        """(E - E₀)/|E₀|."""
        return relative_energy_error(self.latest, self.initial) if self.conserved else math.nan

    @property
    def largest_error(self) -> float:
        """The largest (E - E₀)/|E₀| of all frames, with its sign."""
        return relative_energy_error(self.farthest, self.initial) if self.conserved else math.nan

    def after(self, energy: float) -> Self:
        """A copy to which a frame with this energy is added."""
        initial = energy if math.isnan(self.initial) else self.initial
        nearer = math.isnan(self.farthest) or abs(energy - initial) > abs(self.farthest - initial)
        return replace(self, initial=initial, latest=energy, farthest=energy if nearer else self.farthest)


def escapers(
    particles: Particles, G: float = 1.0, centre: np.ndarray | None = None, potential: np.ndarray | None = None
) -> int:
    """The number of bodies with ½ v² + φ > 0.

    φ is the ``potential`` if it is given, as a run computes it, with its softening. Otherwise, up to :data:`DIRECT` bodies,
    φ_i = -G Σ_{j≠i} m_j/r_ij, summed over pairs. For more, each other body is spread over a sphere around the centre,
    φ_i = -G (M(<r_i)/r_i + Σ_{r_j>r_i} m_j/r_j): it takes a sort instead of all pairs, and is right only near spherical
    symmetry (not with a heavy body far out, or two clusters). Both ignore the softening. The velocity v is relative to the
    centre of mass.

    Args:
        G: the gravitational constant.
        centre: (D,), of the spheres; by default the centre of mass.
        potential: φ of every body (N,), per unit mass and without external fields, if it has been computed.
    """
    v = particles.velocity - centre_velocity(particles)
    kinetic = 0.5 * np.einsum("ij,ij->i", v, v)
    if potential is not None:
        return int(np.count_nonzero(kinetic + potential > 0))
    spheres = _of_spheres(particles, G, centre)
    if particles.count > DIRECT:
        return int(np.count_nonzero(kinetic + spheres > 0))
    # r_ij ≤ r_i + r_j ≤ 2 max(r_i, r_j), so φ is at most half the potential of the spheres: most bodies need no sum.
    doubtful = np.flatnonzero(kinetic + spheres / 2 > 0)
    return int(np.count_nonzero(kinetic[doubtful] + _of_pairs(particles, G, doubtful) > 0))


def _of_spheres(particles: Particles, G: float, centre: np.ndarray | None) -> np.ndarray:
    """The potential of every body if each other one is spread over a sphere, (N,)."""
    radius = distances(particles, centre)
    order = np.argsort(radius, kind="stable")
    r, m = radius[order], particles.mass[order]
    inside = np.append(0.0, np.cumsum(m)[:-1])  # without the body itself
    per_radius = np.divide(m, r, out=np.zeros_like(r), where=r > 0)
    outside = np.append(np.cumsum(per_radius[::-1])[-2::-1], 0.0)
    potential = np.empty_like(r)
    potential[order] = -G * (np.divide(inside, r, out=np.zeros_like(r), where=r > 0) + outside)
    return potential


def _of_pairs(particles: Particles, G: float, bodies: np.ndarray) -> np.ndarray:
    """The potential of chosen bodies, summed over all others. (Softened bodies in the same place do not count.)"""
    from scipy.spatial.distance import cdist  # 0.1 s

    found = np.zeros(len(bodies))
    for start in range(0, len(bodies), ROWS):
        r = cdist(particles.position[bodies[start : start + ROWS]], particles.position)
        found[start : start + ROWS] = -G * (np.divide(1, r, out=np.zeros_like(r), where=r > 0) @ particles.mass)
    return found
