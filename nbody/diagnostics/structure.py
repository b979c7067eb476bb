"""Where the mass is: centres, distances from them, local density, core radius and Lagrangian radii."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.given import shown
from nbody.particles import Particles

Array = np.ndarray

NEIGHBOURS = 6
"""k of :func:`local_density`: Casertano & Hut (1985) find that 6 is a good compromise between noise and resolution."""

WITHIN = 0.95
"""The fraction of the bodies that pictures show."""

FRACTIONS = (0.1, 0.5, 0.9)
"""The fractions of the total mass whose radii are recorded and plotted by default."""

REST_BITS = 44
"""Bits of a radius in float64 that do not count for its shell: the others are the exponent and 8 bits, 256 shells for each
factor of two."""


def centre_of_mass(particles: Particles) -> Array:
    """Σ m x / Σ m, (D,) float64; the mean position if all masses are zero."""
    return _mass_fractions(particles) @ particles.position


def centre_velocity(particles: Particles) -> Array:
    """The velocity of the centre of mass, Σ m v / Σ m, (D,) float64; the mean if all masses are zero."""
    return _mass_fractions(particles) @ particles.velocity


def _mass_fractions(particles: Particles) -> Array:
    total = particles.mass.sum()
    return particles.mass / total if total else np.full(particles.count, 1 / particles.count)


def distances(particles: Particles, centre: Array | None = None) -> Array:
    """The distance of every body from ``centre`` (D,), by default the centre of mass; (N,) float64."""
    offset = particles.position - (centre_of_mass(particles) if centre is None else np.asarray(centre, np.float64))
    return np.sqrt(np.einsum("ij,ij->i", offset, offset))


def square_around(particles: Particles) -> tuple[Array, float]:
    """The centre (D,) and half the width of the square that a picture shows: around the centre of mass, and all but a few
    bodies far out."""
    centre = centre_of_mass(particles)
    return centre, 1.1 * float(np.quantile(distances(particles, centre), WITHIN, method="higher")) or 1.0


def column_density(
    particles: Particles, cells: int = 128, extent: Sequence[float] | None = None, along: str = "z"
) -> tuple[Array, Array, Array]:
    """The mass per area in square cells, seen along an axis: each body counts in the cell where it is.

    Args:
        cells: per side.
        extent: left, right, bottom and top; by default a square around the centre of mass with all but a few far bodies.
        along: the axis of the line of sight, ``x``, ``y`` or ``z`` (in two dimensions ``z``).

    Returns:
        (cells, cells) density, in mass per length squared, and the edges of its rows and of its columns, (cells + 1,) each
        (x and y along ``z``, y and z along ``x``, x and z along ``y``).

    Raises:
        InputError: another axis, no cells, or an extent without an area.
    """
    axes = [k for k, name in enumerate("xyz"[: particles.dimensions]) if name != along]
    if along not in ("x", "y", "z") or len(axes) != 2:
        raise InputError(f"column_density: along: must be x, y or z (z in two dimensions), got {shown(along)}")
    if extent is None:
        centre, half = square_around(particles)
        extent = [centre[k] + side * half for k in axes for side in (-1, 1)]
    if isinstance(cells, bool) or not isinstance(cells, int | np.integer) or cells < 1:
        raise InputError(f"column_density: cells: must be a whole number, 1 or more, got {shown(cells)}")
    if np.shape(extent) != (4,) or not (extent[0] < extent[1] and extent[2] < extent[3]):
        raise InputError(f"column_density: extent: must be left < right and bottom < top, four numbers; got {shown(extent)}")
    left, right, bottom, top = extent
    x, y = np.linspace(left, right, cells + 1), np.linspace(bottom, top, cells + 1)
    edges: Any = [x, y]
    u, v = particles.position[:, axes].T
    mass, *_ = np.histogram2d(u, v, bins=edges, weights=particles.mass)
    return mass / ((x[1] - x[0]) * (y[1] - y[0])), x, y


def local_density(particles: Particles, neighbours: int = NEIGHBOURS) -> Array:
    """The mass density at every body: the mass of its k-1 nearest neighbours / the volume within the k-th (3-D), or the
    area (2-D).

    The body itself and the k-th neighbour do not count, which makes the estimate unbiased (Casertano & Hut 1985,
    Astrophysical Journal 298, 80, equation II.2).

    Args:
        neighbours: k, at least 2; with N ≤ k bodies, k is N-1.

    Returns:
        (N,) float64; infinite where k bodies are at the same place; NaN if there are fewer than three bodies, or one of them
        has no place.
    """
    from scipy.spatial import cKDTree  # 0.1 s

    if neighbours < 2:
        raise InputError(f"neighbours: must be at least 2, got {neighbours}")
    k = min(neighbours, particles.count - 1)
    if k < 2 or not np.isfinite(particles.position).all():
        return np.full(particles.count, np.nan)
    tree = cKDTree(particles.position)
    order = tree.indices  # one after the other finds its neighbours' branches in the cache: 1.0 s for 10⁶, not 2.7 s
    distance, nearest = tree.query(particles.position[order], k + 1, workers=-1)
    np.minimum(nearest, particles.count - 1, out=nearest)  # an infinite distance (squares overflow) has no neighbour
    mass, radius = np.empty((2, particles.count))
    mass[order] = particles.mass[nearest[:, :k]].sum(axis=1)
    mass -= particles.mass  # the body is among its k+1 nearest
    radius[order] = distance[:, k]
    with np.errstate(over="ignore"):  # of an infinite volume
        volume = math.pi * radius**2 if particles.dimensions == 2 else 4 / 3 * math.pi * radius**3
    return np.divide(mass, volume, out=np.full(particles.count, np.inf), where=volume > 0)


def density_centre(particles: Particles, density: Array | None = None) -> Array:
    """Σ ρ x / Σ ρ, (D,) float64: unlike the centre of mass, bodies far away do not move it (Casertano & Hut 1985).

    Args:
        density: ρ at every body (N,), if it has been computed; else that of :func:`local_density`.

    Returns:
        the centre of mass if there is no density (fewer than three bodies, or massless neighbours). Seven or more bodies at
        one place have an infinite density: then they alone count, wherever the rest of the mass is.
    """
    weight = _density_fractions(local_density(particles) if density is None else density)
    return centre_of_mass(particles) if weight is None else weight @ particles.position


def core_radius(particles: Particles, density: Array | None = None, centre: Array | None = None) -> float:
    """Σ ρ |x - x_d| / Σ ρ with the density centre x_d; NaN if there is no density. For Plummer's sphere 0.679 a.

    Args:
        density: ρ at every body (N,), if it has been computed.
        centre: x_d (D,), if it has been computed.
    """
    density = local_density(particles) if density is None else density
    weight = _density_fractions(density)
    if weight is None:
        return float("nan")
    radius = distances(particles, density_centre(particles, density) if centre is None else centre)
    return float(np.sum(weight * radius))  # (weight @ radius starts BLAS's threads: 4 ms for 20480 bodies)


def _density_fractions(density: Array) -> Array | None:
    """ρ / Σ ρ; None if the sum is zero or not a number. Infinite densities share the weight equally."""
    infinite = np.isinf(density)
    weight = infinite.astype(np.float64) if infinite.any() else density
    total = weight.sum()
    return weight / total if total > 0 else None


def lagrangian_radii(
    particles: Particles,
    fractions: Sequence[float] = FRACTIONS,
    centre: Array | None = None,
    radius: Array | None = None,
) -> Array:
    """The radii that contain the given fractions of the total mass, (F,) float64.

    Each is the distance of the first body, from the inside out, with which the enclosed mass reaches the fraction.

    Args:
        fractions: each from 0 to 1.
        centre: (D,); by default the :func:`density_centre`, which bodies that leave do not move.
        radius: the distance of every body from the centre (N,), if it has been computed.
    """
    if not all(0 <= each <= 1 for each in fractions):
        raise InputError(f"fractions: must be numbers from 0 to 1, got {shown(str(list(fractions)))}")
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


def half_mass_radius(particles: Particles, centre: Array | None = None, radius: Array | None = None) -> float:
    """The radius around ``centre`` that contains half of the mass; see :func:`lagrangian_radii`."""
    return float(lagrangian_radii(particles, (0.5,), centre, radius)[0])
