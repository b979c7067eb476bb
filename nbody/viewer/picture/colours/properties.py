"""Colours by what a body is (species, id, mass), by its motion, and by the error of its frame."""

import numpy as np

from nbody.viewer.picture.colours.quantity import CATEGORIES, LINEAR, LOGARITHMIC, ColourQuantity, ShownBodies

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


def acceleration(bodies: ShownBodies) -> Array:
    """|Δv/Δt| between the frames before and after (one of them at the ends of the run); NaN if there is one frame only."""
    if bodies.around is None:
        return np.full(len(bodies.position), np.nan, np.float32)
    before, after = bodies.around
    return np.linalg.norm(after.velocity - before.velocity, axis=1) / np.float32(after.time - before.time)


def relative_speed(bodies: ShownBodies) -> Array:
    """|v - v_c| with the velocity v_c of the centre of mass; the mean velocity if no body has mass."""
    velocity = bodies.velocity.astype(np.float64)
    finite = np.isfinite(velocity).all(axis=1)
    if not finite.any():
        return np.full(len(velocity), np.nan)
    mass = bodies.mass[finite]
    mean = np.average(velocity[finite], axis=0, weights=mass if mass.any() else None)
    relative: Array = np.linalg.norm(velocity - mean, axis=1)
    return relative


SPECIES = ColourQuantity("species", CATEGORIES, species, constant=True)
ID = ColourQuantity("id", LINEAR, identity, constant=True)
MASS = ColourQuantity("mass", LOGARITHMIC, mass, symbol=lambda units: units.symbol("mass"), constant=True)
ENERGY_ERROR = ColourQuantity("|energy error|", LOGARITHMIC, energy_error, samples=64)
SPEED = ColourQuantity(
    "speed", LOGARITHMIC, None, lambda source: source.speed_unit, lambda units: units.symbol("velocity")
)
RELATIVE_SPEED = ColourQuantity(
    "speed relative to the centre of mass", LOGARITHMIC, relative_speed, SPEED.unit, SPEED.symbol
)
ACCELERATION = ColourQuantity(
    "acceleration", LOGARITHMIC, acceleration, lambda source: source.speed_unit**2 / source.length_unit,
    lambda units: units.symbol("acceleration"), neighbours=True,
)  # fmt: skip
