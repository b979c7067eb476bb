"""The disc of Miyamoto & Nagai (1975): Φ = -G M/√(R² + (a + √(z² + b²))²) (Binney & Tremaine 2008, eq. 2.69a)."""

import math

from nbody.fields.field import Field
from nbody.scenario.fields import Length, LengthOrZero, Mass


class MiyamotoNagai(Field):
    """galpy's ``MiyamotoNagaiPotential(amp=G M, a=a, b=b)``.

    Attributes:
        mass: M.
        a: the scale length of the disc; 0 makes it Plummer's sphere.
        b: the scale height.
    """

    mass: Mass
    a: LengthOrZero
    b: Length

    def parameters(self, G: float) -> tuple[float, ...]:
        return G * self.mass, self.a, self.b

    def size(self) -> float:
        return self.b

    @staticmethod
    def evaluate(x, y, z, t, p):
        height = math.sqrt(z * z + p[2] * p[2])
        s = p[1] + height
        u = 1.0 / math.sqrt(x * x + y * y + s * s)
        f = -p[0] * u * u * u
        return f * x, f * y, f * z * s / height, -p[0] * u
