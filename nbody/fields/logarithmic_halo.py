"""The logarithmic halo: Φ = ½ v² ln(core² + R² + z²/q²), R² = x² + y² (Binney & Tremaine 2008, eq. 2.71a)."""

import math
from typing import Annotated

from nbody.fields.field import Field
from nbody.scenario.fields import LengthOrZero, Positive, Quantity


class LogarithmicHalo(Field):
    """galpy's ``LogarithmicHaloPotential(amp=v², core=core, q=q)``: the circular velocity is v far outside the core. The
    potential is zero where the argument of the logarithm is 1, in the scenario's units.

    Attributes:
        v: the circular velocity far out.
        core: the core radius.
        q: the axis ratio z/R of the potential's surfaces; 1 for a sphere.
    """

    v: Annotated[Positive, Quantity("velocity")]
    core: LengthOrZero = 0.0
    q: Positive = 1.0

    def parameters(self, G: float) -> tuple[float, ...]:
        return self.v * self.v, self.core, 1 / (self.q * self.q)

    def size(self) -> float:
        return self.core

    @staticmethod
    def evaluate(x, y, z, t, p):
        s = p[1] * p[1] + x * x + y * y + z * z * p[2]
        f = -p[0] / s
        return f * x, f * y, f * z * p[2], 0.5 * p[0] * math.log(s)
