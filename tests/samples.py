"""Samples of generators, and how far they are from a distribution."""

import math

import numpy as np

from nbody.initial import GENERATORS, make_particles
from nbody.initial.generator import FixedGenerator
from nbody.particles import Particles
from nbody.scenario import Scenario

NEEDS: dict[str, dict] = {"sphere": {"profile": "hernquist"}}
"""Options without which a generator does not work."""

FREE = [name for name in GENERATORS if not issubclass(GENERATORS.load(name), FixedGenerator)]
"""Generators that make as many bodies as one asks for."""

N = 20_000


def made(generator: str, particles: int = N, seed: int = 1, dimensions: int = 3, G: float = 1.0, **own) -> Particles:
    initial = {"generator": generator, "particles": particles, "seed": seed, **NEEDS.get(generator, {}), **own}
    gravity = {"dimensions": dimensions, "G": G}
    values = {"initial": initial, "gravity": gravity, "integrator": {"dt": 0.01, "steps": 1}}
    return make_particles(Scenario.from_dict(values))


def largest_gap(sample: np.ndarray, distribution) -> float:
    """Kolmogorov's distance between a sample and a distribution function, in units of 1/√N; 1.95 at 0.1 %."""
    expected = distribution(np.sort(sample))
    steps = np.arange(len(sample) + 1) / len(sample)
    return max(np.abs(expected - steps[1:]).max(), np.abs(expected - steps[:-1]).max()) * math.sqrt(len(sample))


def energies(bodies: Particles) -> tuple[np.ndarray, np.ndarray]:
    """Kinetic energy and potential (G = 1, no softening) of each body, by blocks of rows."""
    potential = np.zeros(bodies.count)
    for first in range(0, bodies.count, 256):
        rows = slice(first, first + 256)
        square = sum((bodies.position[rows, None, k] - bodies.position[None, :, k]) ** 2 for k in range(3))
        with np.errstate(divide="ignore"):
            inverse = 1 / np.sqrt(square)
        inverse[~np.isfinite(inverse)] = 0
        potential[rows] = -inverse @ bodies.mass
    return 0.5 * bodies.mass * (bodies.velocity**2).sum(axis=1), potential
