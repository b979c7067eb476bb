"""The problems of the integrators suite."""

import math
from typing import NamedTuple

import numpy as np

from nbody.initial.plummer import PlummerSphere
from nbody.integrators import INTEGRATORS
from nbody.integrators.few_bodies import FewBodies
from nbody.law import Gravity
from nbody.particles import Particles

COUNTS = (1024,)
"""The default numbers of bodies of the cluster."""


class MotionProblem(NamedTuple):
    """Bodies, the time to move them for, and the schemes that suit them.

    Attributes:
        exact: bodies 0 and 1 relative to each other at the end, if known.
        evaluations: the numbers of force evaluations of schemes with fixed steps.
    """

    name: str
    bodies: Particles
    gravity: Gravity
    end: float
    schemes: tuple[str, ...]
    evaluations: tuple[int, ...]
    exact: tuple[float, ...] | None = None


def problems(counts: tuple[int, ...] = COUNTS) -> list[MotionProblem]:
    """The orbit, the outer solar system, and a cluster for each number of bodies in ``counts``."""
    few = {name for name in INTEGRATORS if issubclass(INTEGRATORS.load(name), FewBodies)}
    hard = tuple(name for name in INTEGRATORS if not INTEGRATORS.load(name).facts.softened)
    orbiting = tuple(name for name in hard if not INTEGRATORS.load(name).facts.star)  # which solve two bodies exactly
    many = tuple(name for name in INTEGRATORS if name not in few)
    d, v = 0.1, math.sqrt(1.9 / 0.1)
    axis, speed = np.array([d / 2, 0, 0]), np.array([0, v / 2, 0])
    pair = Particles(np.array([0.5, 0.5]), np.array([axis, -axis]), np.array([speed, -speed]))
    found = [
        # Nine and a half orbits, until the apocentre
        MotionProblem("kepler", pair, Gravity(), 19 * math.pi, orbiting, (1 << 11, 1 << 13, 1 << 15), (-1.9, 0, 0)),
        MotionProblem("planets", outer_solar_system(), SUN, 2e5, hard, (1 << 10, 1 << 12, 1 << 14)),
    ]
    softened = Gravity(softening="plummer", length=1e-4)
    for count in counts:
        cluster = PlummerSphere().generate(count, softened, np.random.default_rng(1))
        found.append(MotionProblem("cluster", cluster, softened, 1.0, many, (1 << 6, 1 << 8, 1 << 10)))
    return found


SUN = Gravity(G=2.95912208286e-4)
"""In astronomical units, days and solar masses."""


def outer_solar_system() -> Particles:
    """Sun, Jupiter, Saturn, Uranus, Neptune, Pluto (Hairer, Lubich & Wanner, Geometric Numerical Integration, I.2.4)."""
    mass = [1.00000597682, 0.000954786104043, 0.000285583733151, 0.0000437273164546, 0.0000517759138449, 1 / 1.3e8]
    position = [
        [0, 0, 0], [-3.5023653, -3.8169847, -1.5507963], [9.0755314, -3.0458353, -1.6483708],
        [8.3101420, -16.2901086, -7.2521278], [11.4707666, -25.7294829, -10.8169456],
        [-15.5387357, -25.2225594, -3.1902382],
    ]  # fmt: skip
    velocity = [
        [0, 0, 0], [0.00565429, -0.00412490, -0.00190589], [0.00168318, 0.00483525, 0.00192462],
        [0.00354178, 0.00137102, 0.00055029], [0.00288930, 0.00114527, 0.00039677], [0.00276725, -0.00170702, -0.00136504],
    ]  # fmt: skip
    return Particles(np.array(mass), np.array(position), np.array(velocity))
