"""Plummer's sphere: a star cluster in equilibrium, sampled by the method of Aarseth, Hénon & Wielen (1974)."""

import math
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from nbody.initial.generator import Generator
from nbody.initial.sampling import accepted, on_sphere
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.fields import Positive

SCALE_LENGTH = 3 * math.pi / 16
"""Plummer's scale length a in units of the virial radius, 0.589049."""


class Plummer(Generator):
    """N equal masses 1/N in Hénon units (Hénon 1971): total mass 1, virial radius 1, energy −G/4, and T = |W|/2 on
    average over samples (a single sample is not rescaled). The centre of mass is at rest in the origin.

    In units of a, the mass within r is X = r³/(1 + r²)^(3/2), uniform in [0, 1); so s = X^(1/3) = r/√(1 + r²) is the
    largest of three uniform numbers, and r = (X^(−2/3) − 1)^(−1/2) = s/√(1 − s²) needs no power. The speed is q times
    the escape speed √2·(1 + r²)^(−1/4), with q by rejection from q²(1 − q²)^(7/2) under 0.1. Velocities scale as √G,
    so the sphere is in equilibrium whatever G is.

    Attributes:
        cut: the largest radius of a body, in virial radii. 22.8 leaves out a thousandth of the mass: the few bodies that
            would widen every picture. The total mass of a sample is 1 in any case.
    """

    dimensions: ClassVar[tuple[int, ...]] = (3,)

    cut: Annotated[Positive, Field(le=1e6)] = 22.8

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        outermost = self.cut / SCALE_LENGTH
        largest = outermost / math.sqrt(1 + outermost * outermost)
        s = largest * rng.random((3, count)).max(axis=0)
        cosine = np.sqrt((1 - s) * (1 + s))  # 1/√(1 + r²)
        radius = SCALE_LENGTH * s / cosine
        q, _ = accepted(rng, count, _below_the_speeds)
        speed = q * np.sqrt(2 * cosine) * math.sqrt(gravity.G / SCALE_LENGTH)
        position = radius[:, None] * on_sphere(rng, count)
        velocity = speed[:, None] * on_sphere(rng, count)
        position -= position.mean(axis=0)
        velocity -= velocity.mean(axis=0)
        return Particles(np.full(count, 1 / count), position, velocity)


def _below_the_speeds(q: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Where 0.1·y lies below the distribution of speeds q²(1 − q²)^(7/2), whose largest value is 0.092."""
    w = 1 - q * q
    return 0.1 * y < q * q * (w * w * w * np.sqrt(w))
