"""What the star clusters have in common: total mass, scale, mass function, segregation, binaries, exact energy."""

import math
from abc import abstractmethod
from numbers import Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator, model_validator

from nbody.given import KeyProblem, shown
from nbody.initial.generator import Generator, at_rest
from nbody.initial.masses import Fraction, Masses, segregated
from nbody.initial.orbit import on_orbit, true_anomaly
from nbody.initial.sampling import rescaled
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.values import Flag, Group, Length, Mass, Time, a_list

Array = np.ndarray

POOL = 10
"""Orbits per star from which segregation chooses."""


def _eccentricity(value: Any) -> Any:
    """``thermal``, or the eccentricity of an ellipse."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if value != "thermal" and not (number and 0 <= value < 1):
        raise ValueError(f"must be 'thermal', or a number from 0 to less than 1 (an ellipse), got {shown(value)}")
    return value


class Binaries(Group):
    """``binaries: {fraction: 0.3, period: [0.001, 1]}``.

    Attributes:
        fraction: the part of the systems (single stars and pairs) that are pairs.
        period: the shortest and longest period, in the scenario's unit of time; log P is uniform between them.
        eccentricity: one number for all, or ``thermal``, f(e) = 2e (Jeans 1919).
    """

    fraction: Fraction
    period: Annotated[tuple[Time, Time], BeforeValidator(a_list("a list of the shortest and the longest period"))]
    eccentricity: Annotated[float | str, BeforeValidator(_eccentricity)] = "thermal"

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.period[0] > self.period[1]:
            raise KeyProblem("period", f"must be the shortest before the longest, got {list(self.period)}")
        return self

    def pairs(self, stars: int) -> int:
        """The number of pairs among ``stars`` stars."""
        return min(stars // 2, round(stars * self.fraction / (1 + self.fraction)))

    def split(self, systems: Particles, masses: Array, G: float, rng: np.random.Generator) -> Particles:
        """Replace the first systems by pairs of stars around their centres of mass.

        Args:
            systems: pairs first, then single stars.
            masses: (N,) of all stars: the first members of the pairs, the second members, the single stars.
        """
        pairs = len(masses) - systems.count
        first, second = masses[:pairs], masses[pairs : 2 * pairs]
        total = first + second
        shortest, longest = map(math.log, self.period)
        period = np.exp(shortest + (longest - shortest) * rng.random(pairs))
        e = np.sqrt(rng.random(pairs)) if self.eccentricity == "thermal" else np.full(pairs, self.eccentricity)
        mean, node, argument = 2 * math.pi * rng.random((3, pairs))
        inclination = np.arccos(2 * rng.random(pairs) - 1)
        axis = np.cbrt(G * total * (period / (2 * math.pi)) ** 2)
        x, v = on_orbit(G * total, axis * (1 - e), e, true_anomaly(mean, e), inclination, node, argument)
        parts = []
        for relative, centre in ((x, systems.position), (v, systems.velocity)):
            one = centre[:pairs] - (second / total)[:, None] * relative
            other = centre[:pairs] + (first / total)[:, None] * relative
            parts.append(np.concatenate([one, other, centre[pairs:]]))
        return Particles(masses, parts[0], parts[1])


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
    exclusive = (("radius", "half_mass_radius", "virial_radius"),)

    mass: Mass = 1.0
    radius: Length | None = None
    half_mass_radius: Length | None = None
    virial_radius: Length | None = None
    rescale: Flag = True
    masses: Masses = Masses()
    segregation: Fraction = 0.0
    binaries: Binaries | None = None

    @abstractmethod
    def model_scale_radius(self) -> float:
        """The scale radius of the model with virial radius 1."""

    @abstractmethod
    def model_half_mass_radius(self) -> float:
        """The radius of half the mass, in scale radii."""

    @property
    def scale_length(self) -> float:
        """The scale radius of these bodies."""
        if self.half_mass_radius is not None:
            return self.half_mass_radius / self.model_half_mass_radius()
        return self.radius or (self.virial_radius or 1.0) * self.model_scale_radius()

    @abstractmethod
    def orbits(self, count: int, rng: np.random.Generator, length: float, speed: float) -> tuple[Array, Array, Array]:
        """Positions (count, 3) of bodies in the model with the scale radius ``length``, velocities (count, 3) in units of
        1/``speed``, and Ψ (count,) in units of the model."""

    def recentred(self, made: Particles) -> Particles:
        """Bodies drawn about the origin, with the frame of reference that a user gets."""
        return at_rest(made)

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        pairs = self.binaries.pairs(count) if self.binaries else 0
        scale = self.scale_length
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
            rescaled(made, gravity.G, -gravity.G * self.mass**2 / 4 * self.model_scale_radius() / scale)
        return self.binaries.split(made, stars, gravity.G, rng) if self.binaries and pairs else made
