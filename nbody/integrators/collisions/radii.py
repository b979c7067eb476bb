"""The radius of each body."""

import math
from collections.abc import Mapping

import numpy as np

from nbody.errors import InputError, did_you_mean
from nbody.particles import Particles
from nbody.scenario import Scenario
from nbody.scenario.collisions import Density

HINT = "a length, a length of each species, {density: NUMBER}, or bodies with a column 'radius'"


def radii(scenario: Scenario, particles: Particles) -> np.ndarray:
    """The radii for ``collisions``, (N,) float64: those that the scenario gives, or else those that the bodies have.

    Raises:
        InputError: one line about a missing radius, or a species that the bodies do not have.
    """
    assert scenario.collisions is not None
    given, where = scenario.collisions.radius, scenario.where("collisions.radius")
    own = particles.radius if len(particles.radius) else None
    if given is None:
        if own is None:
            raise InputError(f"{where}is missing, and the bodies have no radii; give {HINT}")
        found = own.copy()
    elif isinstance(given, Density):
        found = np.cbrt(3 * particles.mass / (4 * math.pi * given.density))
    elif isinstance(given, Mapping):
        found = _by_species(given, particles, own, where)
    else:
        found = np.full(particles.count, float(given))
    if not found.any():
        raise InputError(f"{where}every radius is 0, so bodies never touch; give {HINT}")
    return found


def _by_species(given: Mapping[str, float], particles: Particles, own: np.ndarray | None, where: str) -> np.ndarray:
    """The radii by the names of species. Bodies of species that are not named keep their own."""
    names = particles.species_names
    for name in given:
        if name not in names:
            known = ", ".join(filter(None, names)) or "without names"
            hint = did_you_mean(name, names) or f"; the species are {known}"
            raise InputError(f"{where}the bodies have no species {name!a}{hint}")
    missing = [name for name in names if name not in given]
    if missing and own is None:
        raise InputError(f"{where}the species {missing[0]!a} has no radius; add it (0 for points)")
    found = np.zeros(particles.count) if own is None else own.copy()
    for k, name in enumerate(names):
        if name in given:
            found[particles.species == k] = given[name]
    return found
