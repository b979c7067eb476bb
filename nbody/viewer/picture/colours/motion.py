"""Colours by motion: speed and acceleration."""

import numpy as np

from nbody.viewer.picture.colours.quantity import Bodies, Quantity
from nbody.viewer.picture.scale import LOGARITHMIC

Array = np.ndarray


def acceleration(bodies: Bodies) -> Array:
    """|Δv/Δt| between the frames before and after (one of them at the ends of the run); NaN if there is one frame only."""
    if bodies.around is None:
        return np.full(len(bodies.position), np.nan, np.float32)
    before, after, interval = bodies.around
    return np.linalg.norm(after.velocity - before.velocity, axis=1) / np.float32(interval)


SPEED = Quantity("speed", LOGARITHMIC, None, lambda source: source.speed_unit, lambda units: units.symbol("velocity"))
ACCELERATION = Quantity(
    "acceleration", LOGARITHMIC, acceleration, lambda source: source.speed_unit**2 / source.length_unit,
    lambda units: units.symbol("acceleration"), neighbours=True,
)  # fmt: skip
