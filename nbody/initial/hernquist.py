"""Hernquist's sphere: an elliptical galaxy or a bulge (Hernquist 1990)."""

from functools import cache

from nbody.initial.eddington import Sphere, sphere
from nbody.initial.eddington_sphere import EddingtonSphere
from nbody.scenario.fields import Positive


class HernquistSphere(EddingtonSphere):
    """Density 1/(r (1 + r)³) in scale radii, mass (r/(1 + r))². In Hénon units the scale radius is 1/3."""

    cut: Positive = 199.0
    """Within it is 99 % of the mass."""

    def model(self) -> Sphere:
        return _model()


@cache
def _model() -> Sphere:
    return sphere(lambda r: 1 / (r * (1 + r) ** 3))
