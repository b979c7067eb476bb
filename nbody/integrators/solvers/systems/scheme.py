"""The base class of schemes for ensembles: steps, end and closest approach of each system."""

from typing import Any, NamedTuple

import numpy as np

from nbody.forces.engine import Engine
from nbody.forces.problem import Problem, Refusal
from nbody.integrators.facts import SchemeFacts, SchemeReport, WorkingBytes
from nbody.integrators.integrator import Integrator, Motion
from nbody.integrators.tangents import Tangents
from nbody.scenario.values import Group
from nbody.state import bytes_of
from nbody.trajectory.structure.layout import SYSTEM_STATUS as STATUS

DONE, ENCOUNTER, COLLISION, NOT_FINITE = map(STATUS.index, ("done", "close encounter", "collision", "not finite"))
"""What ends a system, as indices into :data:`layout.SYSTEM_STATUS`. A system that has ended stands still."""


def facts_of_systems(facts: SchemeFacts) -> SchemeFacts:
    """The facts of a scheme that moves many systems as another one, with these facts, moves one."""

    def memory(engine: type[Engine], particles: int, precision: str) -> WorkingBytes:
        # A copy of the columns, and positions and velocities twice, or mass and order.
        return WorkingBytes(bytes_of(facts.columns, particles, 3, "float64") + 12 * 8 * particles)

    return facts._replace(memory=memory)


class MapsAsked(NamedTuple):
    """The maps of S systems of n bodies.

    Attributes:
        motion: the bodies; the columns ``map_position`` and ``map_velocity`` of its state are the maps' coordinates.
        mass: (S, n) G times the masses, in the order of the maps.
        order: (S, n) the bodies in that order.
        dt: the time step.
        chosen: the options of :class:`~nbody.integrators.solvers.wisdom_holman.WisdomHolman`.
        tangents: the tangent vectors of each system.
    """

    motion: Motion
    mass: np.ndarray
    order: np.ndarray
    dt: float
    chosen: Any
    tangents: Tangents


class ManySystems(Integrator):
    """A scheme that moves S systems of n bodies each."""

    # (S,) each: the steps that a system has made, the time that it has reached, what has ended it, and the shortest distance
    # of two of its bodies so far.
    _steps: np.ndarray
    _clock: np.ndarray
    _status: np.ndarray
    _closest: np.ndarray

    def __init__(
        self, dt: float | None, options: Group | None = None, systems: int = 1, tangents: Tangents | None = None
    ) -> None:
        super().__init__(dt, options, tangents)
        self._systems = systems
        self._steps, self._status = np.zeros((2, systems), np.int64)
        self._clock, self._closest = np.zeros((2, systems))

    @classmethod
    def supports(cls, engine: type[Engine] | Engine, problem: Problem) -> str:
        if problem.of_scheme.collisions:
            return Refusal("the systems of an ensemble have no collisions", "collisions", "remove 'collisions'")
        if problem.of_scheme.changes:
            return Refusal("all systems of an ensemble have the same number of bodies", "ensemble", "")
        if problem.ranks > 1:
            return "an ensemble does not divide its work over ranks; start it alone"
        return super().supports(engine, problem._replace(systems=0))

    def start(self, motion: Motion) -> None:
        x, _ = self._bodies(motion)
        self._clock[:] = motion.state.clock.time
        self._closest[:] = closest_pairs(x)

    def _bodies(self, motion: Motion) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities on the host, (S, n, 3) each."""
        state = motion.state
        found = []
        for rows in state.values("position", "velocity"):
            wide = np.zeros((state.count, 3))
            wide[:, : state.dimensions] = rows
            found.append(wide.reshape(self._systems, -1, 3))
        return found[0], found[1]

    def _masses(self, motion: Motion) -> np.ndarray:
        """(S, n), on the host."""
        mass: np.ndarray = motion.state.values("mass")[0]
        return mass.reshape(self._systems, -1)

    def report(self, motion: Motion) -> SchemeReport:
        observed = {
            "system_time": self._clock.copy(), "system_steps": self._steps.astype(float),
            "system_closest": self._closest.copy(), "system_status": self._status.astype(float),
            **self._tangents.observed("system_"),
        }  # fmt: skip
        ends = ((name, np.count_nonzero(self._status == code)) for code, name in enumerate(STATUS))
        listed = ", ".join(f"{count} {name}" for name, count in ends if count)
        message = f"systems: {listed}; see Trajectory.systems" if self._status.any() else ""
        return super().report(motion)._replace(observed=observed, message=message)

    def arrays(self) -> dict[str, np.ndarray]:
        """The numbers per system."""
        own = {"steps": self._steps, "clock": self._clock, "status": self._status, "closest": self._closest}
        return super().arrays() | own

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self._steps, self._clock = arrays["steps"].copy(), arrays["clock"].copy()
        self._status, self._closest = arrays["status"].copy(), arrays["closest"].copy()


def by_components(rows: np.ndarray) -> np.ndarray:
    """(S, n, k) as (S, k, n), C-contiguous."""
    return np.ascontiguousarray(rows.transpose(0, 2, 1))


def closest_pairs(x: np.ndarray) -> np.ndarray:
    """The shortest distance of two bodies of each system, (S,); ``x``: (S, n, 3). As :func:`.arrays.closest_pair`, for both
    processors and without a compiler."""
    least = np.full(len(x), np.inf)
    for i in range(1, x.shape[1]):
        d = x[:, :i] - x[:, i : i + 1]
        least = np.minimum(least, (d * d).sum(axis=2).min(axis=1))
    return np.sqrt(least)
