"""Forces that planets, moons and dust need: of a body on others, as functions of their positions and velocities relative
to it. r, v: position and velocity relative to the body ``about``, of mass M; m: the mass of the body that is acted on."""

import math
from typing import Annotated, ClassVar

from nbody.fields.field import BodyField
from nbody.fields.light import LIGHT, SpeedOfLight
from nbody.scenario.values import Degrees, Finite, Length, Mass, NotNegative, Positive, TimeStep, with_unit

Frequency = Annotated[Finite, with_unit("frequency")]


class J2(BodyField):
    """The oblateness of a body, Φ = G M/r Σ J_n (R/r)^n P_n(sin δ) for n = 2 and 4, with the latitude δ above its equator
    (Murray & Dermott 1999, section 6.11). Orbits turn by dω/dt = 3 n J₂ (R/p)² (1 - 5/4 sin² i), their nodes by
    dΩ/dt = -3/2 n J₂ (R/p)² cos i. Momentum is conserved.

    Attributes:
        j2, j4: the moments.
        radius: the equatorial radius R to which they belong.
        pole: the direction of its axis, of any length; that of z by default.
    """

    reaction: ClassVar[bool] = True
    takes: ClassVar[str] = "x, y, z, M, p"

    j2: Finite
    j4: Finite = 0.0
    radius: Length
    pole: tuple[Finite, Finite, Finite] = (0.0, 0.0, 1.0)

    def parameters(self, G: float) -> tuple[float, ...]:
        length = math.hypot(*self.pole)
        return G, self.j2 * self.radius**2, self.j4 * self.radius**4, *(c / length for c in self.pole)

    @staticmethod
    def evaluate(x, y, z, M, p):
        u = 1.0 / math.sqrt(x * x + y * y + z * z)
        s = (x * p[3] + y * p[4] + z * p[5]) * u
        s2, u2 = s * s, u * u
        second, fourth = p[1] * u2, p[2] * u2 * u2
        legendre2, legendre4 = 1.5 * s2 - 0.5, (4.375 * s2 - 3.75) * s2 + 0.375
        slope = second * 3.0 * s + fourth * (17.5 * s2 - 7.5) * s  # Σ J_n (R/r)^n P_n'
        radial = 3.0 * second * legendre2 + 5.0 * fourth * legendre4 + s * slope
        f = p[0] * M * u2
        radial *= u
        phi = p[0] * M * u * (second * legendre2 + fourth * legendre4)
        return f * (radial * x - slope * p[3]), f * (radial * y - slope * p[4]), f * (radial * z - slope * p[5]), phi


class Tides(BodyField):
    """Tides that others raise on a body of radius R, with a constant time lag τ (Mignard 1979; Hut 1981, eq. 8):

        a = -3 k₂ G m R⁵/r⁸ { r + τ [2 (r·v) r/r² + v - Ω × r] },

    with the rotation Ω of the body, which is constant. Momentum is conserved. For tides raised by a star on its planet the
    planet is the body ``about``, and the star the one ``on``.

    Attributes:
        k2: the Love number of degree 2 of the body, for which Hut writes k.
        radius: R.
        tau: τ; with 0 the bulges follow at once, and energy is conserved.
        spin: Ω, in radians per time.
    """

    reaction: ClassVar[bool] = True
    takes: ClassVar[str] = "x, y, z, vx, vy, vz, m, p"

    k2: Positive
    radius: Length
    tau: Annotated[NotNegative, with_unit("time")] = 0.0
    spin: tuple[Frequency, Frequency, Frequency] = (0.0, 0.0, 0.0)

    @property
    def has_potential(self) -> bool:
        return self.tau == 0.0

    def parameters(self, G: float) -> tuple[float, ...]:
        return G * self.k2 * self.radius**5, self.tau, *self.spin

    @staticmethod
    def evaluate(x, y, z, vx, vy, vz, m, p):
        u2 = 1.0 / (x * x + y * y + z * z)
        along, u6 = 1.0 + 2.0 * p[1] * (x * vx + y * vy + z * vz) * u2, u2 * u2 * u2
        f = -3.0 * p[0] * m * u6 * u2
        wx, wy, wz = vx - (p[3] * z - p[4] * y), vy - (p[4] * x - p[2] * z), vz - (p[2] * y - p[3] * x)
        phi = -0.5 * p[0] * m * u6
        return f * (along * x + p[1] * wx), f * (along * y + p[1] * wy), f * (along * z + p[1] * wz), phi


class Migration(BodyField):
    """Migration and damping in a disc, after Papaloizou & Larwood (2000):

        a = -v/(2 τ_a) - 2 (r·v) r/(r² τ_e) - 2 v_z ẑ/τ_inc:

    a, e and the inclination to the plane z = 0 fall as exp(-t/τ), those of nearly circular orbits. Negative times let them
    grow. The body ``about`` gets no reaction: the disc takes the momentum.

    Attributes:
        tau_a, tau_e, tau_inc: the times; without one there is no such change.
    """

    takes: ClassVar[str] = "x, y, z, vx, vy, vz, p"

    tau_a: TimeStep | None = None
    tau_e: TimeStep | None = None
    tau_inc: TimeStep | None = None

    @property
    def has_potential(self) -> bool:
        return False

    def parameters(self, G: float) -> tuple[float, ...]:
        times = (self.tau_a, 0.5), (self.tau_e, 2.0), (self.tau_inc, 2.0)
        return tuple(factor / tau if tau else 0.0 for tau, factor in times)

    @staticmethod
    def evaluate(x, y, z, vx, vy, vz, p):
        f = -p[1] * (x * vx + y * vy + z * vz) / (x * x + y * y + z * z)
        return f * x - p[0] * vx, f * y - p[0] * vy, f * z - (p[0] + p[2]) * vz, 0.0


class Radiation(BodyField, validate_default=True):
    """Radiation pressure of a star and Poynting-Robertson drag on dust (Burns, Lamy & Soter 1979, eq. 5):

        a = β G M/r² [(1 - ṙ/c) r̂ - v/c].

    A grain moves as about a star of mass (1 - β) M, and from a circle of radius r falls into it in c r²/(4 β G M).

    Attributes:
        beta: the ratio β of radiation pressure to gravity.
        c: the speed of light. In a scenario with units it is known.
    """

    takes: ClassVar[str] = "x, y, z, vx, vy, vz, M, p"

    beta: NotNegative
    c: SpeedOfLight = LIGHT  # type: ignore[assignment]

    @property
    def has_potential(self) -> bool:
        return False

    def parameters(self, G: float) -> tuple[float, ...]:
        return self.beta * G, 1.0 / self.c

    @staticmethod
    def evaluate(x, y, z, vx, vy, vz, M, p):
        u = 1.0 / math.sqrt(x * x + y * y + z * z)
        f = p[0] * M * u * u
        radial = (1.0 - p[1] * (x * vx + y * vy + z * vz) * u) * u
        return f * (radial * x - p[1] * vx), f * (radial * y - p[1] * vy), f * (radial * z - p[1] * vz), 0.0


class Companion(BodyField):
    """The tide of a distant companion on a circular orbit about the body, for planets whose gravity it does not feel:

        a = G m [(d - r)/|d - r|³ - d/d³],

    so that a star and its planets need no wide orbit in the run: Kozai's cycles by a function (Kozai 1962; Lidov 1962).

    Attributes:
        mass: its mass m.
        distance: the radius d of its orbit.
        inc: the inclination of its orbit to the plane z = 0, in degrees.
        node: the longitude of the ascending node, in degrees.
        phase: its angle from the node at time 0, in degrees.
    """

    time_dependent: ClassVar[bool] = True
    takes: ClassVar[str] = "x, y, z, M, t, p"

    mass: Mass
    distance: Length
    inc: Degrees = 0.0
    node: Degrees = 0.0
    phase: Degrees = 0.0

    def parameters(self, G: float) -> tuple[float, ...]:
        return G, self.mass, self.distance, *map(math.radians, (self.inc, self.node, self.phase))

    @staticmethod
    def evaluate(x, y, z, M, t, p):
        d = p[2]
        angle = p[5] + t * math.sqrt(p[0] * (M + p[1]) / (d * d * d))
        along, across, up = (
            d * math.cos(angle),
            d * math.sin(angle) * math.cos(p[3]),
            d * math.sin(angle) * math.sin(p[3]),
        )
        dx, dy = along * math.cos(p[4]) - across * math.sin(p[4]), along * math.sin(p[4]) + across * math.cos(p[4])
        sx, sy, sz = dx - x, dy - y, up - z
        s = 1.0 / math.sqrt(sx * sx + sy * sy + sz * sz)
        f, g, h = p[0] * p[1], s * s * s, 1.0 / (d * d * d)
        phi = -f * (s - 1.0 / d - (x * dx + y * dy + z * up) * h)
        return f * (g * sx - h * dx), f * (g * sy - h * dy), f * (g * sz - h * up), phi


class GalacticTide(BodyField):
    """The Galaxy's tide on comets and wide orbits about a star in its plane (Heisler & Tremaine 1986): the part across the
    plane, a_z = -4π G ρ z.

    Attributes:
        density: the density ρ of the disc near the star; near the Sun some 0.1 solar masses per cubic parsec.
    """

    takes: ClassVar[str] = "z, p"

    density: Annotated[Positive, with_unit("density")]

    def parameters(self, G: float) -> tuple[float, ...]:
        return (4 * math.pi * G * self.density,)

    @staticmethod
    def evaluate(z, p):
        return 0.0, 0.0, -p[0] * z, 0.5 * p[0] * z * z
