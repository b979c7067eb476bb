"""Clusters drawn from a distribution function on a grid."""

from abc import abstractmethod

import numpy as np

from nbody.initial.cluster import Cluster
from nbody.initial.eddington import Sphere
from nbody.initial.sampling import on_sphere
from nbody.scenario.fields import Positive

Array = np.ndarray


class EddingtonSphere(Cluster):
    """A cluster drawn from a distribution function on a grid, see :mod:`nbody.initial.eddington`.

    Its random numbers pass through logarithms and exponentials, so the bits are the same for the same machine and versions
    only.

    Attributes:
        cut: the largest distance of a body, in scale radii; the total mass is ``mass`` in any case.
    """

    cut: Positive = 1e4

    @abstractmethod
    def model(self) -> Sphere:
        """The model with mass, scale radius and G 1."""

    def scale_radius(self) -> float:
        return 1 / self.model().virial_radius

    def half_mass(self) -> float:
        return float(self.model().radii(np.array(0.5), self.cut))

    def orbits(self, count: int, rng: np.random.Generator, length: float, speed: float) -> tuple[Array, Array, Array]:
        model = self.model()
        radius = model.radii(rng.random(count), self.cut)
        speeds = speed * model.speeds(radius, rng)
        psi = model.psi_at(radius)
        return (length * radius)[:, None] * on_sphere(rng, count), speeds[:, None] * on_sphere(rng, count), psi
