"""A sphere with any density profile, in equilibrium: the velocities follow by Eddington's inversion."""

from functools import cache
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from nbody.initial.eddington import Sphere, sphere
from nbody.initial.eddington_sphere import EddingtonSphere
from nbody.initial.formula import compiled
from nbody.scenario.fields import Positive, Text

Array = np.ndarray

PROFILES = {
    "plummer": "(1+r**2)**-2.5",
    "hernquist": "1/(r*(1+r)**3)",
    "jaffe": "1/(r**2*(1+r)**2)",
    "modified hubble": "(1+r**2)**-1.5",
    "nfw": "1/(r*(1+r)**2)",
}
"""Names that may stand for a formula."""


def _formula(text: str) -> str:
    compiled(PROFILES.get(text.lower(), text), "r")
    return text


class ProfileSphere(EddingtonSphere):
    """``profile: 1/(r*(1+r)**3)``, the density in scale radii up to a factor, or a name of :data:`PROFILES`.

    Attributes:
        profile: the formula, with ``r``, ``pi``, + - * / ** and the functions of :mod:`nbody.initial.formula`.
        taper: multiplies the density by exp(−(r/taper)²), in scale radii: densities with infinite mass need it.
    """

    profile: Annotated[Text, AfterValidator(_formula)]
    taper: Annotated[Positive, Field(ge=1e-6, le=1e6)] | None = None

    def model(self) -> Sphere:
        return _model(self.profile, self.taper)


@cache
def _model(profile: str, taper: float | None) -> Sphere:
    density = compiled(PROFILES.get(profile.lower(), profile), "r")
    if taper is None:
        return sphere(density)
    return sphere(
        lambda r: density(r) * np.exp(-((r / taper) ** 2)), innermost=1e-5 * min(1.0, taper), outermost=8 * taper
    )
