"""A disc galaxy: an exponential disc with Toomre's Q, in a bulge and a halo (Hernquist 1993)."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field
from scipy.special import i0e, i1e, k0e, k1e

from nbody.errors import InputError
from nbody.initial.combine import shares
from nbody.initial.eddington import sphere
from nbody.initial.generator import Generator, centred
from nbody.initial.sampling import on_circle, on_sphere
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.fields import Finite, Group, Length, Mass, NotNegative, Positive

Array = np.ndarray

HOT = 0.5
"""The largest σ_R in units of the circular velocity: in the middle of a heavy disc, a constant Q would ask for more."""

Share = Annotated[Finite, Field(gt=0, lt=1)]


class Spheroid(Group):
    """A Hernquist sphere around the disc's centre.

    Attributes:
        mass: the mass of the whole sphere; the bodies have the part of it within ``cut``.
        radius: its scale radius.
        share: its share of the bodies.
        cut: the largest distance of a body, in scale radii.
    """

    mass: Mass
    radius: Length
    share: Share = 0.25
    cut: Positive = 30.0

    def within(self, r: Array) -> Array:
        """The mass within r."""
        return self.mass * (r / (r + self.radius)) ** 2

    @property
    def mass_made(self) -> float:
        """Of all bodies."""
        return self.mass * (self.cut / (1 + self.cut)) ** 2


def rotation_of_disc(x: Array) -> Array:
    """v_c²(R) of a thin exponential disc with G = M = R_d = 1, x = R: 2y²(I₀K₀ − I₁K₁) at y = x/2 (Freeman 1970). The
    largest v_c is 0.62213, at 2.150."""
    y = x / 2
    return 2 * y * y * (i0e(y) * k0e(y) - i1e(y) * k1e(y))


@dataclass(frozen=True)
class RotationCurve:
    """What holds a disc up, on a grid of radii: circular velocity, Ω and κ, radial dispersion, mean rotation."""

    radius: Array
    circular: Array
    omega: Array
    kappa: Array
    sigma: Array
    mean: Array


class ExponentialDisk(Generator):
    """A stellar disc Σ ∝ exp(−R/R_d) with the vertical profile sech²(z/z₀), and perhaps a bulge and a halo.

    The radial dispersion is that of a constant Q = σ_R κ/(3.36 G Σ), at most half of v_c; σ_φ = σ_R κ/2Ω (epicycles);
    σ_z² = π G Σ z₀; the mean rotation follows from Jeans' equation (asymmetric drift),
    v̄² = v_c² + σ_R² (1 − κ²/4Ω² + d ln(Σσ_R²)/d ln R). Velocities are normal, without tails beyond 3σ. Bulge and halo are
    isotropic Hernquist spheres in the potential of everything, the disc's mass taken as a sphere's.

    Attributes:
        mass: of the disc.
        radius: R_d.
        height: z₀ in units of R_d.
        Q: Toomre's Q of the disc: below 1 it falls into rings, between 1 and 1.5 it grows spiral arms.
        cut: the disc's edge in units of R_d.
        bulge, halo: spheres around it.
    """

    dimensions: ClassVar[tuple[int, ...]] = (3,)

    mass: Mass = 1.0
    radius: Length = 1.0
    height: Annotated[Positive, Field(le=1)] = 0.1
    Q: Annotated[NotNegative, Field(le=10)] = 1.2
    cut: Annotated[Positive, Field(ge=1, le=20)] = 7.0
    bulge: Spheroid | None = None
    halo: Spheroid | None = None

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

    def curve(self, G: float) -> RotationCurve:
        """The rotation of the disc's stars."""
        R = self.radius * np.geomspace(1e-3, 1.5 * self.cut, 2000)
        v2 = G * self.mass / self.radius * rotation_of_disc(R / self.radius)
        for each in (self.bulge, self.halo):
            if each:
                v2 = v2 + G * each.within(R) / R
        omega2 = v2 / R**2
        kappa2 = 4 * omega2 + np.gradient(omega2, np.log(R))
        kappa2 = np.maximum(kappa2, omega2)  # a disc's edge may dip below a Keplerian falloff
        density = self.surface_density(R)
        sigma = np.minimum(self.Q * 3.36 * G * density / np.sqrt(kappa2), HOT * np.sqrt(v2))
        support = 1 - kappa2 / (4 * omega2) + np.gradient(np.log(density * np.maximum(sigma, 1e-300) ** 2), np.log(R))
        mean = np.sqrt(np.maximum(v2 + sigma**2 * support, 0))
        return RotationCurve(R, np.sqrt(v2), np.sqrt(omega2), np.sqrt(kappa2), sigma, mean)

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        spheres = [each for each in (self.bulge, self.halo) if each]
        names = ["disc", *(name for name in ("bulge", "halo") if getattr(self, name))]
        weights = [1 - sum(each.share for each in spheres), *(each.share for each in spheres)]
        counts = self._counts(count, weights)
        parts = [self._disc(counts[0], gravity.G, rng)]
        parts += [self._sphere(each, n, gravity.G, rng) for each, n in zip(spheres, counts[1:], strict=True)]
        masses = [self.mass, *(each.mass_made for each in spheres)]
        return centred(
            Particles(
                np.concatenate([np.full(n, mass / max(n, 1)) for n, mass in zip(counts, masses, strict=True)]),
                np.concatenate([x for x, _ in parts]),
                np.concatenate([v for _, v in parts]),
                species=np.repeat(range(len(names)), counts),
                species_names=tuple(names),
            )
        )

    @staticmethod
    def _counts(count: int, weights: list[float]) -> list[int]:
        if count < len(weights):
            return [1] * count + [0] * (len(weights) - count)
        return shares([round(1e6 * weight) for weight in weights], count)

    def _disc(self, count: int, G: float, rng: np.random.Generator) -> tuple[Array, Array]:
        grid = self.radius * np.linspace(0, self.cut, 4000)
        R = np.interp(rng.random(count), self.disc_mass(grid) / self.mass, grid)
        cosine, sine = on_circle(rng, count)
        u = rng.random(count)
        z0 = self.height * self.radius
        z = 0.5 * z0 * (np.log(np.maximum(u, 1e-12)) - np.log(np.maximum(1 - u, 1e-12)))  # tanh(z/z₀) = 2u − 1
        curve = self.curve(G)
        sigma, mean, omega, kappa = (
            np.interp(R, curve.radius, each) for each in (curve.sigma, curve.mean, curve.omega, curve.kappa)
        )
        normal = np.clip(rng.standard_normal((3, count)), -3, 3)
        along = sigma * normal[0]
        around = mean + sigma * kappa / (2 * omega) * normal[1]
        up = np.sqrt(math.pi * G * self.surface_density(R) * z0) * normal[2]
        position = np.stack([R * cosine, R * sine, z], axis=1)
        velocity = np.stack([along * cosine - around * sine, along * sine + around * cosine, up], axis=1)
        return position, velocity

    def _sphere(self, one: Spheroid, count: int, G: float, rng: np.random.Generator) -> tuple[Array, Array]:
        others = [each for each in (self.bulge, self.halo) if each and each is not one]

        def outside(r: Array) -> Array:
            mass = self.disc_mass(r * one.radius) + sum(each.within(r * one.radius) for each in others)
            return mass / one.mass

        model = sphere(lambda r: 1 / (r * (1 + r) ** 3), others=outside)
        radius = model.radii(rng.random(count), one.cut)
        speed = math.sqrt(G * one.mass / one.radius) * model.speeds(radius, rng)
        return one.radius * radius[:, None] * on_sphere(rng, count), speed[:, None] * on_sphere(rng, count)
