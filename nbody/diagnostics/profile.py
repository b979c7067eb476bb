"""Radial profiles: density, velocity dispersion and rotation in logarithmic bins, with standard errors."""

import math
from dataclasses import dataclass

import numpy as np

from nbody.diagnostics.structure import centre_of_mass, centre_velocity
from nbody.errors import InputError
from nbody.particles import Particles

INNERMOST = 3
"""Bodies inside the first bin: so near the centre there are too few for a bin of their own."""

LEAST = 3
"""A bin with fewer bodies has no useful error, and is left out."""


@dataclass(frozen=True)
class Profile:
    """A radial profile; every array is (B,) float64, one value per bin that holds at least three bodies.

    Attributes:
        cylindrical: True if ``radius`` is the distance from an axis (or in a plane), False if from a centre.
        inner, outer: the limits of the bins; ``radius``: their geometric mean.
        count: the number of bodies in each bin.
        density: mass per volume (spherical) or per area (cylindrical), and ``density_error``, √(Σ m²)/Σ m of it.
        dispersion: the velocity dispersion σ in one dimension, the root of the mean variance of the D components, without
            the mean motion of the bin; and ``dispersion_error``, σ/√(2 D n).
        radial_dispersion, tangential_dispersion: the same of the component along the radius, and of the others.
        rotation: the mean velocity around the axis, and ``rotation_error``, its dispersion/√n.

    n is the effective number of bodies, (Σ m)²/Σ m².
    """

    cylindrical: bool
    inner: np.ndarray
    outer: np.ndarray
    count: np.ndarray
    density: np.ndarray
    density_error: np.ndarray
    dispersion: np.ndarray
    dispersion_error: np.ndarray
    radial_dispersion: np.ndarray
    tangential_dispersion: np.ndarray
    rotation: np.ndarray
    rotation_error: np.ndarray

    @property
    def radius(self) -> np.ndarray:
        """The geometric mean of each bin's limits."""
        return np.sqrt(self.inner * self.outer)


def radial_profile(
    particles: Particles, bins: int | None = None, centre: np.ndarray | None = None, cylindrical: bool | None = None
) -> Profile:
    """The profile around ``centre``, in bins of equal width in log r from the fourth body to the outermost.

    The axis of rotation is that of the total angular momentum around the centre (z in 2-D, or without any). Velocities
    are relative to the centre of mass.

    Args:
        bins: the number of bins; by default 4 to 24, about √N / 2.
        centre: (D,); by default the centre of mass.
        cylindrical: bins around the axis instead of the centre: for discs. Always true in 2-D.

    Returns:
        no bin if fewer than seven bodies are at different distances.
    """
    if bins is not None and bins < 1:
        raise InputError(f"bins: must be at least 1, got {bins}")
    n = particles.count
    x, v = np.zeros((2, n, 3))
    x[:, : particles.dimensions] = particles.position - (centre_of_mass(particles) if centre is None else centre)
    v[:, : particles.dimensions] = particles.velocity - centre_velocity(particles)
    flat = particles.dimensions == 2
    cylindrical = flat or bool(cylindrical)
    radius, components = _components(x, v, _axis(particles.mass, x, v), cylindrical)
    edges = _edges(radius, bins or round(min(max(math.sqrt(n) / 2, 4), 24)))
    if edges is None:
        return Profile(cylindrical, *np.zeros((11, 0)))
    return _binned(particles.mass, radius, components[: particles.dimensions], edges, cylindrical)


def _axis(mass: np.ndarray, x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The direction of the angular momentum, (3,)."""
    momentum = mass @ np.cross(x, v)
    size = float(np.linalg.norm(momentum))
    return momentum / size if size and x[:, 2].any() else np.array([0.0, 0.0, 1.0])


def _components(x: np.ndarray, v: np.ndarray, axis: np.ndarray, cylindrical: bool) -> tuple[np.ndarray, list[np.ndarray]]:
    """Radii (N,), and the velocities along the radius, around the axis, and at right angles to both, (N,) each."""
    outward = x - np.outer(x @ axis, axis) if cylindrical else x
    radius = np.linalg.norm(outward, axis=1)
    outward = _unit(outward)
    around = _unit(np.cross(axis, x))
    third = np.cross(outward, around)
    return radius, [np.einsum("ij,ij->i", v, along) for along in (outward, around, third)]


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1; 0 stays 0."""
    size = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, size, out=np.zeros_like(vectors), where=size > 0)


def _edges(radius: np.ndarray, bins: int) -> np.ndarray | None:
    """The limits of the bins, (bins + 1,); None if there are too few radii."""
    ordered = np.sort(radius[radius > 0])
    if len(ordered) <= INNERMOST + LEAST or ordered[INNERMOST] >= ordered[-1]:
        return None
    edges = np.geomspace(ordered[INNERMOST], ordered[-1], bins + 1)
    edges[0], edges[-1] = ordered[INNERMOST], np.nextafter(ordered[-1], np.inf)  # rounding must not lose a body
    return edges


def _binned(
    mass: np.ndarray, radius: np.ndarray, components: list[np.ndarray], edges: np.ndarray, cylindrical: bool
) -> Profile:
    bins, dimensions = len(edges) - 1, len(components)
    index = np.searchsorted(edges, radius, side="right") - 1
    inside = (index >= 0) & (index < bins)
    index, m = index[inside], mass[inside]

    def total(weight: np.ndarray) -> np.ndarray:
        return np.bincount(index, weight, minlength=bins)

    count, masses, squares = total(np.ones(len(m))), total(m), total(m * m)
    kept = (count >= LEAST) & (masses > 0)
    weight = np.where(kept, masses, 1.0)
    effective = np.where(kept, weight**2 / np.where(kept, squares, 1.0), 1.0)
    means, variances = [], []
    for component in components:
        u = component[inside]
        mean = total(m * u) / weight
        # the sample's variance is smaller than that of its source by (n-1)/n
        variances.append(total(m * (u - mean[index]) ** 2) / weight * effective / np.maximum(effective - 1, 1e-9))
        means.append(mean)
    power, factor = (2, math.pi) if cylindrical else (3, 4 / 3 * math.pi)
    density = masses / (factor * (edges[1:] ** power - edges[:-1] ** power))
    dispersion = np.sqrt(np.mean(variances, axis=0))
    columns = (
        edges[:-1],
        edges[1:],
        count,
        density,
        density / np.sqrt(effective),
        dispersion,
        dispersion / np.sqrt(2 * dimensions * effective),
        np.sqrt(variances[0]),
        np.sqrt(np.mean(variances[1:], axis=0)),
        means[1],
        np.sqrt(variances[1] / effective),
    )
    return Profile(cylindrical, *(column[kept] for column in columns))
