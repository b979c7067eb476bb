"""The observables that a run may record with each frame, beside those that every run records."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nbody.diagnostics.centre import centre_of_mass
from nbody.diagnostics.core import core_radius, density_centre
from nbody.diagnostics.density import local_density
from nbody.diagnostics.escapers import escapers
from nbody.diagnostics.lagrangian import FRACTIONS, half_mass_radius, lagrangian_radii
from nbody.particles import Particles
from nbody.registry import Entry, Registry

OBSERVABLES = Registry(
    "observable",
    {
        "centre_of_mass": Entry("nbody.diagnostics.observables:CENTRE_OF_MASS", "Σ m x / Σ m"),
        "half_mass_radius": Entry("nbody.diagnostics.observables:HALF_MASS_RADIUS", "holds half of the mass"),
        "lagrangian_radii": Entry("nbody.diagnostics.observables:LAGRANGIAN_RADII", "hold 10, 50 and 90 % of the mass"),
        "escapers": Entry(
            "nbody.diagnostics.observables:ESCAPERS", "bodies with a positive energy, without external fields"
        ),
        "density_centre": Entry("nbody.diagnostics.observables:DENSITY_CENTRE", "Σ ρ x / Σ ρ"),
        "core_radius": Entry("nbody.diagnostics.observables:CORE_RADIUS", "Casertano & Hut's, from the local density"),
    },
)
"""What ``record: {observables: […]}`` may name. Radii are measured from the centre of mass, the core radius from the
density centre. They are computed on the host, in the recorder's thread. Time per frame for 20480 and 10⁶ bodies (two
cores of an AMD EPYC): centre of mass 0.05 ms and 1.3 ms; radii 2 ms and 0.16 s; escapers 3.5 ms and 0.31 s (but 0.3 s
for 16384 bodies in equilibrium, whose pairs are summed); density
centre or core radius 33 ms and 4.3 s."""


class Moment:
    """Particles, and what several observables of them share.

    Args:
        G: the gravitational constant.
    """

    def __init__(self, particles: Particles, G: float = 1.0) -> None:
        self.particles, self.G = particles, G

    @cached_property
    def density(self) -> np.ndarray:
        """(N,), see :func:`~nbody.diagnostics.density.local_density`."""
        return local_density(self.particles)

    @cached_property
    def centre(self) -> np.ndarray:
        """The centre of mass, (D,)."""
        return centre_of_mass(self.particles)


class Observable(NamedTuple):
    """The number of float64 of an observable (3 for a vector, in two dimensions too), the function that computes it, and the
    quantity whose unit it has (empty for a number)."""

    width: int
    compute: Callable[[Moment], float | np.ndarray]
    quantity: str = ""


def _vector(values: np.ndarray) -> np.ndarray:
    """(3,), with z = 0 in two dimensions."""
    return np.pad(values, (0, 3 - len(values)))


CENTRE_OF_MASS = Observable(3, lambda now: _vector(now.centre), "length")
HALF_MASS_RADIUS = Observable(1, lambda now: half_mass_radius(now.particles, now.centre), "length")
LAGRANGIAN_RADII = Observable(
    len(FRACTIONS), lambda now: lagrangian_radii(now.particles, FRACTIONS, now.centre), "length"
)
ESCAPERS = Observable(1, lambda now: float(escapers(now.particles, now.G, now.centre)))
DENSITY_CENTRE = Observable(3, lambda now: _vector(density_centre(now.particles, now.density)), "length")
CORE_RADIUS = Observable(1, lambda now: core_radius(now.particles, now.density), "length")


def widths(names: Iterable[str]) -> dict[str, int]:
    """The number of float64 of each observable."""
    return {name: OBSERVABLES.load(name).width for name in names}


def measured(names: Iterable[str], particles: Particles, G: float = 1.0) -> dict[str, float | np.ndarray]:
    """The observables of these names, in the units of the particles."""
    now = Moment(particles, G)
    return {name: OBSERVABLES.load(name).compute(now) for name in names}
