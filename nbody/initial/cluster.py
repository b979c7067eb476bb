"""What the star clusters have in common: total mass, scale, mass function, segregation, binaries, exact energy."""

import math
from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from pydantic import model_validator

from nbody.initial.binaries import Binaries
from nbody.initial.energy import rescaled
from nbody.initial.generator import Generator, at_rest
from nbody.initial.masses import Fraction, Masses, segregated
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.fields import Flag, KeyProblem, Length, Mass

Array = np.ndarray

POOL = 10
"""Orbits per star from which segregation chooses."""


class StarCluster(Generator):
    """A sphere of bodies in equilibrium. The centre of its density is the origin, and its momentum is zero. With the default
    mass and scale it is in Hénon units (Hénon 1971): total mass 1, virial radius 1, T = −W/2, energy −G/4. Velocities scale
    as √G.

    Attributes:
        mass: the total mass.
        radius, half_mass_radius, virial_radius: the size, by one of the three: the model's scale radius, the radius of half
            the mass, or −GM²/(2W); by default the virial radius is 1.
        rescale: scale positions and velocities so that the sample has exactly the model's energy, and T = −W/2 (no
            softening; the energy inside binaries is not counted). Without it a sample's energy scatters by about 1/√N.
        masses: the mass function.
        segregation: 0, masses do not depend on the place, to 1, the heaviest star has the lowest energy.
        binaries: the pairs among the bodies.
    """

    dimensions: ClassVar[tuple[int, ...]] = (3,)

    mass: Mass = 1.0
    radius: Length | None = None
    half_mass_radius: Length | None = None
    virial_radius: Length | None = None
    rescale: Flag = True
    masses: Masses = Masses()
    segregation: Fraction = 0.0
    binaries: Binaries | None = None

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        given = [key for key in ("radius", "half_mass_radius", "virial_radius") if getattr(self, key) is not None]
        if len(given) > 1:
            raise KeyProblem(given[1], f"the size is given by '{given[0]}' already; remove one of the two")
        return self

    @abstractmethod
    def scale_radius(self) -> float:
        """The scale radius of the model with virial radius 1."""

    @abstractmethod
    def half_mass(self) -> float:
        """The radius of half the mass, in scale radii."""

    @property
    def scale(self) -> float:
        """The scale radius of these bodies."""
        if self.half_mass_radius is not None:
            return self.half_mass_radius / self.half_mass()
        return self.radius or (self.virial_radius or 1.0) * self.scale_radius()

    @abstractmethod
    def orbits(self, count: int, rng: np.random.Generator, length: float, speed: float) -> tuple[Array, Array, Array]:
        """Positions (count, 3) of bodies in the model with the scale radius ``length``, velocities (count, 3) in units of
        1/``speed``, and Ψ (count,) in units of the model."""

    def recentred(self, made: Particles) -> Particles:
        """Bodies drawn about the origin, with the frame of reference that a user gets."""
        return at_rest(made)

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        pairs = self.binaries.pairs(count) if self.binaries else 0
        scale = self.scale
        speed = math.sqrt(gravity.G * self.mass / scale)
        stars = mass = self.mass * self.masses.draw(rng, count)
        if pairs:
            mass = np.concatenate([stars[:pairs] + stars[pairs : 2 * pairs], stars[2 * pairs :]])
        if self.segregation:
            position, velocity, psi = self.orbits(POOL * len(mass), rng, scale, 1.0)
            chosen = segregated(rng, mass, 0.5 * (velocity**2).sum(axis=1) - psi, self.segregation)
            velocity *= speed
            position, velocity = position[chosen], velocity[chosen]
        else:
            position, velocity, _ = self.orbits(len(mass), rng, scale, speed)
        made = self.recentred(Particles(mass, position, velocity))
        if self.rescale:
            rescaled(made, gravity.G, -gravity.G * self.mass**2 / 4 * self.scale_radius() / scale)
        return self.binaries.split(made, stars, gravity.G, rng) if self.binaries and pairs else made
