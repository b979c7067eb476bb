"""Clusters drawn from a distribution function on a grid."""

import math
from abc import abstractmethod

import numpy as np
from scipy.integrate import trapezoid

from nbody.initial.cluster import StarCluster
from nbody.initial.eddington import Sphere
from nbody.initial.sampling import on_sphere
from nbody.scenario.fields import Positive

Array = np.ndarray


class EddingtonSphere(StarCluster):
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
        """Of the bodies within ``cut``, after they have been scaled to the energy of the whole model."""
        model = self.model()
        half = float(model.radii(np.array(0.5), self.cut))
        if not self.rescale or self.cut >= model.radius[-1]:
            return half
        whole, part = (trapezoid(m / r, m) for r, m in (model.up_to(math.inf), model.up_to(self.cut)))
        return half * float(part / model.within(self.cut) ** 2 / whole)

    def orbits(self, count: int, rng: np.random.Generator, length: float, speed: float) -> tuple[Array, Array, Array]:
        model = self.model()
        radius = model.radii(rng.random(count), self.cut)
        speeds = speed * model.speeds(radius, rng)
        psi = model.psi_at(radius)
        return (length * radius)[:, None] * on_sphere(rng, count), speeds[:, None] * on_sphere(rng, count), psi
