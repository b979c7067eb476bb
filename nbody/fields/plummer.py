"""Plummer's sphere: Φ = -G M/√(r² + b²) (Plummer 1911; Binney & Tremaine 2008, eq. 2.44a)."""

import math

from nbody.fields.field import Field
from nbody.scenario.fields import Length, Mass


class Plummer(Field):
    """galpy's ``PlummerPotential(amp=G M, b=b)``.

    Attributes:
        mass: M.
        b: the scale length.
    """

    mass: Mass
    b: Length

    def parameters(self, G: float) -> tuple[float, ...]:
        return G * self.mass, self.b

    def size(self) -> float:
        return self.b

    @staticmethod
    def evaluate(x, y, z, t, p):
        u = 1.0 / math.sqrt(x * x + y * y + z * z + p[1] * p[1])
        f = -p[0] * u * u * u
        return f * x, f * y, f * z, -p[0] * u
