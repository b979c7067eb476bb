"""Is a force right? The error of an engine's accelerations against the referee, and the most that rounding explains."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nbody import machine
from nbody.bench.forces.problems import Problem
from nbody.forces.engine import rounding_bound
from nbody.forces.reference import direct_sum

ALL_ROWS = 4096
"""Up to this N every particle is judged; above it a sample of a quarter as many: ten of them are still beyond the 99 %, and
of a fault in one particle of 300 the sample has an example with a probability of 95 %."""


@dataclass(frozen=True)
class ForceError:
    """Relative errors |a_i - a_i,ref| / |a_i,ref| over the judged particles; ``excess`` is the largest of them as a
    multiple of what rounding explains for its particle: beyond 1 the force is wrong."""

    median: float
    percentile_99: float
    maximum: float
    excess: float


def judged(count: int) -> np.ndarray:
    """The particles that are judged: all, or a random sample with the first and the last 64, where a tile that is not
    full or a thread past the end would show."""
    if count <= ALL_ROWS:
        return np.arange(count)
    inner = np.random.default_rng(count).choice(np.arange(64, count - 64), ALL_ROWS // 4 - 128, replace=False)
    return np.concatenate([np.arange(64), np.sort(inner), np.arange(count - 64, count)])


def on_all_cores(compute: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray:
    """``compute(rows)``, a number or more for each of the rows, by as many threads as there are cores, each with rows of
    its own. NumPy lets other threads run while it computes."""
    cores = machine.cores()
    with ThreadPoolExecutor(cores) as pool:
        return np.concatenate(list(pool.map(compute, np.array_split(rows, min(cores, len(rows))))))


class Judge:
    """Knows a problem's right forces; computes them once, when they are first asked for."""

    def __init__(self, problem: Problem) -> None:
        self.count = problem.particles.count
        self.rows = judged(self.count)
        self._problem = problem

    @cached_property
    def _right(self) -> np.ndarray:
        position, mass = self._problem.particles.position, self._problem.particles.mass
        return on_all_cores(lambda rows: direct_sum(position, mass, self._problem.gravity, rows)[0], self.rows)

    def error(self, acceleration: Any, bound: np.ndarray | float = np.inf) -> ForceError:
        """The error of (N, D) accelerations, beside the :meth:`bound`. Anything that is not finite counts as infinitely
        wrong."""
        given = np.asarray(acceleration, np.float64)[self.rows]
        difference = np.linalg.norm(given - self._right, axis=1)
        size = np.linalg.norm(self._right, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(difference == 0, 0.0, difference / size)
        relative = np.where(np.isfinite(relative), relative, np.inf)
        median, percentile_99 = np.quantile(relative, (0.5, 0.99), method="lower")
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.where(relative == 0, 0.0, relative / bound)
        excess = np.where(np.isnan(excess), np.inf, excess)
        return ForceError(float(median), float(percentile_99), float(relative.max()), float(excess.max()))

    def bound(self, precision: str, condition: np.ndarray | float = 1.0) -> np.ndarray | float:
        """See :func:`nbody.forces.engine.rounding_bound`; competitors are judged by it too."""
        return rounding_bound(precision, self.count, condition)
