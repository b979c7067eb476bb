"""The base class of schemes for ensembles: steps, end and closest approach of each system."""

from typing import Any

import numpy as np

from nbody.forces.engine import Engine
from nbody.integrators.integrator import Integrator, Motion
from nbody.scenario.fields import Group
from nbody.state import Want
from nbody.trajectory.systems import STATUS

DONE, ENCOUNTER, COLLISION, NOT_FINITE = range(4)
"""What ends a system; the names are :data:`nbody.trajectory.systems.STATUS`. A system that has ended stands still."""


class ManySystems(Integrator):
    """A scheme that moves S systems of n bodies each.

    Attributes:
        steps: (S,) int64, the steps that each system has made.
        clock: (S,) float64, the time that each has reached.
        status: (S,) int64, what has ended it.
        closest: (S,) float64, the shortest distance of two of its bodies so far.
    """

    own_forces = True

    def __init__(self, dt: float | None, options: Group | None = None, systems: int = 1) -> None:
        super().__init__(dt, options)
        self.systems = systems
        self.steps, self.status = np.zeros((2, systems), np.int64)
        self.clock, self.closest = np.zeros((2, systems))

    def start(self, motion: Motion) -> None:
        x, _ = self.bodies(motion)
        self.clock[:] = motion.state.time
        self.closest[:] = closest_pairs(x)

    def bodies(self, motion: Motion) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities on the host, (S, n, 3) each."""
        state = motion.state
        found = []
        for rows in state.phase_space():
            wide = np.zeros((state.count, 3))
            wide[:, : state.dimensions] = rows
            found.append(wide.reshape(self.systems, -1, 3))
        return found[0], found[1]

    def masses(self, motion: Motion) -> np.ndarray:
        """(S, n), on the host."""
        state: Any = motion.state
        mass = state.mass if hasattr(state, "mass") else state.body.copy_to_host()[:, 3]
        return np.ascontiguousarray(mass).reshape(self.systems, -1)

    def observed(self, motion: Motion) -> dict[str, Any]:
        return {
            "system_time": self.clock.copy(), "system_steps": self.steps.astype(float),
            "system_closest": self.closest.copy(), "system_status": self.status.astype(float),
        }  # fmt: skip

    def remark(self) -> str:
        # The number of systems with each status.
        if not self.status.any():
            return ""
        ends = ((name, np.count_nonzero(self.status == code)) for code, name in enumerate(STATUS))
        return f"systems: {', '.join(f'{count} {name}' for name, count in ends if count)}; see Trajectory.systems"

    @classmethod
    def working_bytes(cls, engine: type[Engine], particles: int, precision: str) -> int:
        # A copy of the columns, and positions and velocities twice, or mass and order.
        return sum(column.bytes(particles, 3, "float64") for column in cls.columns) + 12 * 8 * particles

    def work(self, motion: Motion, steps: int, want: Want = Want.ACCELERATION) -> int:
        # The engine computes only the energies of recorded frames.
        return motion.engine.work(motion.state, want) if want is not Want.ACCELERATION else 0

    def arrays(self) -> dict[str, np.ndarray]:
        """The numbers per system."""
        return {"steps": self.steps, "clock": self.clock, "status": self.status, "closest": self.closest}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.steps, self.clock = arrays["steps"].copy(), arrays["clock"].copy()
        self.status, self.closest = arrays["status"].copy(), arrays["closest"].copy()


def by_components(rows: np.ndarray) -> np.ndarray:
    """(S, n, k) as (S, k, n), C-contiguous."""
    return np.ascontiguousarray(rows.transpose(0, 2, 1))


def closest_pairs(x: np.ndarray) -> np.ndarray:
    """The shortest distance of two bodies of each system, (S,); ``x``: (S, n, 3)."""
    least = np.full(len(x), np.inf)
    for i in range(1, x.shape[1]):
        d = x[:, :i] - x[:, i : i + 1]
        least = np.minimum(least, (d * d).sum(axis=2).min(axis=1))
    return np.sqrt(least)
