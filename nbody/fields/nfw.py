"""The halo of Navarro, Frenk & White (1996): Φ = -G M ln(1 + r/a)/r (Binney & Tremaine 2008, eq. 2.67)."""

import math

from nbody.fields.field import Field
from nbody.scenario.fields import Length, Mass


class NFW(Field):
    """galpy's ``NFWPotential(amp=G M, a=a)``. The mass within r is M (ln(1 + x) - x/(1 + x)), x = r/a.
    The whole mass is infinite.

    Attributes:
        mass: M = 4π ρ₀ a³, the mass within 5.3 a.
        a: the scale radius.
    """

    mass: Mass
    a: Length

    def parameters(self, G: float) -> tuple[float, ...]:
        return G * self.mass, self.a

    def size(self) -> float:
        return self.a

    @staticmethod
    def evaluate(x, y, z, t, p):
        r = max(math.sqrt(x * x + y * y + z * z), 1e-150)
        s = r / p[1]
        log = math.log1p(s)
        if s < 0.02:  # the two terms nearly cancel: their difference is s²/2 - 2 s³/3 + 3 s⁴/4 - …
            inside = 0.0
            for k in range(11, 1, -1):
                inside = (k - 1.0) / k - s * inside
            inside *= s * s
        else:
            inside = log - s / (1.0 + s)
        f = -p[0] * (inside / r) / r / r
        return f * x, f * y, f * z, -p[0] * log / r
