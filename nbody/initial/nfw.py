"""The halo of Navarro, Frenk & White (1997), with an end."""

from functools import cache
from typing import Annotated

import numpy as np
from pydantic import Field

from nbody.initial.eddington import Sphere, sphere
from nbody.initial.eddington_sphere import EddingtonSphere
from nbody.scenario.fields import Finite, Positive

Array = np.ndarray


class NFWHalo(EddingtonSphere):
    """Density 1/(r (1 + r)²) in scale radii up to ``concentration``. Beyond, it falls as r^κ exp(−r/d) with the scale
    d = ``edge``·concentration and the exponent κ that keeps the slope continuous (Springel & White 1999). So the mass is
    finite; ``mass`` includes this outer part.

    Attributes:
        concentration: the radius in scale radii from which on the density falls exponentially.
        edge: the scale of this fall, in units of the concentration.
    """

    concentration: Annotated[Finite, Field(ge=1, le=100)] = 10.0
    edge: Annotated[Finite, Field(ge=0.1, le=1)] = 0.3
    cut: Positive = 1e4

    def model(self) -> Sphere:
        return _model(self.concentration, self.edge)


@cache
def _model(c: float, edge: float) -> Sphere:
    d = edge * c
    kappa = c / d - (1 + 3 * c) / (1 + c)

    def density(r: Array) -> Array:
        outside = np.exp(kappa * np.log(np.maximum(r, c) / c) - (np.maximum(r, c) - c) / d) / (c * (1 + c) ** 2)
        return np.where(r < c, 1 / (r * (1 + r) ** 2), outside)

    return sphere(density, outermost=c + 60 * d)
