"""Leapfrog with adaptive steps for all bodies, time-reversible: the energy of an eccentric orbit does not drift.

A step of kick-drift-kick has the length h = 1/ρ. The next one follows from the bodies at its beginning:

    ρ₊ = 2 ρ(x) - ρ₋,        ρ(x) = (1/η) (Σ_i (a_i²/|φ_i|)⁴)^(1/8)

with the acceleration a_i and the potential φ_i per unit mass. A run backwards gives the same steps, whereas h = 1/ρ(x) would
not, and the energy would drift (Huang & Leimkuhler 1997). Between two bodies √|φ|/|a| is √(r³/GM), a 2π-th of the period of
a circular orbit; it needs no softening, no jerk and one force evaluation. The sum is a smooth form of the maximum: where
another body becomes the fastest, a kink would make ρ₊ and ρ₋ differ from then on.

A frame between two steps is a shorter step from the last one, and is not fed back; so recording changes nothing.
"""

import math
from typing import Any

import numpy as np

from nbody.errors import RunFailed
from nbody.forces.engine import Engine
from nbody.integrators.encounter import nearest_pair
from nbody.integrators.integrator import Integrator, Motion
from nbody.scenario.fields import Group, Positive
from nbody.state import Column, Want
from nbody.state.host import HostState

NEEDED = Want.ACCELERATION | Want.POTENTIAL


class LeapfrogAdaptive(Integrator):
    """One force evaluation per step. ``dt``, if given, is the longest step. On the CPU."""

    class Options(Group):
        """``eta``: the step as a share of √|φ|/|a|; 0.02 makes some 300 steps per circular orbit."""

        eta: Positive = 0.02

    order = 2
    source = "Huang & Leimkuhler 1997"
    needs = Want.POTENTIAL
    adaptive = True
    lengths = "adaptive"
    columns = (Column("last_position", "D"), Column("last_velocity", "D"), Column("last_acceleration", "D"))

    def __init__(self, dt: float | None, options: Group | None = None) -> None:
        super().__init__(dt, options)
        self._rate = 0.0  # ρ of the next step
        self._time = 0.0  # of the end of the last step; the state may be ahead of it, at a frame

    @classmethod
    def refusal(cls, engine: type[Engine], precision: str) -> str:
        """See :meth:`Integrator.refusal`."""
        if not issubclass(engine.state_type, HostState):
            return "this scheme works on the CPU; choose --engine cpu, or scheme 'leapfrog'"
        return super().refusal(engine, precision)

    def start(self, motion: Motion) -> None:
        """See :meth:`Integrator.start`."""
        motion.evaluate(NEEDED)
        self._rate = self._wanted(motion)
        self._keep(motion)

    def advance(self, motion: Motion, steps: int, until: float = math.inf) -> None:
        """See :meth:`Integrator.advance`."""
        state: Any = motion.state
        if state.time != self._time:
            state.position[...], state.velocity[...] = state.last_position, state.last_velocity
            state.acceleration[...], state.time = state.last_acceleration, self._time
            state.current = Want.ACCELERATION
        motion.evaluate()
        while steps and state.time < until:
            h = min(self.dt, 1 / self._rate if self._rate else math.inf)
            if not self._rate >= 0 or math.isinf(min(h, until)) or state.time + min(h, until) == state.time:
                raise self._failed(motion, h)
            whole = state.time + h <= until
            if not whole:
                self._keep(motion)
            self._step(motion, h if whole else until - state.time)
            steps, state.step = steps - 1, state.step + 1
            if whole:
                self._time = state.time = state.time + h
                self._rate = 2 * self._wanted(motion) - self._rate
            else:
                state.time = until

    def _step(self, motion: Motion, h: float) -> None:
        motion.state.kick(h / 2)
        motion.state.drift(h)
        motion.evaluate(NEEDED)
        motion.state.kick(h / 2)

    def _keep(self, motion: Motion) -> None:
        """Keep the state as the end of the last step."""
        state: Any = motion.state
        state.last_position[...], state.last_velocity[...] = state.position, state.velocity
        state.last_acceleration[...], self._time = state.acceleration, state.time

    def _wanted(self, motion: Motion) -> float:
        """ρ of the present positions; 0 if no force acts on any body."""
        state: Any = motion.state
        a2 = (state.acceleration.astype(np.float64) ** 2).sum(axis=1)
        potential = np.abs(state.potential.astype(np.float64))
        squares = np.divide(a2, potential, out=np.zeros_like(a2), where=potential > 0)
        most = float(squares.max())
        if not 0 < most < math.inf:
            return 0.0 if most == 0 else math.nan
        return math.sqrt(most * float(((squares / most) ** 4).sum()) ** 0.25) / self.options.eta  # type: ignore[attr-defined]

    def _failed(self, motion: Motion, h: float) -> RunFailed:
        state = motion.state
        return RunFailed(
            f"step {state.step}: a time step of {h:g} at time {state.time:g} can't be made{nearest_pair(motion)}; give a "
            "smaller integrator.eta, the largest step (integrator.dt), or a softening"
        )

    def work(self, motion: Motion, steps: int, want: Want = Want.ACCELERATION) -> int:
        """See :meth:`Integrator.work`."""
        forces = steps * motion.engine.work(motion.state, NEEDED)
        return forces + (motion.engine.work(motion.state, want) if want is not Want.ACCELERATION else 0)

    def arrays(self) -> dict[str, np.ndarray]:
        """ρ of the next step, and the time of the last step's end."""
        return {"rate": np.array([self._rate, self._time])}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """See :meth:`Integrator.restore`."""
        self._rate, self._time = map(float, arrays["rate"])
