"""Two disc galaxies on an orbit towards each other (Toomre & Toomre 1972; Barnes 1988)."""

import math
from functools import cached_property
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator, model_validator

from nbody.given import KeyProblem
from nbody.initial.combine import apportioned, joined, placed
from nbody.initial.exponential_disk import ExponentialDisk, Height, Spheroid, ToomreQ
from nbody.initial.generator import Generator, centred
from nbody.initial.orbit import on_orbit
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.bodies import Placed, Rotation
from nbody.scenario.values import Degrees, Length, Mass, NotNegative, Positive, a_list

Pair = Annotated[tuple[Degrees, Degrees], BeforeValidator(a_list("a list of two angles, one per galaxy"))]


class GalaxyCollision(Generator):
    """Two galaxies like ``exponential_disk``, whose centres of mass are on the Kepler orbit of two points with their masses,
    in the plane z = 0, with the pericentre on the positive x axis (of the second galaxy relative to the first).

    Attributes:
        pericentre: the smallest distance of that orbit.
        eccentricity: 1 is a parabola.
        separation: the distance at the start.
        mass_ratio: the second galaxy's masses in units of the first's; its lengths are scaled by the root of this ratio, so
            that its surface density is the same.
        inclinations: i of the two discs to the orbit's plane; below 90 a disc turns as the orbit does (direct), above it
            against it (retrograde).
        arguments: ω, in the orbit's plane from a disc's node to the pericentre.
        mass, radius, height, Q, bulge, halo: those of the first galaxy, as for ``exponential_disk``.
    """

    dimensions: ClassVar[tuple[int, ...]] = (3,)

    pericentre: Length = 2.0
    eccentricity: NotNegative = 1.0
    separation: Length = 15.0
    mass_ratio: Positive = 1.0
    inclinations: Pair = (0.0, 60.0)
    arguments: Pair = (0.0, -30.0)
    mass: Mass = 1.0
    radius: Length = 1.0
    height: Height = 0.1
    Q: ToomreQ = 1.5
    bulge: Spheroid | None = None
    halo: Spheroid | None = Spheroid(mass=4.0, radius=3.0, share=0.4, cut=10.0)

    @model_validator(mode="after")
    def _on_the_orbit(self) -> Self:
        if self.separation < self.pericentre:
            message = f"must be at least the pericentre ({self.pericentre:g}), got {self.separation:g}"
            raise KeyProblem("separation", message)
        if self.eccentricity < 1:
            apocentre = self.pericentre * (1 + self.eccentricity) / (1 - self.eccentricity)
            if self.separation > apocentre:
                message = f"must be at most the apocentre ({apocentre:g}), got {self.separation:g}"
                raise KeyProblem("separation", message)
        return self

    @cached_property
    def galaxies(self) -> tuple[ExponentialDisk, ExponentialDisk]:
        """Both, each about its own centre."""

        def scaled(one: Spheroid | None, m: float, r: float) -> Spheroid | None:
            return one and one.model_copy(update={"mass": m * one.mass, "radius": r * one.radius})

        made = []
        for m in (1.0, self.mass_ratio):
            r = math.sqrt(m)
            galaxy = ExponentialDisk.model_construct(  # of checked values; a product that overflows is found in the bodies
                mass=m * self.mass, radius=r * self.radius, height=self.height, Q=self.Q,
                bulge=scaled(self.bulge, m, r), halo=scaled(self.halo, m, r),
            )  # fmt: skip
            made.append(galaxy)
        return made[0], made[1]

    def orbit(self, G: float) -> tuple[np.ndarray, np.ndarray]:
        """Position and velocity (3,) of the second galaxy relative to the first at the start, before the pericentre."""
        total = sum(galaxy.total_mass for galaxy in self.galaxies)
        e, p = self.eccentricity, self.pericentre * (1 + self.eccentricity)
        cosine = 1.0 if e == 0 else (p / self.separation - 1) / e
        return on_orbit(G * total, self.pericentre, e, -math.acos(min(1.0, max(-1.0, cosine))))

    def count(self, asked: int | None) -> int:
        self.galaxies[0].count(asked)
        return super().count(asked)

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        galaxies = self.galaxies
        counts = [1, 0] if count == 1 else apportioned([10**6, max(1, round(10**6 * self.mass_ratio))], count)
        x, v = self.orbit(gravity.G)
        total = sum(galaxy.total_mass for galaxy in galaxies)
        parts = []
        for k, (galaxy, n) in enumerate(zip(galaxies, counts, strict=True)):
            if n:
                # The first moves against the second, so that the centre of mass stays.
                weight = (galaxies[1].total_mass if k == 0 else -galaxies[0].total_mass) / -total
                spin = Rotation(inclination=self.inclinations[k], node=-self.arguments[k])
                put = Placed(offset=tuple(weight * x), velocity=tuple(weight * v), rotate=spin)
                parts.append(placed(centred(galaxy.generate(n, gravity, rng)), put, str))
        names = ("first", "second")[: len(parts)]
        return centred(joined(parts, names, [True] * len(parts), [""] * len(parts)))
