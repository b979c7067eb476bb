"""What is measured: an engine in one precision, on a number of threads, behind the few moves that a benchmark makes."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from nbody import machine
from nbody.bench.problems import CLUSTER, Problem, cluster
from nbody.bench.queued import device_times
from nbody.forces import ENGINES
from nbody.forces.engine import Engine
from nbody.pairlaw import Gravity
from nbody.state import State

PILOT = 4096
"""Particles of the run that compiles a contestant and tells how fast it is, roughly."""


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
        compile_s: seconds its first call took longer than its second.
    """

    backend = "cpu"
    threads = 0
    rate = 0.0
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

    def timed(self) -> float:
        """Seconds of one evaluation, waited for."""
        with self.running():
            start = time.perf_counter()
            self.evaluate()
            self.wait()
            return time.perf_counter() - start

    def device_times(self, repeats: int) -> list[float]:
        """Seconds of an evaluation on the GPU, so many times; the host's launches are left out."""
        return device_times(self.evaluate, repeats)

    def warm_up(self, largest: int) -> None:
        """Compile, and learn the rate, with a problem no larger than :data:`PILOT`."""
        count = min(PILOT, largest)
        self.load(cluster(count))
        first, second = self.timed(), self.timed()
        self.compile_s, self.rate = max(0.0, first - second), count**2 / second

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
        self._state.fresh = False
        self._engine.evaluate(self._state)

    def acceleration(self) -> np.ndarray:
        """See :meth:`Contestant.acceleration`."""
        assert self._state is not None, "load a problem first"
        return self._state.forces()[0]

    def condition(self, problem: Problem, rows: np.ndarray) -> np.ndarray | float:
        """See :meth:`Contestant.condition`."""
        return self.kind.condition(problem.particles, problem.gravity, rows)

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
