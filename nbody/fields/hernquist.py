"""Hernquist's sphere: Φ = -G M/(r + a) (Hernquist 1990; Binney & Tremaine 2008, eq. 2.67)."""

import math

from nbody.fields.field import Field
from nbody.scenario.fields import Length, Mass


class Hernquist(Field):
    """galpy's ``HernquistPotential(amp=2 G M, a=a)``. The acceleration has the same size G M/a² all around the centre, and
    is taken for zero in it.

    Attributes:
        mass: M.
        a: the scale length.
    """

    mass: Mass
    a: Length

    def parameters(self, G: float) -> tuple[float, ...]:
        return G * self.mass, self.a

    def size(self) -> float:
        return self.a

    @staticmethod
    def evaluate(x, y, z, t, p):
        r = math.sqrt(x * x + y * y + z * z)
        u = 1.0 / (r + p[1])
        f = -p[0] * u * u / max(r, 1e-150)
        return f * x, f * y, f * z, -p[0] * u
