"""The problems for which engines are measured, and the check of forces: the error of an engine's accelerations against the
referee, and the largest that rounding explains."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nbody import machine
from nbody.bench.forces.rows import ErrorStatistics
from nbody.forces import timing
from nbody.forces.direct.sums import direct_sums
from nbody.forces.reference import direct_sum
from nbody.forces.timing import GRAVITY as CLUSTER
from nbody.initial.simple import Lecture
from nbody.law import Gravity
from nbody.particles import Particles

LECTURE = Gravity(G=10.0, dimensions=2, softening="cutoff", length=0.01)

LECTURE_DT, LECTURE_STEPS = 0.001, 10
"""The lecture timed ten steps of its Taylor scheme, with the copies to the GPU before and from it after them."""


class ForceProblem(NamedTuple):
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


ALL_ROWS = 4096
"""Up to this N every particle is checked; above it a random sample of a quarter as many. That is enough for the 99th
percentile (ten particles are beyond it), and finds a fault in one particle of 300 with a probability of 95 %."""

MOST_BY_REFEREE = 1 << 19
"""Above this N the judge is the ``cpu`` engine in float64, judged at smaller N: the referee takes ten times longer."""


def judged(count: int) -> np.ndarray:
    """The indices of the checked particles: all, or a random sample with the first and the last 64, where errors of a
    partly filled tile or of a thread past the end would show."""
    if count <= ALL_ROWS:
        return np.arange(count)
    inner = np.random.default_rng(count).choice(np.arange(64, count - 64), ALL_ROWS // 4 - 128, replace=False)
    return np.concatenate([np.arange(64), np.sort(inner), np.arange(count - 64, count)])


def on_all_cores(compute: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Compute ``compute(rows)``, one or more numbers per row, in as many threads as there are cores. Each thread has its
    part of the rows. (NumPy releases the lock of the interpreter while it computes.)"""
    cores = machine.cores()
    with ThreadPoolExecutor(cores) as pool:
        return np.concatenate(list(pool.map(compute, np.array_split(rows, min(cores, len(rows))))))


class Judge:
    """The exact forces of a problem, computed when they are first needed."""

    def __init__(self, problem: ForceProblem) -> None:
        self.problem, self.count = problem, problem.particles.count
        self.rows = judged(self.count)

    @cached_property
    def _right(self) -> np.ndarray:
        position, mass, law = self.problem.particles.position, self.problem.particles.mass, self.problem.gravity
        if self.count > MOST_BY_REFEREE:
            return direct_sums(position, mass, law, self.rows)
        return on_all_cores(lambda rows: direct_sum(position, mass, law, rows)[0], self.rows)

    def error(self, acceleration: Any, bound: np.ndarray | float = np.inf) -> ErrorStatistics:
        """The error of (N, D) accelerations, compared with the ``bound`` of each. A value that is not finite counts as an
        infinite error."""
        given = np.asarray(acceleration, np.float64)[self.rows]
        difference = np.linalg.norm(given - self._right, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(difference == 0, 0.0, difference / np.linalg.norm(self._right, axis=1))
            relative = np.where(np.isfinite(relative), relative, np.inf)
            excess = np.where(relative == 0, 0.0, relative / bound)
        median, percentile_99 = np.quantile(relative, (0.5, 0.99), method="lower")
        excess = np.where(np.isnan(excess), np.inf, excess)
        return ErrorStatistics(float(median), float(percentile_99), float(relative.max()), float(excess.max()))
