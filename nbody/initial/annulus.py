"""Discs of small bodies: planetesimals around a star, rings around a planet."""

import math
from typing import Annotated, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from nbody.initial.combine import concatenated
from nbody.initial.generator import Generator, centred
from nbody.initial.orbit import on_orbit, true_anomaly
from nbody.initial.planets import Body, placed_bodies, radii_of
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.values import Degrees, Finite, KeyProblem, Length, Mass, MassOrZero, NotNegative, a_list

Array = np.ndarray


class Annulus(Generator):
    """What the discs of small bodies have in common: they circle one large body, between two radii.

    Attributes:
        centre: the mass of the large body, the first one.
        mass: of all small bodies together; 0 for test particles.
        inner, outer: the smallest and largest semi-major axis.
        slope: the surface density is ∝ r^slope.
        eccentricity, inclination: root mean squares; each e and i has Rayleigh's distribution.
        bodies: planets or moons about the same centre, as in the generator ``planets`` but without the first body.
    """

    centre: Mass = 1.0
    mass: MassOrZero = 1e-5
    inner: Length = 0.5
    outer: Length = 1.5
    slope: Finite = -1.0
    eccentricity: Annotated[NotNegative, Field(le=0.3)] = 0.01
    inclination: Annotated[Degrees, Field(ge=0, le=30)] = 0.3
    bodies: Annotated[tuple[Body, ...], BeforeValidator(a_list("a list of bodies, as in [{m: 1e-3, a: 1}]"))] = ()

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.inner < self.outer:
            raise KeyProblem("outer", f"must be greater than inner ({self.inner:g}), got {self.outer:g}")
        return self

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        large = (Body(m=self.centre), *self.bodies)[:count]
        mass, x, v = placed_bodies(large, gravity.G, gravity.dimensions, first=-1)
        n, small = gravity.dimensions, count - len(large)
        position, velocity = self._small(small, gravity, rng)
        parts = [
            Particles(mass, x[:, :n], v[:, :n], radius=radii_of(large)),
            Particles(np.full(small, self.mass / max(small, 1)), position[:, :n], velocity[:, :n]),
        ]
        names = ("centre", "bodies", "disc") if len(large) > 1 else ("centre", "disc")
        species = [np.arange(len(large)).clip(max=1), np.full(small, len(names) - 1)]
        return centred(concatenated(parts, species, names))

    def _small(self, count: int, gravity: Gravity, rng: np.random.Generator) -> tuple[Array, Array]:
        """Positions and velocities of the small bodies, relative to the large one."""
        p = self.slope + 2
        u = rng.random(count)
        if abs(p) < 1e-9:
            a = self.inner * (self.outer / self.inner) ** u
        else:
            a = (self.inner**p + u * (self.outer**p - self.inner**p)) ** (1 / p)
        size = np.sqrt(-np.log1p(-rng.random((2, count))))  # Rayleigh's distribution with the mean square 1
        e, i = np.minimum(self.eccentricity * size[0], 0.99), math.radians(self.inclination) * size[1]
        mean, node, argument = 2 * math.pi * rng.random((3, count))
        if gravity.dimensions == 2:
            i = np.zeros(count)
        mu = gravity.G * (self.centre + self.mass / max(count, 1))
        return on_orbit(mu, a * (1 - e), e, true_anomaly(mean, e), i, node, argument)


class Planetesimals(Annulus):
    """A disc of planetesimals around a star, on Keplerian ellipses."""


class Ring(Annulus):
    """A thin ring around a planet, like Saturn's: from 1.24 to 2.27 planetary radii (rings C, B and A), nearly circular and
    flat."""

    mass: MassOrZero = 1e-6
    inner: Length = 1.24
    outer: Length = 2.27
    slope: Finite = 0.0
    eccentricity: Annotated[NotNegative, Field(le=0.3)] = 1e-4
    inclination: Annotated[Degrees, Field(ge=0, le=30)] = 0.003
