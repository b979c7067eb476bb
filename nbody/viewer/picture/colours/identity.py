"""Colours by what a body is (species, id, mass), and by the error of its frame."""

import numpy as np

from nbody.viewer.picture.colours.quantity import Bodies, Quantity
from nbody.viewer.picture.scale import CATEGORIES, LINEAR, LOGARITHMIC

Array = np.ndarray


def species(bodies: Bodies) -> Array:
    """The number of each body's species."""
    source = bodies.source
    known = source.species if source.species is not None else np.zeros(source.count)
    return source.chosen_rows(known).astype(np.float32)


def identity(bodies: Bodies) -> Array:
    """The id of each body."""
    return bodies.source.chosen_rows(bodies.source.id).astype(np.float32)


def mass(bodies: Bodies) -> Array:
    """The mass of each body."""
    return bodies.source.shown_mass.astype(np.float32)


def energy_error(bodies: Bodies) -> Array:
    """|E - E₀|/|E₀| of the frame, the same for all bodies."""
    return np.full(len(bodies.position), abs(bodies.energy_error), np.float32)


SPECIES = Quantity("species", CATEGORIES, species, constant=True)
ID = Quantity("id", LINEAR, identity, constant=True)
MASS = Quantity("mass", LOGARITHMIC, mass, symbol=lambda units: units.symbol("mass"), constant=True)
ENERGY_ERROR = Quantity("|energy error|", LOGARITHMIC, energy_error, samples=64)
