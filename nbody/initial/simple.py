"""Bodies without structure: a uniform box, a Gaussian cloud, and a uniform sphere that collapses."""

import math
from typing import ClassVar

import numpy as np

from nbody.initial.energy import potential_energy
from nbody.initial.generator import Generator, centred
from nbody.initial.sampling import on_sphere
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.fields import Length, Mass, NotNegative, SpeedOrZero


class UniformBox(Generator):
    """Bodies uniform in a cube (a square in 2-D) around the origin, with normally distributed velocities.

    Attributes:
        side: of the cube.
        mass: of all bodies together.
        dispersion: the standard deviation of each component of the velocity.
    """

    side: Length = 1.0
    mass: Mass = 1.0
    dispersion: SpeedOrZero = 0.0

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        position = self.side * (rng.random((count, gravity.dimensions)) - 0.5)
        velocity = self.dispersion * rng.standard_normal(position.shape)
        return Particles(np.full(count, self.mass / count), position, velocity)


class GaussianCloud(Generator):
    """Bodies normally distributed in space and in velocity, around the origin.

    Attributes:
        sigma: the standard deviation of each coordinate.
        mass: of all bodies together.
        dispersion: the standard deviation of each component of the velocity.
    """

    sigma: Length = 1.0
    mass: Mass = 1.0
    dispersion: SpeedOrZero = 0.0

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        position = self.sigma * rng.standard_normal((count, gravity.dimensions))
        velocity = self.dispersion * rng.standard_normal(position.shape)
        return Particles(np.full(count, self.mass / count), position, velocity)


class ColdCollapse(Generator):
    """A uniform sphere with less motion than equilibrium needs (van Albada 1982). At rest, with the default radius 2.4 it
    has the energy −G/4, and falls together in t = π/2 √(R³/(2GM)) = 4.12973.

    Attributes:
        virial_ratio: T/|W| of the sample, exactly (without softening): 0 at rest, 0.5 in virial equilibrium. The velocities
            are isotropic and normal.
        radius: of the sphere.
        mass: of all bodies together.
    """

    dimensions: ClassVar[tuple[int, ...]] = (3,)

    virial_ratio: NotNegative = 0.0
    radius: Length = 2.4
    mass: Mass = 1.0

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        distance = self.radius * rng.random((3, count)).max(axis=0)  # its cube is uniform
        position = distance[:, None] * on_sphere(rng, count)
        made = centred(Particles(np.full(count, self.mass / count), position, np.zeros_like(position)))
        if self.virial_ratio and count > 1:
            made.velocity = rng.standard_normal(position.shape)
            centred(made)
            kinetic = 0.5 * float((made.mass[:, None] * made.velocity**2).sum())
            wanted = -self.virial_ratio * gravity.G * potential_energy(made.mass, made.position)
            made.velocity *= math.sqrt(wanted / kinetic)
        return made
