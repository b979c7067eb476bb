"""The competitors of the force suite: an engine in one precision on a number of threads, with the interface for timing."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from nbody import machine
from nbody.bench.forces.accuracy import on_all_cores
from nbody.bench.forces.problems import CLUSTER, ForceProblem, cluster
from nbody.bench.timing import device_times
from nbody.forces import ENGINES
from nbody.forces.engine import Engine, rounding_bound
from nbody.forces.problem import Problem
from nbody.forces.resources import fits
from nbody.law import Gravity
from nbody.state import State

PILOT = 4096
"""The N of the first run of a competitor, which compiles it and gives a first estimate of its rate."""

PILOTS, PILOT_SECONDS = 5, 0.1
"""Further evaluations in that run, of which the fastest counts, and the time in seconds after which no further one starts.
(The load of another program once made one 25 times slower, and a competitor with a low rate is left out.)"""

FULLER = 4
"""The second run of a GPU has the largest N divided by this: the pilot is too small to fill a GPU (one H200: ``gpu-global``
makes 32e9 interactions/s with 4096 particles, 617e9 with 262144)."""

LONGEST_SECOND_RUN = 5.0
"""The largest estimated time of the second run in seconds; else its N is reduced. (The first rate is too low.)"""

ALL_CORES, ONE_CORE = "cpu", "cpu (1 core)"
"""The engine to which speed-ups refer, with all threads and with one."""


class Competitor(ABC):
    """Anything that computes gravity.

    Attributes:
        name: its name in the table.
        precision: ``float32``, ``mixed`` or ``float64``.
        backend: ``cpu`` or ``gpu``, whose clock measures it.
        device: the name of the processor or the GPU.
        threads: CPU threads it uses; 0 on a GPU.
        rate: the best interactions per second so far, to estimate the time of a larger N.
        took: seconds of the last evaluation that was waited for.
        measured: True once it was timed with some N.
        compile_s: seconds its first call took longer than later ones.
        suite: the kind of its rows.
        has_lecture: True if it makes the lecture's run too.
    """

    backend = "cpu"
    threads = 0
    rate = took = 0.0
    measured = False
    compile_s = 0.0
    suite = "forces"
    has_lecture = False

    def __init__(self, name: str, precision: str) -> None:
        self.name, self.precision = name, precision
        self.device = machine.cpu_name()

    @abstractmethod
    def load(self, problem: ForceProblem) -> None:
        """Load a problem's bodies, and release those of the problem before."""

    @abstractmethod
    def evaluate(self) -> None:
        """Compute the accelerations; on a GPU, only enqueue that."""

    @abstractmethod
    def acceleration(self) -> np.ndarray:
        """The last accelerations, (N, D)."""

    def bound(self, problem: ForceProblem, rows: np.ndarray) -> np.ndarray | float:
        """The largest error of the forces on some bodies that is not a mistake."""
        return rounding_bound(self.precision, problem.particles.count)

    def facts(self) -> dict[str, Any]:
        """What else its row says about the last evaluation."""
        return {}

    def law(self, problem: ForceProblem) -> ForceProblem:
        """The problem with the law that it computes."""
        return problem

    @abstractmethod
    def release(self) -> None:
        """Release the bodies."""

    def fits(self, count: int) -> bool:
        """True if there is memory for ``count`` particles."""
        return True

    def wait(self) -> None:  # noqa: B027  (a CPU is done when its call returns)
        """Wait until the enqueued work is done."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """A context manager in which it runs; it sets the number of threads."""
        yield

    def learn(self, count: int, seconds: float) -> None:
        """Update the rate with an evaluation of ``count`` particles. Small N are too slow, so the best rate is kept."""
        self.rate = max(self.rate, count**2 / seconds)

    def timed(self) -> float:
        """The time of one evaluation in seconds, until it is done."""
        with self.running():
            start = time.perf_counter()
            self.evaluate()
            self.wait()
            self.took = time.perf_counter() - start
            return self.took

    def device_times(self, repeats: int) -> list[float]:
        """The times of ``repeats`` evaluations on the GPU in seconds, excluding launches."""
        return device_times(self.evaluate, repeats)

    def warm_up(self, largest: int) -> None:
        """Compile and measure the rate, with at most :data:`PILOT` particles; on a GPU again with more."""
        first, fastest = self._pilot(min(PILOT, largest))
        self.compile_s = max(0.0, first - fastest)
        count = largest // FULLER if self.backend == "gpu" else 0
        while count and (self.expected(count) > LONGEST_SECOND_RUN or not self.fits(count)):
            count //= FULLER
        if count > PILOT:
            self._pilot(count)

    def _pilot(self, count: int) -> tuple[float, float]:
        """Seconds of the first evaluation of ``count`` particles, and of the fastest of some more; updates the rate."""
        self.load(cluster(count))
        first, others = self.timed(), [self.timed()]
        while len(others) < PILOTS and sum(others) < PILOT_SECONDS:
            others.append(self.timed())
        self.learn(count, min(others))
        return first, min(others)

    def expected(self, count: int) -> float:
        """The expected time of an evaluation of ``count`` particles in seconds."""
        return count**2 / self.rate


class EngineCompetitor(Competitor):
    """An engine of ``ENGINES``.

    Args:
        engine: its name there.
        precision: one that it offers.
        one_core: run the ``cpu`` engine on one thread, not on all.
    """

    has_lecture = True

    def __init__(self, engine: str, precision: str, one_core: bool = False) -> None:
        super().__init__(engine, precision)
        self.kind: type[Engine] = ENGINES.load(engine)
        self._engine = self.kind(CLUSTER, precision)
        self._state: State | None = None
        self.backend, self.device = self.kind.can.device, self._engine.identity().device
        self._on_all_cores = engine == ALL_CORES
        if self._on_all_cores:
            import numba

            self.threads = 1 if one_core else numba.get_num_threads()
            self.name = ONE_CORE if one_core else engine
        elif self.backend == "cpu":
            self.threads = 1

    def engine(self, gravity: Gravity) -> Engine:
        """The engine for another law."""
        return self.kind(gravity, self.precision)

    def load(self, problem: ForceProblem) -> None:
        self._state = None  # free its memory before the next state is allocated
        self._state = self._engine.load(problem.particles)

    def evaluate(self) -> None:
        assert self._state is not None, "load a problem first"
        self._state.invalidate()
        self._engine.evaluate(self._state)

    def acceleration(self) -> np.ndarray:
        assert self._state is not None, "load a problem first"
        return self._state.values("acceleration")[0]

    def bound(self, problem: ForceProblem, rows: np.ndarray) -> np.ndarray | float:
        engine = self.engine(problem.gravity)

        def of(some: np.ndarray) -> np.ndarray:
            return np.broadcast_to(engine.error(problem.particles, some).bound, some.shape)

        return on_all_cores(of, rows)

    def release(self) -> None:
        self._state = None

    def fits(self, count: int) -> bool:
        return fits(self.kind, Problem(CLUSTER, self.precision, count))

    def wait(self) -> None:
        if self._state is not None:
            self._state.progress.wait(soon=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        if not self._on_all_cores:
            yield
            return
        import numba

        before = numba.get_num_threads()
        numba.set_num_threads(self.threads)
        try:
            yield
        finally:
            numba.set_num_threads(before)
