"""Units of computation: powers of two near the sizes of the bodies. So the scaling rounds nothing, and metres and kilograms,
whose squares would overflow float32, are as good as other units."""

import math
from typing import Any, NamedTuple

import numpy as np

from nbody.law import Gravity

NEAREST = {"float32": -42, "float64": -60}
"""Bodies closer than 2 to this power, in the unit of length, count as coincident and exert no force on each other: the
inverse cube of their distance would overflow. For ``cpu`` this is 2e-19 of the farthest coordinate in float32, and 8e-37 in
float64."""


class ComputeUnits(NamedTuple):
    """Factors from the caller's numbers to the kernel's (position, mass), and from its sums to the caller's."""

    position: float
    mass: float
    acceleration: float
    potential: float

    @classmethod
    def of(cls, length: int, mass: int, G: float, missing: float = 1.0) -> "ComputeUnits":
        """The units 2^``length`` and 2^``mass``. The kernel's accelerations lack the factor ``missing``, and G."""
        return cls(
            power_of_two(1.0, -length), power_of_two(1.0, -mass),
            power_of_two(G * missing, mass - 2 * length), power_of_two(G, mass - length),
        )  # fmt: skip


def mark_coincident(
    state: Any, gravity: Gravity, units: ComputeUnits, nearest: int, targets: np.ndarray | slice = slice(None)
) -> None:
    """Make the potential of bodies in the same place minus infinity, if there is no softening: the kernels take
    2^``nearest`` for their distance. ``state`` is anything with position, mass and potential."""
    if gravity.length2 or not units.potential:
        return
    least = float(state.mass[state.mass > 0].min(initial=np.inf)) * units.mass * units.potential
    if float(state.potential[targets].min()) > -0.5 * power_of_two(least, -nearest):
        return
    _, place = np.unique(state.position + 0.0, axis=0, return_inverse=True)  # + 0.0: -0 is 0
    massive = state.mass > 0
    others = np.bincount(place.ravel(), massive)[place.ravel()] - massive
    state.potential[targets] = np.where(others[targets] > 0, -np.inf, state.potential[targets])


def exponent(values: Any) -> int:
    """e with max |values| in [2^(e-1), 2^e); 0 if all values are zero or one is not finite."""
    largest = max(float(np.max(values)), -float(np.min(values)))
    return math.frexp(largest)[1] if 0 < largest < math.inf else 0


def power_of_two(number: float, power: int) -> float:
    """``number`` times 2 to the power ``power``; infinity beyond float64's range."""
    try:
        return math.ldexp(number, power)
    except OverflowError:
        return math.inf
