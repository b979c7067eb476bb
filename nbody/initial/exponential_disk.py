"""A disc galaxy: an exponential disc with Toomre's Q, in a bulge and a halo (Hernquist 1993)."""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field
from scipy.interpolate import CubicSpline
from scipy.special import i0e, i1e, k0e, k1e

from nbody.errors import InputError
from nbody.given import KeyProblem
from nbody.initial.combine import apportioned
from nbody.initial.eddington import Sphere, hernquist, sphere, tapering
from nbody.initial.generator import Generator, at_rest
from nbody.initial.sampling import on_circle, on_sphere
from nbody.initial.softened_forces import levels, rotation_of_thick_disc, softened_mass, vertical_pull
from nbody.law import LAWS, Gravity
from nbody.particles import Particles
from nbody.scenario.values import Finite, Group, Length, Mass, NotNegative, Positive

Array = np.ndarray

HOT = 0.5
"""The largest σ_R in units of the circular velocity: in the middle of a heavy disc, a constant Q would ask for more."""

BodyFraction = Annotated[Finite, Field(gt=0, lt=1)]
Height = Annotated[Positive, Field(le=1)]
ToomreQ = Annotated[NotNegative, Field(le=10)]

Lengths = Callable[[str, str], float]
"""The softening length between bodies of two components: ``disc``, ``bulge``, ``halo``."""


@cache
def _tapered_mass(taper: float) -> CubicSpline:
    """The fraction of the mass within r, of ln r."""
    model = sphere(lambda r: hernquist(r, tapering(r, taper)), innermost=1e-6, outermost=8 * taper)
    return CubicSpline(np.log(model.radius), model.mass)


class Spheroid(Group):
    """A Hernquist sphere around the disc's centre.

    Attributes:
        mass: the mass of the whole sphere; the bodies have the part of it within ``cut``.
        radius: its scale radius.
        share: its fraction of the bodies.
        cut: the largest distance of a body, in scale radii.
        taper: multiplies the density by exp(−(r/taper)²), in scale radii: a halo that ends near its disc without an edge,
            and so in equilibrium. ``mass`` is then the mass of this sphere.
    """

    mass: Mass
    radius: Length
    share: BodyFraction = 0.25
    cut: Positive = 30.0
    taper: Annotated[Positive, Field(ge=0.5, le=1000)] | None = None

    def density(self, r: Array) -> Array:
        """The density at r in scale radii, up to a factor."""
        return hernquist(r) * (1.0 if self.taper is None else tapering(r, self.taper))

    def within(self, r: Array) -> Array:
        """The mass within r."""
        if self.taper is None:
            return self.mass * (r / (r + self.radius)) ** 2
        inside = _tapered_mass(self.taper)
        return self.mass * inside(np.clip(np.log(np.maximum(r, 1e-300) / self.radius), inside.x[0], inside.x[-1]))

    @property
    def mass_made(self) -> float:
        """Of all bodies."""
        if self.taper is None:
            return self.mass * (self.cut / (1 + self.cut)) ** 2
        return float(self.within(np.array(self.cut * self.radius)))


def rotation_of_disc(x: Array) -> Array:
    """v_c²(R) of a thin exponential disc with G = M = R_d = 1, x = R: 2y²(I₀K₀ − I₁K₁) at y = x/2 (Freeman 1970). The
    largest v_c is 0.62213, at 2.150."""
    y = x / 2
    return 2 * y * y * (i0e(y) * k0e(y) - i1e(y) * k1e(y))


class RotationCurve(NamedTuple):
    """What holds a disc up, on a grid of radii: circular velocity, Ω and κ, radial dispersion, mean rotation."""

    radius: Array
    circular: Array
    omega: Array
    kappa: Array
    sigma: Array
    mean: Array


class ExponentialDisk(Generator):
    """A stellar disc Σ ∝ exp(−R/R_d) with the vertical profile sech²(z/z₀), and perhaps a bulge and a halo. The centre of
    all is the origin, and their momentum is zero.

    The radial dispersion is that of a constant Q = σ_R κ/(3.36 G Σ), at most half of v_c; σ_φ = σ_R κ/2Ω (epicycles);
    σ_z² = π G Σ z₀; the mean rotation follows from Jeans' equation (asymmetric drift),
    v̄² = v_c² + σ_R² (1 − κ²/4Ω² + d ln(Σσ_R²)/d ln R). Velocities are normal, without tails beyond 3σ. Bulge and halo are
    isotropic Hernquist spheres in the potential of everything, the disc's mass taken as a sphere's.

    All this is for Newton's force and a razor-thin disc. With ``equilibrium: softened`` the forces are those of the
    scenario's softening and of the disc's height, and σ_z² = <z K_z> contains the attraction of bulge and halo: the disc
    then neither expands nor becomes thicker when the run begins.

    Attributes:
        mass: of the disc.
        radius: R_d.
        height: z₀ in units of R_d.
        Q: Toomre's Q of the disc: below 1 it falls into rings, between 1 and 1.5 it grows spiral arms.
        cut: the disc's edge in units of R_d.
        bulge, halo: spheres around it.
        equilibrium: ``thin`` or ``softened``.
    """

    dimensions: ClassVar[tuple[int, ...]] = (3,)

    mass: Mass = 1.0
    radius: Length = 1.0
    height: Height = 0.1
    Q: ToomreQ = 1.2
    cut: Annotated[Positive, Field(ge=1, le=20)] = 7.0
    bulge: Spheroid | None = None
    halo: Spheroid | None = None
    equilibrium: Literal["thin", "softened"] = "thin"

    @property
    def _spheres(self) -> dict[str, Spheroid]:
        return {name: each for name, each in (("bulge", self.bulge), ("halo", self.halo)) if each}

    @property
    def total_mass(self) -> float:
        """Of the bodies of disc, bulge and halo."""
        return self.mass + sum(each.mass_made for each in (self.bulge, self.halo) if each)

    def count(self, asked: int | None) -> int:
        others = sum(each.share for each in (self.bulge, self.halo) if each)
        if others >= 1:
            raise InputError(f"bulge and halo have {others:g} of the bodies; their shares must leave some to the disc")
        return super().count(asked)

    def disc_mass(self, r: Array) -> Array:
        """The disc's mass within r."""
        x = np.minimum(r / self.radius, self.cut)
        return self.mass * (1 - (1 + x) * np.exp(-x)) / (1 - (1 + self.cut) * math.exp(-self.cut))

    def surface_density(self, R: Array) -> Array:
        """Σ(R)."""
        inside = 1 - (1 + self.cut) * math.exp(-self.cut)
        return self.mass / (2 * math.pi * self.radius**2 * inside) * np.exp(-R / self.radius)

    def lengths(self, gravity: Gravity) -> Lengths | None:
        """The softening lengths for which this galaxy is in equilibrium; None is Newton's force on a thin disc."""
        if self.equilibrium == "thin":
            return None
        if isinstance(gravity.length, tuple):
            raise InputError(
                "'equilibrium: softened' needs one softening length, or one per component, as in gravity: {length: {disc: "
                "0.1, halo: 0.3}}; write 'equilibrium: thin', or lengths of components"
            )
        given = gravity.length if isinstance(gravity.length, Mapping) else {}
        usual = math.sqrt(gravity.length2) if LAWS.load(gravity.softening).needs_length else 0.0
        return lambda one, other: max(given.get(one, usual), given.get(other, usual))

    def curve(self, G: float, lengths: Lengths | None = None) -> RotationCurve:
        """The rotation of the disc's stars; ``lengths`` as :meth:`lengths` returns them."""
        R = self.radius * np.geomspace(1e-3, 1.5 * self.cut, 2000)
        if lengths is None:
            v2 = G * self.mass / self.radius * rotation_of_disc(R / self.radius)
        else:
            softening = lengths("disc", "disc") / self.radius
            v2 = G * self.mass / self.radius * rotation_of_thick_disc(R / self.radius, self.height, softening)
        for name, each in self._spheres.items():
            v2 = v2 + G * softened_mass(R, each.within, lengths("disc", name) if lengths else 0.0) / R
        omega2 = v2 / R**2
        kappa2 = 4 * omega2 + np.gradient(omega2, np.log(R))
        kappa2 = np.maximum(kappa2, omega2)  # a disc's edge may dip below a Keplerian falloff
        density = self.surface_density(R)
        sigma = np.minimum(self.Q * 3.36 * G * density / np.sqrt(kappa2), HOT * np.sqrt(v2))
        support = 1 - kappa2 / (4 * omega2) + np.gradient(np.log(density * np.maximum(sigma, 1e-300) ** 2), np.log(R))
        mean = np.sqrt(np.maximum(v2 + sigma**2 * support, 0))
        return RotationCurve(R, np.sqrt(v2), np.sqrt(omega2), np.sqrt(kappa2), sigma, mean)

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        spheres, lengths = self._spheres, self.lengths(gravity)
        names = ["disc", *spheres]
        weights = [1 - sum(each.share for each in spheres.values()), *(each.share for each in spheres.values())]
        if count < len(weights):
            counts = [1] * count + [0] * (len(weights) - count)
        else:
            counts = apportioned([round(1e6 * weight) for weight in weights], count)
        parts = [self._disc(counts[0], gravity.G, lengths, rng)]
        parts += [self._sphere(name, n, gravity.G, lengths, rng) for name, n in zip(spheres, counts[1:], strict=True)]
        masses = [self.mass, *(each.mass_made for each in spheres.values())]
        mass = np.repeat([mass / max(n, 1) for n, mass in zip(counts, masses, strict=True)], counts)
        position, velocity = (np.concatenate(each) for each in zip(*parts, strict=True))
        species = np.repeat(range(len(names)), counts)
        return at_rest(Particles(mass, position, velocity, species=species, species_names=tuple(names)))

    def _disc(self, count: int, G: float, lengths: Lengths | None, rng: np.random.Generator) -> tuple[Array, Array]:
        grid = self.radius * np.linspace(0, self.cut, 4000)
        R = np.interp(rng.random(count), self.disc_mass(grid) / self.mass, grid)
        cosine, sine = on_circle(rng, count)
        u = rng.random(count)
        z0 = self.height * self.radius
        z = 0.5 * z0 * (np.log(np.maximum(u, 1e-12)) - np.log(np.maximum(1 - u, 1e-12)))  # tanh(z/z₀) = 2u − 1
        radius, _, *columns = self.curve(G, lengths)
        omega, kappa, sigma, mean = (np.interp(R, radius, each) for each in columns)
        normal = np.clip(rng.standard_normal((3, count)), -3, 3)
        along = sigma * normal[0]
        around = mean + sigma * kappa / (2 * omega) * normal[1]
        up = np.sqrt(self._vertical_dispersion2(R, G, lengths)) * normal[2]
        position = np.stack([R * cosine, R * sine, z], axis=1)
        velocity = np.stack([along * cosine - around * sine, along * sine + around * cosine, up], axis=1)
        return position, velocity

    def _vertical_dispersion2(self, R: Array, G: float, lengths: Lengths | None) -> Array:
        """σ_z² = <z K_z>: of the disc as a sheet, and of bulge and halo if they are to be counted."""
        z0 = self.height * self.radius
        if lengths is None:
            return math.pi * G * self.surface_density(R) * z0
        found = math.pi * G * self.surface_density(R) * vertical_pull(z0, lengths("disc", "disc"))
        z2 = (levels(z0) ** 2).mean()
        r = np.sqrt(R * R + z2)
        for name, each in self._spheres.items():
            found += z2 * G * softened_mass(r, each.within, lengths("disc", name)) / r**3
        return found

    def _model(self, name: str, lengths: Lengths | None) -> Sphere:
        """The bulge or the halo in the potential of everything, in its own units."""
        one = self._spheres[name]
        outermost = 1e5 if one.taper is None else 8 * one.taper
        within = {"disc": self.disc_mass} | {other: each.within for other, each in self._spheres.items()}
        if lengths is None:
            del within[name]
        pulls = [(mass, lengths(name, other) if lengths else 0.0) for other, mass in within.items()]

        def attraction(r: Array) -> Array:
            zero = np.zeros_like(r)
            return sum((softened_mass(r * one.radius, each, length) for each, length in pulls), zero) / one.mass

        if lengths is None:
            return sphere(one.density, outermost=outermost, others=attraction)
        return sphere(one.density, innermost=1e-3, outermost=outermost, attracting=attraction)

    def _sphere(
        self, name: str, count: int, G: float, lengths: Lengths | None, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        one = self._spheres[name]
        try:
            model = self._model(name, lengths)
        except ValueError as error:
            raise KeyProblem(name, str(error)) from None
        radius = model.radii(rng.random(count), one.cut)
        speed = math.sqrt(G * one.mass / one.radius) * model.speeds(radius, rng)
        return one.radius * radius[:, None] * on_sphere(rng, count), speed[:, None] * on_sphere(rng, count)
