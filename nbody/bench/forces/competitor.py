"""A competitor of the force suite: an engine in one precision on a number of threads, with what timing needs."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np

from nbody.bench.forces.problems import CLUSTER, ForceProblem, cluster, on_all_cores
from nbody.bench.forces.rows import ALL_CORES, ONE_CORE
from nbody.compute.in_kernels.cpu_threads import threads
from nbody.forces import ENGINES
from nbody.forces.engine import Engine
from nbody.forces.problem import Problem
from nbody.forces.resources import fits
from nbody.law import Gravity
from nbody.scenario.values import Group
from nbody.state import Outputs, State

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


class Speed:
    """What is known of an engine's speed, to estimate the time of a larger N.

    Attributes:
        rate: the best N**growth per second so far; 0 if none is known.
        took: seconds of the last evaluation that was waited for.
        measured: True once it was timed with some N.
    """

    def __init__(self, kind: type[Engine]) -> None:
        self._kind = kind
        self.rate = self.took = 0.0
        self.measured = False

    def learn(self, count: int, seconds: float) -> None:
        """Update the rate with an evaluation of ``count`` particles. Small N are too slow, so the best rate is kept."""
        self.rate = max(self.rate, count**self._kind.can.growth / seconds)

    def expected(self, count: int) -> float:
        """The expected time of an evaluation of ``count`` particles in seconds."""
        return count**self._kind.can.growth / self.rate


class Competitor:
    """An engine that is timed.

    Attributes:
        name: its name in the table.
        kind: the engine's class.
        backend, device: ``cpu`` or ``gpu``, whose clock measures it, and the device's name.
        threads: CPU threads that it uses; 0 on a GPU.
        gravity: the law that it computes.
        running: the block in which it runs, on its number of threads.
        speed: what is known of its speed.
    """

    def __init__(
        self, name: str, kind: type[Engine], precision: str, options: Group | None = None, threads: int = 1,
        gravity: Gravity = CLUSTER, running: Callable[[], AbstractContextManager] = nullcontext,
    ) -> None:  # fmt: skip
        self.name, self.kind, self.precision, self._options = name, kind, precision, options
        self._engine = self.engine(gravity)
        self.gravity = self._engine.gravity
        self.backend, self.device = kind.can.device, self._engine.identity().device
        self.threads = 0 if self.backend == "gpu" else threads
        self.running, self.speed = running, Speed(kind)
        self._state: State | None = None

    @classmethod
    def of(cls, engine: str, precision: str, one_core: bool = False, accuracy: float | None = None) -> "Competitor":
        """An engine of ``ENGINES``. ``one_core``: the ``cpu`` engine on one thread, not on all; ``accuracy``: a tree's."""
        kind: type[Engine] = ENGINES.load(engine)
        name, options, used = engine, None, 1
        if one_core:
            return cls(ONE_CORE, kind, precision, running=partial(threads, 1))
        if accuracy is not None:
            name, options = f"{engine}, {accuracy:g}", kind.Options.model_validate({"accuracy": accuracy})
        if engine == ALL_CORES or (kind.can.tree and kind.can.device == "cpu"):
            import numba

            used = numba.get_num_threads()
        return cls(name, kind, precision, options, used)

    def engine(self, gravity: Gravity) -> Engine:
        return self.kind(gravity, self.precision, self._options)

    def load(self, problem: ForceProblem) -> None:
        """Load a problem's bodies, and release those of the problem before."""
        self._state = None  # free its memory before the next state is allocated
        self._state = self._engine.load(problem.particles)
        if self.kind.can.tree:
            self.timed()  # a second one knows the size of the forces, as in each step of a run

    def evaluate(self) -> None:
        """Compute the accelerations; on a GPU, only enqueue that."""
        assert self._state is not None, "load a problem first"
        self._state.invalidate()
        self._engine.evaluate(self._state)

    def acceleration(self) -> np.ndarray:
        """The last accelerations, (N, D)."""
        assert self._state is not None, "load a problem first"
        return self._state.values("acceleration")[0]

    def bound(self, problem: ForceProblem, rows: np.ndarray) -> np.ndarray:
        """The largest error of the forces on some bodies that is not a mistake."""
        engine = self.engine(problem.gravity)

        def of(some: np.ndarray) -> np.ndarray:
            return np.broadcast_to(engine.error(problem.particles, some).bound, some.shape)

        return on_all_cores(of, rows)

    @property
    def accuracy(self) -> float | None:
        return getattr(self._options, "accuracy", None)

    def interactions(self) -> int | None:
        """The pairs and moments that the last evaluation has computed, if they are fewer than N²."""
        assert self._state is not None
        computed = self._engine.work(self._state, Outputs.ACCELERATION)
        return computed if computed < self._state.count**2 else None

    def release(self) -> None:
        self._state = None

    def fits(self, count: int) -> bool:
        """True if there is memory for ``count`` particles."""
        return fits(self.kind, Problem(CLUSTER, self.precision, count))

    def timed(self) -> float:
        """The time of one evaluation in seconds, until it is done."""
        assert self._state is not None, "load a problem first"
        with self.running():
            start = time.perf_counter()
            self.evaluate()
            self._state.progress.wait(soon=True)
            self.speed.took = time.perf_counter() - start
            return self.speed.took

    def warm_up(self, largest: int) -> None:
        """Compile and measure the rate, with at most :data:`PILOT` particles; on a GPU again with more."""
        self._pilot(min(PILOT, largest))
        count = largest // FULLER if self.backend == "gpu" else 0
        while count and (self.speed.expected(count) > LONGEST_SECOND_RUN or not self.fits(count)):
            count //= FULLER
        if count > PILOT:
            self._pilot(count)

    def _pilot(self, count: int) -> None:
        """Compile, and update the rate with the fastest of some evaluations of ``count`` particles."""
        self.load(cluster(count))
        self.timed()
        times = [self.timed()]
        while len(times) < PILOTS and sum(times) < PILOT_SECONDS:
            times.append(self.timed())
        self.speed.learn(count, min(times))
