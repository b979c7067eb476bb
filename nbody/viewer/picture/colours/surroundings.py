"""Colours by what is around a body: density and potential."""

import numpy as np

from nbody.diagnostics.density import local_density
from nbody.law.gravity import Gravity
from nbody.viewer.picture.colours.quantity import Bodies, Quantity
from nbody.viewer.picture.scale import LOGARITHMIC

Array = np.ndarray

NEIGHBOURS_UP_TO = 200_000
"""Bodies up to which neighbours are searched (0.5 s for 1e5 on one core); more are counted in the cells of grids."""

CELLS, ZOOM, GRIDS = 64, 4.0, 5
"""Cells per side of a grid, the factor by which each grid is finer than the one around it, and the number of grids."""

WIDEST = 99.0
"""The percentile of the distances that the coarsest grid contains."""

PAIRS = 2**20
"""Pairs of bodies per block of the potential."""


def density(bodies: Bodies) -> Array:
    """The mass density around each body: of its sixth neighbour's sphere, or, for many bodies, of its cell of a grid."""
    if len(bodies.position) <= NEIGHBOURS_UP_TO:
        return local_density(bodies.particles()).astype(np.float32)
    return grid_density(bodies.position[:, : bodies.source.dimensions], bodies.mass)


def grid_density(position: Array, mass: Array) -> Array:
    """The density in the cell around each body, (N,) float32; the cells are smaller near the median of the positions.

    Each of :data:`GRIDS` grids covers the inner part of the one before; a body has the density of its finest grid with at
    least eight bodies per cell.
    """
    out = np.zeros(len(position), np.float32)
    centre = np.median(position, axis=0)
    far = np.abs(position - centre).max(axis=1)
    half = float(np.percentile(far, WIDEST)) or 1.0
    for _ in range(GRIDS):
        cell = 2 * half / CELLS
        inside = np.flatnonzero(far < half)
        if not len(inside):
            break
        place = ((position[inside] - centre + half) / cell).astype(np.int32).clip(0, CELLS - 1)
        number = np.ravel_multi_index(tuple(place.T), (CELLS,) * position.shape[1])
        total = np.bincount(number, mass[inside], CELLS ** position.shape[1])
        enough = np.bincount(number, minlength=len(total))[number] >= 8
        chosen = enough | (out[inside] == 0)
        out[inside[chosen]] = (total[number[chosen]] / cell ** position.shape[1]).astype(np.float32)
        half /= ZOOM
    return out


def potential(bodies: Bodies) -> Array:
    """The depth of the potential well at each body, -φ = G Σ m u(r), by direct summation; u is that of the law."""
    gravity = bodies.source.gravity or Gravity()
    position, mass, length = bodies.position.astype(np.float64), bodies.mass, bodies.source.length_unit
    length2 = gravity.length2 / length**2
    out = np.empty(len(mass))
    block = max(1, PAIRS // len(mass))
    for start in range(0, len(mass), block):
        offset = position[start : start + block, None] - position
        r2 = (offset**2).sum(axis=2)
        r2 = r2 + length2 if gravity.softening == "plummer" else np.maximum(r2, length2)
        i = np.arange(len(r2))
        r2[i, start + i] = np.inf
        out[start : start + block] = (1 / np.sqrt(np.maximum(r2, 1e-30))) @ mass
    return (gravity.G * out / length).astype(np.float32)


DENSITY = Quantity(
    "density", LOGARITHMIC, density,
    lambda source: source.length_unit ** -source.dimensions, lambda units: units.symbol("density"), samples=3,
)  # fmt: skip
POTENTIAL = Quantity(
    "−potential", LOGARITHMIC, potential,
    symbol=lambda units: f"({units.symbol('velocity')})²" if units.symbol("velocity") else "", most=4096, samples=3,
)  # fmt: skip
