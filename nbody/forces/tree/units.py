"""The kernel's units: powers of two near the sizes of the bodies, so that float32 neither overflows nor rounds them."""

import math
from typing import NamedTuple

from nbody.forces.direct.cpu_tiles import Units as Factors

NEAREST = {"float32": -42, "float64": -60}
"""Bodies closer than 2 to this power, in the kernel's unit of length, count as coincident; see the ``cpu`` engine."""

UNIT = 4
"""The bulk of the bodies is in a ball of 2 to this power kernel units, nearly."""


class Units(NamedTuple):
    """Powers of two that are the kernel's units, and factors from its sums to the caller's."""

    length: int
    mass: int
    acceleration: float
    potential: float

    @property
    def factors(self) -> Factors:
        """The units as factors of the ``cpu`` engine."""
        return Factors(2.0**-self.length, 2.0**-self.mass, self.acceleration, self.potential)


def units_for(bulk: float, largest: float, G: float) -> Units:
    """The units for bodies of which most are in a ball of radius ``bulk``, with masses up to ``largest``."""
    length = (math.frexp(bulk)[1] if 0 < bulk < math.inf else 0) - UNIT
    mass = math.frexp(largest)[1] if 0 < largest < math.inf else 0
    return Units(length, mass, _ldexp(G, mass - 2 * length), _ldexp(G, mass - length))


def _ldexp(number: float, power: int) -> float:
    try:
        return math.ldexp(number, power)
    except OverflowError:
        return math.inf
