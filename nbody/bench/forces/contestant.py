"""What is measured: an engine in one precision, on a number of threads, behind the few moves that a benchmark makes."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from nbody import machine
from nbody.bench.forces.accuracy import on_all_cores
from nbody.bench.forces.problems import CLUSTER, Problem, cluster
from nbody.bench.timing import device_times
from nbody.forces import ENGINES
from nbody.forces.engine import Engine
from nbody.law import Gravity
from nbody.state import State

PILOT = 4096
"""Particles of the run that compiles a contestant and tells how fast it is, roughly."""

PILOTS, PILOT_SECONDS = 5, 0.1
"""Evaluations of that run after the first, of which the fastest counts, and seconds after which no further one begins.
(Another program's load made one take 25 times as long; and whoever seems so slow is left out.)"""

FULLER = 4
"""A GPU is far from full with so few (one H200: ``gpu-global`` makes 32e9 interactions/s with 4096, 617e9 with 262144), so
its rate is learnt once more, with the largest N over this."""

PATIENCE = 5.0
"""Seconds that this second run may take by the rate of the first, which is too low: else it is made with fewer."""

ALL_CORES, ONE_CORE = "cpu", "cpu (1 core)"
"""The engine that speed-ups refer to, with all threads and with one."""


class Contestant(ABC):
    """Anything that computes gravity.

    Attributes:
        name: what the table calls it.
        precision: ``float32``, ``mixed`` or ``float64``.
        backend: ``cpu`` or ``gpu``: whose clock times it.
        device: the processor's or the card's own name.
        threads: CPU threads it uses; 0 on a GPU.
        rate: interactions per second, the best so far; it says how long a larger N would take.
        took: seconds of the last evaluation that was waited for.
        measured: True once it was timed with some N.
        compile_s: seconds its first call took longer than later ones.
    """

    backend = "cpu"
    threads = 0
    rate = took = 0.0
    measured = False
    compile_s = 0.0

    def __init__(self, name: str, precision: str) -> None:
        self.name, self.precision = name, precision
        self.device = machine.cpu_name()

    @abstractmethod
    def load(self, problem: Problem) -> None:
        """Take a problem's bodies to where it works, and forget the last one's."""

    @abstractmethod
    def evaluate(self) -> None:
        """Compute the accelerations; on a GPU, only enqueue that."""

    @abstractmethod
    def acceleration(self) -> np.ndarray:
        """(N, D), as computed last."""

    def condition(self, problem: Problem, rows: np.ndarray) -> np.ndarray | float:
        """See :meth:`nbody.forces.engine.Engine.condition`."""
        return 1.0

    @abstractmethod
    def release(self) -> None:
        """Forget the bodies."""

    def wait(self) -> None:  # noqa: B027  (a CPU is done when its call returns)
        """Return when what was enqueued is done."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """The surroundings in which it runs, its number of threads among them."""
        yield

    def learn(self, count: int, seconds: float) -> None:
        """Know of an evaluation of so many particles that took so long. (A small N flatters nobody.)"""
        self.rate = max(self.rate, count**2 / seconds)

    def timed(self) -> float:
        """Seconds of one evaluation, waited for."""
        with self.running():
            start = time.perf_counter()
            self.evaluate()
            self.wait()
            self.took = time.perf_counter() - start
            return self.took

    def device_times(self, repeats: int) -> list[float]:
        """Seconds of an evaluation on the GPU, so many times; the host's launches are left out."""
        return device_times(self.evaluate, repeats)

    def warm_up(self, largest: int) -> None:
        """Compile, and learn the rate, with :data:`PILOT` particles or fewer; on a GPU also with more."""
        first, fastest = self._pilot(min(PILOT, largest))
        self.compile_s = max(0.0, first - fastest)
        count = largest // FULLER if self.backend == "gpu" else 0
        while self.expected(count) > PATIENCE:
            count //= FULLER
        if count > PILOT:
            self._pilot(count)

    def _pilot(self, count: int) -> tuple[float, float]:
        """Seconds of the first evaluation of so many particles, and of the fastest of some more, which tells the rate."""
        self.load(cluster(count))
        first, others = self.timed(), [self.timed()]
        while len(others) < PILOTS and sum(others) < PILOT_SECONDS:
            others.append(self.timed())
        self.learn(count, min(others))
        return first, min(others)

    def expected(self, count: int) -> float:
        """Seconds that an evaluation of ``count`` particles should take, by the rate so far."""
        return count**2 / self.rate


class EngineContestant(Contestant):
    """An engine of ``ENGINES``.

    Args:
        engine: its name there.
        precision: one that it offers.
        one_core: run the ``cpu`` engine on one thread, not on all.
    """

    def __init__(self, engine: str, precision: str, one_core: bool = False) -> None:
        super().__init__(engine, precision)
        self.kind: type[Engine] = ENGINES.load(engine)
        self._engine = self.kind(CLUSTER, precision)
        self._state: State | None = None
        self.backend, self.device = self.kind.device, self._engine.device_name()
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

    def load(self, problem: Problem) -> None:
        """See :meth:`Contestant.load`."""
        self._state = None  # its memory is free before the next one's is taken
        self._state = self._engine.load(problem.particles)

    def evaluate(self) -> None:
        """See :meth:`Contestant.evaluate`."""
        assert self._state is not None, "load a problem first"
        self._state.invalidate()
        self._engine.evaluate(self._state)

    def acceleration(self) -> np.ndarray:
        """See :meth:`Contestant.acceleration`."""
        assert self._state is not None, "load a problem first"
        return self._state.forces()[0]

    def condition(self, problem: Problem, rows: np.ndarray) -> np.ndarray | float:
        """See :meth:`Contestant.condition`."""

        def of(some: np.ndarray) -> np.ndarray:
            return np.broadcast_to(self.kind.condition(problem.particles, problem.gravity, some), some.shape)

        return on_all_cores(of, rows)

    def release(self) -> None:
        """See :meth:`Contestant.release`."""
        self._state = None

    def wait(self) -> None:
        """See :meth:`Contestant.wait`."""
        if self._state is not None:
            self._state.synchronize(soon=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        """See :meth:`Contestant.running`."""
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
