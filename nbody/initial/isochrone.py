"""Hénon's isochrone sphere, in which the period of a star depends only on its energy (Hénon 1959)."""

from functools import cache

import numpy as np

from nbody.initial.eddington import Sphere, sphere
from nbody.initial.eddington_sphere import EddingtonSphere
from nbody.scenario.fields import Positive

Array = np.ndarray


class Isochrone(EddingtonSphere):
    """Potential −1/(1 + √(1 + r²)) in scale radii."""

    cut: Positive = 200.0
    """Within it is 99 % of the mass."""

    def model(self) -> Sphere:
        return _model()


@cache
def _model() -> Sphere:
    return sphere(_density)


def _density(r: Array) -> Array:
    """Binney & Tremaine 2008, eq. 2.49, up to a factor."""
    a = np.sqrt(1 + r * r)
    return (3 * (1 + a) * a * a - r * r * (1 + 3 * a)) / ((1 + a) ** 3 * a**3)
