"""Colours by what is around a body: density and potential."""

import numpy as np

from nbody.diagnostics.structure import local_density
from nbody.law.gravity import Gravity
from nbody.viewer.picture.colours.quantity import LOGARITHMIC, ColourQuantity, ShownBodies

Array = np.ndarray

NEIGHBOURS_UP_TO = 30_000
"""Bodies up to which neighbours are searched (1e5 would take 1 s per frame on one core); more are counted in cells, which
takes 0.1 s for 1e5 and 1 s for 1e6."""

LEVELS, LEAST = 20, 16
"""The cell of all bodies is halved so many times along each axis. A body's cell is its smallest one with at least so many
bodies."""

FAR = 1e14
"""Bodies beyond have no finite position."""


def density(bodies: ShownBodies) -> Array:
    """The mass density around each body: within its sixth neighbour, or, for many bodies, in its cell."""
    if len(bodies.position) <= NEIGHBOURS_UP_TO:
        return local_density(bodies.particles()).astype(np.float32)
    return grid_density(bodies.position[:, : bodies.source.catalogue.dimensions], bodies.mass)


def grid_density(position: Array, mass: Array) -> Array:
    """The density in the cell around each body, (N,) float32: its mass / its volume. The cells are smaller where there are
    more bodies: each has at least :data:`LEAST` of them, and none of its halves along all axes around the body has."""
    out = np.zeros(len(position), np.float32)
    known = np.flatnonzero(np.abs(position).max(axis=1) < FAR)
    if len(known) < LEAST:
        return out
    position, dimensions = position[known].astype(np.float64), position.shape[1]
    corner, side = position.min(axis=0), float(np.ptp(position, axis=0).max()) * 1.0001 or 1.0
    key = _morton(((position - corner) * (2**LEVELS / side)).astype(np.int64))
    order = np.argsort(key)
    key, mass, rows = key[order], mass[known][order], known[order]
    for level in range(LEVELS + 1):  # from the smallest cells to the one that contains all
        cell = key >> (dimensions * level)
        begin = np.flatnonzero(np.diff(cell, prepend=-1))
        count = np.diff(begin, append=len(key))
        volume = (side * 2.0 ** (level - LEVELS)) ** dimensions
        density = np.repeat(np.add.reduceat(mass, begin) / volume, count)
        first = np.repeat(count >= LEAST, count) & (out[rows] == 0)
        out[rows[first]] = density[first]
    return out


def _morton(cell: Array) -> Array:
    """The numbers (N, D) of cells along each axis as one number, (N,) int64, in which cells of one larger cell follow each
    other (Morton 1966): the bits of the axes alternate."""
    key = np.zeros(len(cell), np.int64)
    for bit in range(LEVELS):
        for axis, numbers in enumerate(cell.T):
            key |= ((numbers >> bit) & 1) << (bit * cell.shape[1] + axis)
    return key


def potential(bodies: ShownBodies) -> Array:
    """The depth of the potential well at each body, -φ, by direct summation with the law of the run."""
    from nbody.forces.reference import direct_sum

    source = bodies.source
    position = bodies.position[:, : source.catalogue.dimensions].astype(np.float64) * source.length_unit
    law, each = source.catalogue.gravity or Gravity(dimensions=source.catalogue.dimensions), source.catalogue.softening2
    return -direct_sum(position, bodies.mass, law, None, None if each is None else source.shown.of(each))[1]


DENSITY = ColourQuantity(
    "density", LOGARITHMIC, density,
    lambda source: source.length_unit ** -source.catalogue.dimensions, lambda units: units.symbol("density"), samples=3,
)  # fmt: skip
POTENTIAL = ColourQuantity(
    "−potential", LOGARITHMIC, potential,
    symbol=lambda units: f"({units.symbol('velocity')})²" if units.symbol("velocity") else "", most=4096, samples=3,
)  # fmt: skip
