"""The observables that a run may record with each frame, beside those that every run records."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nbody.diagnostics.energy import escapers
from nbody.diagnostics.structure import (
    FRACTIONS,
    NEIGHBOURS,
    centre_of_mass,
    core_radius,
    density_centre,
    distances,
    half_mass_radius,
    lagrangian_radii,
    local_density,
)
from nbody.particles import Particles
from nbody.registry import Entry, Registry

ALWAYS: dict[str, int] = {
    "kinetic_energy": 1,
    "potential_energy": 1,
    "total_energy": 1,
    "momentum": 3,
    "angular_momentum": 3,
    "virial_ratio": 1,
}
"""The observables that every run records, and how many numbers each has. Units are those of the scenario."""

OBSERVABLES = Registry(
    "observable",
    {
        name: Entry(f"nbody.diagnostics.observables:{name.upper()}", summary)
        for name, summary in {
            "centre_of_mass": "Σ m x / Σ m",
            "half_mass_radius": "holds half of the mass, about the density centre",
            "lagrangian_radii": "hold 10, 50 and 90 % of the mass, about the density centre",
            "escapers": "bodies with a positive energy, without external fields",
            "density_centre": "Σ ρ x / Σ ρ",
            "core_radius": "Casertano & Hut's, from the local density",
            "megno": "2 for regular orbits, grows with time for chaotic ones; from the variational equations",
            "lyapunov": "an estimate of the largest Lyapunov exponent, from the variational equations",
        }.items()
    },
)
"""What ``record: {observables: […]}`` may name. :data:`OF_TANGENTS` come from the scheme, all others from the
bodies. Radii are measured from the density centre, which bodies that leave do not move.

What takes long per body, its potential and its density, is computed where the run is and comes with the frame:
:class:`Observable` names it in ``columns``. What is left are sums over arrays of N numbers, which the recorder's thread
computes on the host while the device makes the next steps: the positions and velocities are there anyway, for the file."""


OF_TANGENTS = "megno", "lyapunov"
"""What a scheme computes from a tangent vector that it moves with the bodies, in ensembles for each system: see
:mod:`nbody.integrators.tangents`."""

Columns = Mapping[str, np.ndarray]
"""``potential`` and ``density`` of every body, (N,) each, as far as a run has computed them; the potential without external
fields."""


class Measurement:
    """Particles, and what several observables of them share.

    Args:
        G: the gravitational constant.
        columns: numbers of each body that are known.
    """

    def __init__(self, particles: Particles, G: float = 1.0, columns: Columns | None = None) -> None:
        self.particles, self.G, self.columns = particles, G, columns or {}

    @property
    def potential(self) -> np.ndarray | None:
        """(N,), if a run has computed it."""
        return self.columns.get("potential")

    @cached_property
    def density(self) -> np.ndarray:
        """(N,), see :func:`~nbody.diagnostics.local_density`."""
        known = self.columns.get("density")
        return local_density(self.particles) if known is None else known

    @cached_property
    def density_centre(self) -> np.ndarray:
        """(D,), see :func:`~nbody.diagnostics.density_centre`."""
        return density_centre(self.particles, self.density)

    @cached_property
    def radius(self) -> np.ndarray:
        """The distances from the density centre, (N,)."""
        return distances(self.particles, self.density_centre)

    @cached_property
    def centre(self) -> np.ndarray:
        """The centre of mass, (D,)."""
        return centre_of_mass(self.particles)


class Observable(NamedTuple):
    """An observable of a run.

    Attributes:
        width: the number of its float64: 3 for a vector, in two dimensions too.
        compute: the function that computes it; None if the scheme does.
        quantity: the quantity whose unit it has; empty for a number.
        columns: numbers of each body that ``compute`` uses if the run brings them: :data:`Columns`.
    """

    width: int
    compute: Callable[[Measurement], float | np.ndarray] | None
    quantity: str = ""
    columns: tuple[str, ...] = ()


def _vector(values: np.ndarray) -> np.ndarray:
    """(3,), with z = 0 in two dimensions."""
    return np.pad(values, (0, 3 - len(values)))


CENTRE_OF_MASS = Observable(3, lambda now: _vector(now.centre), "length")
HALF_MASS_RADIUS = Observable(1, lambda now: half_mass_radius(now.particles, radius=now.radius), "length", ("density",))
LAGRANGIAN_RADII = Observable(
    len(FRACTIONS), lambda now: lagrangian_radii(now.particles, FRACTIONS, radius=now.radius), "length", ("density",)
)
ESCAPERS = Observable(
    1, lambda now: float(escapers(now.particles, now.G, now.centre, now.potential)), columns=("potential",)
)
DENSITY_CENTRE = Observable(3, lambda now: _vector(now.density_centre), "length", ("density",))
CORE_RADIUS = Observable(1, lambda now: core_radius(now.particles, now.density, now.density_centre), "length", ("density",))
MEGNO, LYAPUNOV = Observable(1, None), Observable(1, None)


def widths(names: Iterable[str]) -> dict[str, int]:
    """The number of float64 of each observable."""
    return {name: OBSERVABLES.load(name).width for name in names}


def columns_of(names: Iterable[str], count: int) -> set[str]:
    """The numbers of each of ``count`` bodies that these observables use: names of :data:`Columns`. (The density of a few
    has no meaning.)"""
    used = {column for name in names for column in OBSERVABLES.load(name).columns}
    return used if count > NEIGHBOURS else used - {"density"}


def measured(
    names: Iterable[str], particles: Particles, G: float = 1.0, columns: Columns | None = None
) -> dict[str, float | np.ndarray]:
    """The observables of these names, but for :data:`OF_TANGENTS`, in the units of the particles; ``columns``: what a run
    knows of each body."""
    now = Measurement(particles, G, columns)
    return {name: OBSERVABLES.load(name).compute(now) for name in names if name not in OF_TANGENTS}
