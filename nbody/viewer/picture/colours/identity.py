"""Colours by what a body is (species, id, mass), and by the error of its frame."""

import numpy as np

from nbody.viewer.picture.colours.quantity import ColourQuantity, ShownBodies
from nbody.viewer.picture.scale import CATEGORIES, LINEAR, LOGARITHMIC

Array = np.ndarray


def species(bodies: ShownBodies) -> Array:
    """The number of each body's species."""
    return bodies.source.shown.of(bodies.source.catalogue.species).astype(np.float32)


def identity(bodies: ShownBodies) -> Array:
    """The id of each body."""
    return bodies.source.shown.of(bodies.source.catalogue.id).astype(np.float32)


def mass(bodies: ShownBodies) -> Array:
    """The mass of each body."""
    return bodies.source.shown.of(bodies.source.catalogue.mass).astype(np.float32)


def energy_error(bodies: ShownBodies) -> Array:
    """|E - E₀|/|E₀| of the frame, the same for all bodies."""
    return np.full(len(bodies.position), abs(bodies.energy_error), np.float32)


SPECIES = ColourQuantity("species", CATEGORIES, species, constant=True)
ID = ColourQuantity("id", LINEAR, identity, constant=True)
MASS = ColourQuantity("mass", LOGARITHMIC, mass, symbol=lambda units: units.symbol("mass"), constant=True)
ENERGY_ERROR = ColourQuantity("|energy error|", LOGARITHMIC, energy_error, samples=64)
