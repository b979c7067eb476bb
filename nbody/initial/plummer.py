"""Plummer's sphere: a star cluster in equilibrium, sampled by the method of Aarseth, Hénon & Wielen (1974)."""

import math
from typing import Annotated

import numpy as np
from pydantic import Field

from nbody.initial.cluster import StarCluster
from nbody.initial.generator import centred
from nbody.initial.sampling import accepted, on_sphere
from nbody.particles import Particles
from nbody.scenario.values import Positive

Array = np.ndarray

SCALE_LENGTH = 3 * math.pi / 16
"""Plummer's scale length a in units of the virial radius, 0.589049."""


class PlummerSphere(StarCluster):
    """A star cluster with the density (1 + r²/a²)^(−5/2).

    In units of a, the mass within r is X = r³/(1 + r²)^(3/2), uniform in [0, 1); so s = X^(1/3) = r/√(1 + r²) is the
    largest of three uniform numbers, and r = (X^(−2/3) − 1)^(−1/2) = s/√(1 − s²) needs no power. The speed is q times
    the escape speed √2·(1 + r²)^(−1/4), with q by rejection from q²(1 − q²)^(7/2) under 0.1. The centre of mass is the
    origin.

    Attributes:
        cut: the largest radius of a body, in virial radii. 22.8 leaves out a thousandth of the mass: the few bodies that
            would widen every picture. The total mass of a sample is 1 in any case.
    """

    cut: Annotated[Positive, Field(le=1e6)] = 22.8

    def model_scale_radius(self) -> float:
        return SCALE_LENGTH

    def model_half_mass_radius(self) -> float:
        s = self._largest * 0.5 ** (1 / 3)
        return s / math.sqrt(1 - s * s)

    @property
    def _largest(self) -> float:
        """r/√(1 + r²) at the outermost radius r."""
        outermost = self.cut / SCALE_LENGTH
        return outermost / math.sqrt(1 + outermost * outermost)

    def recentred(self, made: Particles) -> Particles:
        """At rest about the centre of mass, as usual for this model. The density falls so steeply that it is as near to the
        centre of the density as the bodies determine that one: to 3 a/√N, 0.02 a for 20000 bodies."""
        return centred(made)

    def orbits(self, count: int, rng: np.random.Generator, length: float, speed: float) -> tuple[Array, Array, Array]:
        s = self._largest * rng.random((3, count)).max(axis=0)
        cosine = np.sqrt((1 - s) * (1 + s))  # 1/√(1 + r²), which is also Ψ
        q, _ = accepted(rng, count, _below_the_speeds)
        speeds = q * np.sqrt(2 * cosine) * speed
        position = (length * s / cosine)[:, None] * on_sphere(rng, count)
        return position, speeds[:, None] * on_sphere(rng, count), cosine


def _below_the_speeds(q: Array, y: Array) -> Array:
    """Where 0.1·y lies below the distribution of speeds q²(1 − q²)^(7/2), whose largest value is 0.092."""
    w = 1 - q * q
    return 0.1 * y < q * q * (w * w * w * np.sqrt(w))
