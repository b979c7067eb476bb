"""The Gauss–Radau scheme of order 15 for ensembles, on all cores: each system has its own adaptive steps.

A step of the run is a step of every system that has not passed the next frame; without a time to go to, of those whose last
step ends at the present time, which then becomes the earliest end of a step. All systems are shown at the same time, each
from the polynomial of its last step.
"""

import math

import numpy as np

from nbody.forces.engine import Engine
from nbody.forces.problem import Problem, Refusal
from nbody.integrators.adaptive import BEGIN, END, LENGTH, NEXT, UNKNOWN
from nbody.integrators.few_bodies import shortest_times
from nbody.integrators.integrator import Motion
from nbody.integrators.solvers.ias15 import (
    IAS15,
    field_times,
    first_growth,
    forces_of,
    grown,
    restored_growth,
    rows_of,
    show,
    sums_of,
)
from nbody.integrators.solvers.systems.chunks import divided
from nbody.integrators.solvers.systems.scheme import DONE, ManySystems, facts_of_systems


class IAS15Systems(ManySystems):
    """Many systems by :class:`~nbody.integrators.solvers.ias15.IAS15`, whose bits each system gets."""

    Options = IAS15.Options  # type: ignore[assignment]
    _options: IAS15.Options
    facts = facts_of_systems(IAS15.facts)

    _with_columns_of = IAS15._with_columns_of
    _begin, _last, _growth = np.zeros((0, 3, 3, 0)), np.zeros((0, 4)), np.zeros((0, 2, 0, 5))

    @classmethod
    def supports(cls, engine: type[Engine] | Engine, problem: Problem) -> str:
        if engine.can.device == "gpu":
            return Refusal("the systems of an ensemble make adaptive steps on the CPU", "engine", "choose engine cpu")
        return super().supports(engine, problem)

    def prepare(self, motion: Motion, contacts: bool = False) -> None:
        super().prepare(motion, contacts)
        systems, rows = self._systems, 3 + 3 * self._tangents.count
        self._begin = np.zeros((systems, 3, rows, motion.state.count // systems))
        self._last, self._growth = np.zeros((systems, 4)), np.zeros((systems, 2, 0, 5))

    def start(self, motion: Motion) -> None:
        # First steps, which are repeated if they turn out too long.
        super().start(motion)
        self._growth = first_growth(motion.host, self._tangents)
        x, v = self._bodies(motion)
        scales = shortest_times(x, v, self._masses(motion), motion.engine.gravity)
        following = np.fmin(self.dt, 0.01 * np.fmin(scales, field_times(motion, self._systems)))
        following[np.isinf(following)] = 1.0  # no force: any step will do, and a checkpoint holds finite numbers
        self._last[:, LENGTH], self._last[:, NEXT] = UNKNOWN, following

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        if math.isfinite(until):
            self._make(motion, steps, until)
            return
        clock = motion.state.clock
        last = clock.step + steps
        while clock.step < last and (self._status == DONE).any():
            self._make(motion, 1, math.nextafter(clock.time, math.inf))
            self._make(motion, 0, float(self._last[self._status == DONE, END].min(initial=math.inf)))

    def _make(self, motion: Motion, steps: int, until: float) -> None:
        """Make at most ``steps`` steps of every system, and show all at the time ``until`` or before."""
        from nbody.integrators.solvers.pair_forces import Attraction
        from nbody.integrators.solvers.radau import RadauStep, StepLimits
        from nbody.integrators.solvers.systems.ias15_kernel import steps_of_all

        state = motion.host
        gravity, tangents = motion.engine.gravity, self._tangents
        x, v = rows_of(state, tangents, self._systems)
        sums = sums_of(state, self._systems)
        if self._last[0, LENGTH] == UNKNOWN:
            self._begin[:, 0], self._begin[:, 1] = x, v
            self._last[:, BEGIN], self._last[:, LENGTH], self._last[:, END] = self._clock, 0.0, self._clock
        kind, terms, more = forces_of(motion, x.shape[-1], tangents)
        eta = (5040 * self._options.epsilon) ** (1 / 7)
        divided(
            steps_of_all(kind, terms, state.dimensions), self._systems, x, v,
            Attraction(self._masses(motion), gravity.G, gravity.length2, more),
            RadauStep(self._begin, self._last, sums[0], sums[1], sums[2], sums[3], self._growth),
            StepLimits(float(until), math.inf, steps, self.dt, eta),
            (self._steps, self._status, self._closest),
        )  # fmt: skip
        self._clock[:] = np.minimum(self._last[:, END], until)
        time = min(self._clock[self._status == DONE], default=until)
        state.clock.count(int(self._steps.max()) - state.clock.step, time)
        show(state, x, v, sums, tangents, self._growth)

    def arrays(self) -> dict[str, np.ndarray]:
        """The numbers per system, and the arrays of :class:`~nbody.integrators.solvers.ias15.IAS15`."""
        return super().arrays() | {"begin": self._begin, "last": self._last} | grown(self._growth)

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        if "last" in arrays:
            self._begin, self._last = arrays["begin"].copy(), arrays["last"].copy()
            self._growth = restored_growth(arrays, self._tangents)
        else:  # nbody 0.2: the bodies are at the end of a step
            self._last[:, LENGTH], self._last[:, NEXT] = UNKNOWN, arrays["next_step"]
