"""A bar that turns: a needle of mass, softened (Long & Murali 1992, ApJ 397, 44).

    Φ = -G M/(2a) ln((S + 2a)/(S - 2a)),  S = T₊ + T₋,  T± = √((x ± a)² + y² + (b + √(z² + c²))²)

with x along the bar. This is the paper's formula, in a form whose terms do not cancel.
"""

import math
from typing import Annotated, ClassVar

from nbody.fields.field import Field
from nbody.scenario.fields import Finite, Length, LengthOrZero, Mass, Quantity


class RotatingBar(Field):
    """galpy's ``SoftenedNeedleBarPotential(amp=G M, a=a, b=b, c=c, pa=angle, omegab=omega)``, the angle in radians there.
    Energy is not conserved in a bar that turns; E - omega L_z is (Jacobi's integral).

    Attributes:
        mass: M.
        a: half the length of the bar.
        b: its width in the plane.
        c: its thickness.
        angle: the angle of its long axis with the x axis at time 0, in degrees.
        omega: its pattern speed, positive for anticlockwise, in radians per time.
    """

    time_dependent: ClassVar[bool] = True

    mass: Mass
    a: Length
    b: LengthOrZero = 0.0
    c: Length
    angle: Finite = 0.0
    omega: Annotated[Finite, Quantity("frequency")] = 0.0

    def parameters(self, G: float) -> tuple[float, ...]:
        return G * self.mass, self.a, self.b, self.c, math.radians(self.angle), self.omega

    def size(self) -> float:
        return min(self.a, self.c)

    @staticmethod
    def evaluate(x, y, z, t, p):
        a, turned = p[1], p[4] + p[5] * t
        cosine, sine = math.cos(turned), math.sin(turned)
        along, across = x * cosine + y * sine, y * cosine - x * sine
        height = math.sqrt(z * z + p[3] * p[3])
        s = p[2] + height
        rest = across * across + s * s
        front, back = math.sqrt((along - a) * (along - a) + rest), math.sqrt((along + a) * (along + a) + rest)
        total = front + back
        # total² - 4a², whose terms cancel on the bar: (front - back)² = (4 a along/total)²
        beyond = rest + along * along * (1.0 - 4.0 * a * a / (total * total))
        f = -p[0] / (2.0 * beyond)
        inverses = 1.0 / front + 1.0 / back
        f_along = f * ((along - a) / front + (along + a) / back)
        f_across, fz = f * across * inverses, f * z * s / height * inverses
        phi = -p[0] / (2.0 * a) * math.log1p(4.0 * a * (total + 2.0 * a) / (4.0 * beyond))
        return f_along * cosine - f_across * sine, f_along * sine + f_across * cosine, fz, phi
