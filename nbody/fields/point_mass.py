"""A fixed point mass: Φ = -G M/r."""

import math

from nbody.fields.field import Field
from nbody.scenario.fields import Mass


class PointMass(Field):
    """Kepler's potential; galpy's ``KeplerPotential(amp=G M)``. Infinite at its centre.

    Attributes:
        mass: M.
    """

    mass: Mass

    def parameters(self, G: float) -> tuple[float, ...]:
        return (G * self.mass,)

    def size(self) -> float:
        return 0.0

    @staticmethod
    def evaluate(x, y, z, t, p):
        u = 1.0 / math.sqrt(x * x + y * y + z * z)
        f = -p[0] * u * u * u
        return f * x, f * y, f * z, -p[0] * u
