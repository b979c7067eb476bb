"""The lecture's disc: particles in a plane, densest in the middle, with a speed that grows with the radius."""

from typing import Annotated

import numpy as np

from nbody.initial.generator import Generator
from nbody.initial.sampling import on_circle
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.fields import Finite, Length, Quantity


class Lecture(Generator):
    """x = u₁ cos φ, y = u₂ sin φ with φ uniform and u₁, u₂ independent, uniform in [0, radius); speed = spin·(x² + y²),
    at right angles to the direction φ: velocity = (−speed sin φ, speed cos φ). Masses 1. In 3-D, z = 0.

    Attributes:
        radius: the upper limit of u₁ and u₂ (the lecture's ``rand()*1e-4``, where RAND_MAX is 32767).
        spin: speed divided by the squared distance from the centre, in 1/(length·time).
    """

    radius: Length = 3.2767
    spin: Annotated[Finite, Quantity("spin per length")] = 10.0

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
