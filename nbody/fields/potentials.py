"""The potentials: each class has its parameters and one function. M is the mass; BT is Binney & Tremaine (2008)."""

import math
from typing import Annotated, ClassVar

from nbody.fields.field import Field
from nbody.scenario.values import Degrees, Finite, Length, LengthOrZero, Mass, Positive, with_unit


class PointMass(Field):
    """A fixed point mass, Φ = -G M/r; galpy's ``KeplerPotential(amp=G M)``. Infinite at its centre.

    Attributes:
        mass: M.
    """

    mass: Mass

    def size(self) -> float:
        return 0.0

    @staticmethod
    def evaluate(x, y, z, t, p):
        u = 1.0 / math.sqrt(x * x + y * y + z * z)
        f = -p[0] * u * u * u
        return f * x, f * y, f * z, -p[0] * u


class Plummer(Field):
    """Plummer's sphere (1911): Φ = -G M/√(r² + b²) (BT eq. 2.44a); galpy's ``PlummerPotential(amp=G M, b=b)``.

    Attributes:
        mass: M.
        b: the scale length.
    """

    mass: Mass
    b: Length

    def size(self) -> float:
        return self.b

    @staticmethod
    def evaluate(x, y, z, t, p):
        u = 1.0 / math.sqrt(x * x + y * y + z * z + p[1] * p[1])
        f = -p[0] * u * u * u
        return f * x, f * y, f * z, -p[0] * u


class Hernquist(Field):
    """Hernquist's sphere (1990): Φ = -G M/(r + a) (BT eq. 2.67); galpy's ``HernquistPotential(amp=2 G M, a=a)``. The
    acceleration has the same size G M/a² all around the centre, and is taken for zero in it.

    Attributes:
        mass: M.
        a: the scale length.
    """

    mass: Mass
    a: Length

    def size(self) -> float:
        return self.a

    @staticmethod
    def evaluate(x, y, z, t, p):
        r = math.sqrt(x * x + y * y + z * z)
        u = 1.0 / (r + p[1])
        f = -p[0] * u * u / max(r, 1e-150)
        return f * x, f * y, f * z, -p[0] * u


class NFW(Field):
    """The halo of Navarro, Frenk & White (1996): Φ = -G M ln(1 + r/a)/r (BT eq. 2.67); galpy's
    ``NFWPotential(amp=G M, a=a)``. The mass within r is M (ln(1 + x) - x/(1 + x)), x = r/a, and the whole mass is infinite.

    Attributes:
        mass: M = 4π ρ₀ a³, the mass within 5.3 a.
        a: the scale length.
    """

    mass: Mass
    a: Length

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


class LogarithmicHalo(Field):
    """Φ = ½ v² ln(core² + R² + z²/q²), R² = x² + y² (BT eq. 2.71a); galpy's
    ``LogarithmicHaloPotential(amp=v², core=core, q=q)``. The potential is zero where the argument of the logarithm is 1, in
    the scenario's units.

    Attributes:
        v: the circular velocity far outside the core.
        core: the core radius.
        q: the axis ratio z/R of equipotentials.
    """

    v: Annotated[Positive, with_unit("velocity")]
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


class MiyamotoNagai(Field):
    """The disc of Miyamoto & Nagai (1975): Φ = -G M/√(R² + (a + √(z² + b²))²) (BT eq. 2.69a); galpy's
    ``MiyamotoNagaiPotential(amp=G M, a=a, b=b)``.

    Attributes:
        mass: M.
        a: the scale length; 0 makes it Plummer's sphere.
        b: the scale height.
    """

    mass: Mass
    a: LengthOrZero
    b: Length

    def size(self) -> float:
        return self.b

    @staticmethod
    def evaluate(x, y, z, t, p):
        height = math.sqrt(z * z + p[2] * p[2])
        s = p[1] + height
        u = 1.0 / math.sqrt(x * x + y * y + s * s)
        f = -p[0] * u * u * u
        return f * x, f * y, f * z * s / height, -p[0] * u


class RotatingBar(Field):
    """A bar that turns: a needle of mass, softened (Long & Murali 1992, ApJ 397, 44), in a form whose terms do not cancel:

        Φ = -G M/(2a) ln((S + 2a)/(S - 2a)),  S = T₊ + T₋,  T± = √((x ± a)² + y² + (b + √(z² + c²))²)

    with x along the bar; galpy's ``SoftenedNeedleBarPotential(amp=G M, a=a, b=b, c=c, pa=angle, omegab=omega)``, with the
    angle in radians. Energy is not conserved in it; E - omega L_z is (Jacobi's integral).

    Attributes:
        mass: M.
        a: half the length of the bar.
        b: its width in the plane.
        c: its thickness.
        angle: the angle of its long axis with the x axis at time 0.
        omega: its pattern speed, positive for anticlockwise, in radians per time.
    """

    time_dependent: ClassVar[bool] = True

    mass: Mass
    a: Length
    b: LengthOrZero = 0.0
    c: Length
    angle: Degrees = 0.0
    omega: Annotated[Finite, with_unit("frequency")] = 0.0

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


class MilkyWay(Field, validate_default=True):
    """Nucleus and bulge (:class:`Hernquist`), disc (:class:`MiyamotoNagai`, in the plane z = 0) and halo (:class:`NFW`),
    fitted to measured masses and velocities (Price-Whelan 2017, the first version of ``MilkyWayPotential`` in gala; after
    Bovy 2015). The circular velocity is 231 km/s at 8 kpc. The default values have units, so the scenario needs units, or
    must give every value.

    Attributes:
        nucleus_mass, bulge_mass, disk_mass, halo_mass: the masses of the parts.
        nucleus_a, bulge_a, disk_a, halo_a: their scale lengths.
        disk_b: the scale height of the disc.
    """

    nucleus_mass: Mass = "1.71e9 Msun"  # type: ignore[assignment]
    nucleus_a: Length = "0.07 kpc"  # type: ignore[assignment]
    bulge_mass: Mass = "5e9 Msun"  # type: ignore[assignment]
    bulge_a: Length = "1 kpc"  # type: ignore[assignment]
    disk_mass: Mass = "6.8e10 Msun"  # type: ignore[assignment]
    disk_a: Length = "3 kpc"  # type: ignore[assignment]
    disk_b: Length = "0.28 kpc"  # type: ignore[assignment]
    halo_mass: Mass = "5.4e11 Msun"  # type: ignore[assignment]
    halo_a: Length = "15.62 kpc"  # type: ignore[assignment]

    def parts(self) -> list[Field]:
        return [
            Hernquist(mass=self.nucleus_mass, a=self.nucleus_a, centre=self.centre),
            Hernquist(mass=self.bulge_mass, a=self.bulge_a, centre=self.centre),
            MiyamotoNagai(mass=self.disk_mass, a=self.disk_a, b=self.disk_b, centre=self.centre),
            NFW(mass=self.halo_mass, a=self.halo_a, centre=self.centre),
        ]
