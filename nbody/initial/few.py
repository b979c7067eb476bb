"""Two and three bodies whose motion is known: Kepler's ellipse, the figure eight, Burrau's and Lagrange's triangles."""

import math
from typing import Annotated, ClassVar

import numpy as np
from pydantic import BeforeValidator, Field

from nbody.initial.generator import FixedGenerator, centred
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.values import Length, Mass, MassOrZero, NotNegative, a_list

Eccentricity = Annotated[NotNegative, Field(lt=1)]
"""Of an ellipse."""


def in_dimensions(mass: np.ndarray, x: np.ndarray, v: np.ndarray, dimensions: int) -> Particles:
    """Bodies given in a plane, in a run of 2 or 3 dimensions, around their centre of mass."""
    shape = (len(mass), dimensions)
    position, velocity = np.zeros(shape), np.zeros(shape)
    position[:, :2], velocity[:, :2] = x, v
    return centred(Particles(np.array(mass), position, velocity))


ThreeMasses = Annotated[tuple[Mass, MassOrZero, MassOrZero], BeforeValidator(a_list("a list of three masses"))]


class Kepler(FixedGenerator):
    """Two bodies on an ellipse, at the pericentre. The period is 2π √(a³/(G(m₁ + m₂))), the energy −G m₁ m₂/(2a).

    Attributes:
        eccentricity: e.
        semi_major_axis: a of the relative orbit.
        masses: m₁ and m₂.
    """

    eccentricity: Eccentricity = 0.5
    semi_major_axis: Length = 1.0
    masses: Annotated[tuple[Mass, MassOrZero], BeforeValidator(a_list("a list of two masses"))] = (0.5, 0.5)

    bodies_made: ClassVar[int] = 2

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        a, e, mass = self.semi_major_axis, self.eccentricity, np.array(self.masses)
        speed = math.sqrt(gravity.G * mass.sum() / a * (1 + e) / (1 - e))
        return in_dimensions(mass, np.array([[0, 0], [a * (1 - e), 0]]), np.array([[0, 0], [0, speed]]), gravity.dimensions)


class FigureEight(FixedGenerator):
    """Three equal masses that follow each other on one figure eight (Moore 1993; Chenciner & Montgomery 2000; the digits
    are Simó's, which close to 3e-8). Period 6.32591398, energy −1.2871419918 for G = 1; velocities scale as √G."""

    bodies_made: ClassVar[int] = 3

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        x1, v3 = np.array([0.97000436, -0.24308753]), np.array([-0.93240737, -0.86473146])
        x, v = np.array([x1, -x1, 0 * x1]), np.array([-v3 / 2, -v3 / 2, v3])
        return in_dimensions(np.ones(3), x, math.sqrt(gravity.G) * v, gravity.dimensions)


class Pythagorean(FixedGenerator):
    """Masses 3, 4 and 5 at rest at the corners of the triangle with these sides (Burrau 1913; solved by Szebehely &
    Peters 1967): close encounters, and in the end the lightest body is thrown out. Energy −769/60 for G = 1."""

    bodies_made: ClassVar[int] = 3

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        x = np.array([[1.0, 3.0], [-2.0, -1.0], [1.0, -1.0]])
        return in_dimensions(np.array([3.0, 4.0, 5.0]), x, np.zeros((3, 2)), gravity.dimensions)


class LagrangeTriangle(FixedGenerator):
    """Three bodies at the corners of an equilateral triangle, each on an ellipse about the centre of mass, so that the
    triangle turns, grows and shrinks, and stays equilateral (Lagrange 1772). Begins at the smallest size. Stable only if one
    mass holds more than 96 % of the whole (Routh 1875).

    Attributes:
        masses: of the three bodies.
        side: the largest half axis a of the relative orbits: the side of the triangle if the eccentricity is 0.
        eccentricity: of all orbits.
    """

    masses: ThreeMasses = (1.0, 1.0, 1.0)
    side: Length = 1.0
    eccentricity: Eccentricity = 0.0

    bodies_made: ClassVar[int] = 3

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        mass, e = np.array(self.masses), self.eccentricity
        height = math.sqrt(0.75)
        x = self.side * (1 - e) * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, height]])
        x -= (mass[:, None] * x).sum(axis=0) / mass.sum()
        turning = math.sqrt(gravity.G * mass.sum() * (1 + e) / (self.side * (1 - e)) ** 3)
        return in_dimensions(mass, x, turning * np.stack([-x[:, 1], x[:, 0]], axis=1), gravity.dimensions)
