"""Wisdom and Holman's map for ensembles, on all cores or on a GPU. All systems have the same time step.

A system in which two planets meet, or whose numbers are no longer finite, stands still from then on; the others go on.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from nbody.errors import InputError
from nbody.fields.field import POST_NEWTONIAN
from nbody.forces.engine import Engine
from nbody.forces.problem import Problem, Refusal
from nbody.integrators.integrator import Motion
from nbody.integrators.solvers.systems.scheme import DONE, ManySystems, MapsAsked, by_components, facts_of_systems
from nbody.integrators.solvers.wisdom_holman import WisdomHolman, permutations
from nbody.registry import imported

SYSTEMS = "nbody.integrators.solvers.systems."
MAPS = {"cpu": f"{SYSTEMS}cpu_map:HostMaps", "gpu": f"{SYSTEMS}gpu_map:DeviceMaps"}
MOST_PLANETS = 32
"""Planets per system on a GPU, where each has a lane of a warp."""


class Maps(Protocol):
    """The maps of S systems of n bodies, where the state is."""

    def begin(self, x: np.ndarray, v: np.ndarray) -> None:
        """Set the maps' coordinates from positions and velocities on the host, (S, 3, n) in the maps' order."""

    def advance(self, steps: int, made: np.ndarray, status: np.ndarray, closest: np.ndarray) -> None:
        """Make ``steps`` steps of all systems that have not ended; the arrays, (S,) on the host, are the ``ends`` of
        :func:`.cpu_map.maps`."""


class WisdomHolmanSystems(ManySystems):
    """Many systems by :class:`.wisdom_holman.WisdomHolman`, whose bits each system gets on a CPU."""

    Options = WisdomHolman.Options  # type: ignore[assignment]
    _options: WisdomHolman.Options
    facts = facts_of_systems(WisdomHolman.facts)._replace(precisions={"cpu": ("float64",), "gpu": ("float64",)})

    _sorted = np.zeros((0, 0), np.int64)
    _maps: Maps | None = None

    @classmethod
    def supports(cls, engine: type[Engine] | Engine, problem: Problem) -> str:
        if engine.can.device == "gpu" and problem.particles > (most := MOST_PLANETS + 1) * problem.systems > 0:
            bodies = problem.particles // problem.systems
            return Refusal(f"on a GPU a system has at most {most} bodies, not {bodies}", "engine", "choose engine cpu")
        asked = problem.of_scheme
        if engine.can.device == "gpu" and asked.tangents and any(each.kind != POST_NEWTONIAN for each in asked.fields):
            return Refusal("on a GPU the variational equations know no external fields", "engine", "choose engine cpu")
        return super().supports(engine, problem)

    def start(self, motion: Motion) -> None:
        # The planets of each system are sorted by their distance from its star.
        super().start(motion)
        x, v = self._bodies(motion)
        m = self._masses(motion)
        heavy = m[:, 0] > m[:, 1:].max(axis=1)
        if not heavy.all():
            raise InputError(
                f"initial: system {int(np.argmin(heavy))}: this scheme moves planets about a star; body 0 must be the "
                "heaviest"
            )
        distance = np.sqrt(((x - x[:, :1]) ** 2).sum(axis=2))
        self._sorted = np.argsort(distance, axis=1, kind="stable")
        rows = self._sorted[:, :, None]
        x, v = (by_components(np.take_along_axis(each, rows, axis=1)) for each in (x, v))
        self._backend(motion).begin(x, v)

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        # ``until`` is ignored, since the run's schedule counts steps.
        state = motion.state
        self._backend(motion).advance(steps, self._steps, self._status, self._closest)
        state.clock.count_steps(steps, self.dt)
        # A system that has ended has made all steps of the run but the last ones.
        self._clock[:] = np.where(
            self._status == DONE, state.clock.time, state.clock.time - (state.clock.step - self._steps) * self.dt
        )
        state.invalidate()

    def _backend(self, motion: Motion) -> Maps:
        """The maps of all systems, where the state is."""
        if self._maps is None:
            kind: Callable[..., Maps] = imported(MAPS[motion.engine.can.device])
            mass = motion.engine.gravity.G * np.take_along_axis(self._masses(motion), self._sorted, axis=1)
            self._maps = kind(MapsAsked(motion, mass, self._sorted, self.dt, self._options, self._tangents))
        return self._maps

    def prepare(self, motion: Motion, contacts: bool = False) -> None:
        super().prepare(motion, contacts)
        self._sorted = np.zeros((self._systems, motion.state.count // self._systems), np.int64)

    def arrays(self) -> dict[str, np.ndarray]:
        """The numbers per system, and its bodies in the order of their distances from the star."""
        return super().arrays() | {"order": self._sorted}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self._sorted, self._maps = permutations(arrays["order"]), None
