"""Bodies without equilibrium: the lecture's disc, a uniform box, a Gaussian cloud, and a uniform sphere that collapses."""

import math
from typing import Annotated, ClassVar

import numpy as np

from nbody.initial.generator import Generator, centred
from nbody.initial.sampling import on_circle, on_sphere, potential_energy
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.values import Finite, Length, Mass, NotNegative, SpeedOrZero, with_unit


class Lecture(Generator):
    """The disc of the lecture: particles in a plane, densest in the middle, with a speed that grows with the radius.

    x = u₁ cos φ, y = u₂ sin φ with φ uniform and u₁, u₂ independent, uniform in [0, radius); speed = spin·(x² + y²),
    at right angles to the direction φ: velocity = (−speed sin φ, speed cos φ). Masses 1. In 3-D, z = 0.

    Attributes:
        radius: the upper limit of u₁ and u₂ (the lecture's ``rand()*1e-4``, where RAND_MAX is 32767).
        spin: speed divided by the squared distance from the centre, in 1/(length·time).
    """

    radius: Length = 3.2767
    spin: Annotated[Finite, with_unit("spin per length")] = 10.0

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        cosine, sine = on_circle(rng, count)
        u1, u2 = self.radius * rng.random((2, count))
        position = np.zeros((count, gravity.dimensions))
        position[:, 0] = x = u1 * cosine
        position[:, 1] = y = u2 * sine
        speed = self.spin * (x * x + y * y)
        velocity = np.zeros_like(position)
        velocity[:, 0] = -speed * sine
        velocity[:, 1] = speed * cosine
        return Particles(np.ones(count), position, velocity)


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
            needed = -self.virial_ratio * gravity.G * potential_energy(made.mass, made.position)
            made.velocity *= math.sqrt(needed / kinetic)
        return made
