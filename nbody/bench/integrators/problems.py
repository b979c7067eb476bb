"""The problems of the integrators suite."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbody.initial.plummer import PlummerSphere
from nbody.initial.solar import GAUSS2, OuterSolarSystem, SolarSystem
from nbody.integrators import INTEGRATORS
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


def problems(counts: Sequence[int] = COUNTS) -> list[MotionProblem]:
    """The orbit, the outer solar system, and a cluster for each number of bodies in ``counts``."""
    facts = {name: INTEGRATORS.load(name).facts for name in INTEGRATORS}
    hard = tuple(name for name in facts if not facts[name].softened)
    orbiting = tuple(name for name in hard if not facts[name].star)  # which solve two bodies exactly
    many = tuple(name for name, each in facts.items() if not each.own_forces or each.lengths == "individual")
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
    return OuterSolarSystem().generate(6, SUN, np.random.default_rng(1))


DAYS = Gravity(G=GAUSS2)
"""The same units, with Gauss's constant."""


def solar_system(names: str) -> Particles:
    """The Sun and some of the planets, in the order of the names, 28 June 1969 (the first state of DE405)."""
    all_of_them = SolarSystem().generate(11, DAYS, np.random.default_rng(1))
    rows = [all_of_them.species_names.index(name) for name in f"Sun {names}".split()]
    return Particles(all_of_them.mass[rows], all_of_them.position[rows], all_of_them.velocity[rows])
