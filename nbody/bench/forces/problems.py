"""The problems for which engines are measured."""

from dataclasses import dataclass

import numpy as np

from nbody.forces import timing
from nbody.forces.timing import GRAVITY as CLUSTER
from nbody.initial.simple import Lecture
from nbody.law import Gravity
from nbody.particles import Particles

LECTURE = Gravity(G=10.0, dimensions=2, softening="cutoff", length=0.01)

LECTURE_DT, LECTURE_STEPS = 0.001, 10
"""The lecture timed ten steps of its Taylor scheme, with the copies to the GPU before and from it after them."""


@dataclass(frozen=True)
class ForceProblem:
    """Bodies, and the law between them."""

    particles: Particles
    gravity: Gravity


def cluster(count: int) -> ForceProblem:
    """3-D, Plummer softening: the bodies with which ``auto`` times engines. Their masses are unequal (½ to 1½ of 1/N), so
    that no kernel can get by with one mass for all, and their positions float64, so that the rounding of what an engine
    keeps counts as its error."""
    return ForceProblem(timing.cluster(count), CLUSTER)


def lecture_disk(count: int) -> ForceProblem:
    """The lecture's disc (2-D, G = 10, no force at a distance of 0.01 or less), rounded to float32 as the lecture's
    was: a pair that stands on the cutoff's edge is then on the same side of it in every precision."""
    particles = Lecture().generate(count, LECTURE, np.random.default_rng(1))
    particles.position = particles.position.astype(np.float32).astype(np.float64)
    return ForceProblem(particles, LECTURE)
