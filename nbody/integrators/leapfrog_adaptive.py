"""Leapfrog with adaptive steps for all bodies, time-reversible: the energy of an eccentric orbit does not drift.

A step of kick-drift-kick has the length h = 1/ρ. The next one follows from the bodies at its beginning:

    ρ₊ = 2 ρ(x, v) - ρ₋,        ρ(x, v) = (1/η) (Σ_{i<j} (v²/r² + G(m_i + m_j)/r³)⁸)^(1/16)

with the softened distance r and the relative speed v of each pair. A run backwards makes the same steps, whereas with
h = 1/ρ(x, v) it would not, and the energy would drift (Huang & Leimkuhler 1997). The sum is a smooth form of the maximum:
where another pair becomes the fastest, a kink would make ρ₊ and ρ₋ differ from then on. It needs no softening and no jerk;
it is one more pass over the pairs.

A frame within a step is a shorter step from the beginning of that one, and is not fed back; so recording changes nothing.
"""

import math
from typing import Any

import numpy as np

from nbody.forces.engine import Engine
from nbody.forces.problem import Problem
from nbody.integrators.encounter import LONGEST, too_short
from nbody.integrators.few_bodies import components, in_one_call, shortest_time
from nbody.integrators.integrator import Integrator, Motion, SchemeFacts
from nbody.integrators.leapfrog_adaptive_kernels import rate, steps_for
from nbody.scenario.fields import Group, Positive
from nbody.state import Column, Outputs

ALONE = 512
"""Fewer bodies than this are left to one core: waking the others costs as much."""


class LeapfrogAdaptive(Integrator):
    """A force evaluation and a pass over the pairs per step. ``dt``, if given, is the longest step. On the CPU."""

    class Options(Group):
        """``eta``: the step as a share of the shortest time r/√(v² + G(m_i + m_j)/r) of a pair."""

        eta: Positive = 0.05

    facts = SchemeFacts(
        order=2, source="Huang & Leimkuhler 1997", lengths="adaptive", adaptive=True, leaves=Outputs.ACCELERATION,
        columns=(Column("last_position", "D"), Column("last_velocity", "D"), Column("last_acceleration", "D")),
    )  # fmt: skip

    def __init__(self, dt: float | None, options: Group | None = None) -> None:
        super().__init__(dt, options)
        self._rate = self._scale = 0.0  # ρ of the next step, and ρ(x, v) η
        self._begin = self._length = 0.0  # of the step that is under way; without one the length is 0

    @classmethod
    def supports(cls, engine: type[Engine] | Engine, problem: Problem) -> str:
        if engine.can.device != "cpu":
            return "this scheme works on the CPU"
        if problem.fields and problem.unlimited:
            return "the steps of this scheme follow from the pairs alone, not from external fields"
        return super().supports(engine, problem)

    def start(self, motion: Motion) -> None:
        motion.evaluate()
        self._scale = 1 / shortest_time(motion)
        self._rate, self._length = self._wanted(motion), 0.0
        self._keep(motion)

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        state: Any = motion.state
        clock = state.clock
        if clock.time != self._end:  # within a step, which is made again
            state.position[...], state.velocity[...] = state.last_position, state.last_velocity
            state.acceleration[...], clock.time = state.last_acceleration, self._begin
            clock.current = Outputs.ACCELERATION
            steps, clock.step, self._length = steps + 1, clock.step - 1, 0.0
        motion.evaluate()
        while steps and clock.time < until:
            if made := self._few_steps(motion, steps, until) if in_one_call(motion) else 0:
                steps -= made
                continue
            h = min(self.dt, 1 / self._rate if self._rate else math.inf)
            if not self._rate >= 0 or math.isinf(min(h, until)) or clock.time + min(h, until) == clock.time:
                raise too_short(motion, h, "a smaller integrator.eta, the largest step (integrator.dt), or a softening")
            end = clock.time + h
            whole = end <= until
            if not whole:
                self._keep(motion)
                self._length = h
            self._step(motion, h if whole else until - clock.time)
            steps, clock.step, clock.time = steps - 1, clock.step + 1, min(end, until)
            if whole:
                self._begin, self._rate = end, 2 * self._wanted(motion) - self._rate

    @property
    def _end(self) -> float:
        """The time at which the step under way ends, or the last one has ended."""
        return self._begin + self._length

    def _few_steps(self, motion: Motion, steps: int, until: float) -> int:
        """Make steps that end before the time ``until``, at most ``steps``. Returns their number."""
        state: Any = motion.state
        law, clock = motion.engine.gravity, state.clock
        made, self._begin, self._rate, self._scale = steps_for(law.softening, state.dimensions)(
            state.position, state.velocity, state.acceleration, state.mass, (law.G, law.length2),
            (clock.time, float(self.dt)), (steps, float(until)), (float(self._rate), float(self._scale)),
            self._options.eta,  # type: ignore[attr-defined]
        )  # fmt: skip
        if made:
            clock.step, clock.time, clock.current = clock.step + made, self._begin, self.facts.leaves
        state.progress.report(made * motion.engine.work(state))
        return int(made)

    def _step(self, motion: Motion, h: float) -> None:
        motion.state.moves.kick(h / 2)
        motion.state.moves.drift(h)
        motion.evaluate()
        motion.state.moves.kick(h / 2)

    def _keep(self, motion: Motion) -> None:
        """Keep the state as the beginning of the next step."""
        state: Any = motion.state
        state.last_position[...], state.last_velocity[...] = state.position, state.velocity
        state.last_acceleration[...], self._begin = state.acceleration, state.clock.time

    def _wanted(self, motion: Motion) -> float:
        """ρ of the present positions and velocities; 0 if no time scale exists."""
        state: Any = motion.state
        gravity, eta = motion.engine.gravity, self._options.eta  # type: ignore[attr-defined]
        if not self._scale:
            return 0.0
        x, v = components(state.position), components(state.velocity)
        self._scale = rate(state.count >= ALONE)(x, v, state.mass, gravity.G, gravity.length2, self._scale)
        return self._scale / eta

    def work(self, motion: Motion, steps: int, outputs: Outputs = Outputs.ACCELERATION) -> int:
        forces = steps * motion.engine.work(motion.state)
        return forces + (
            motion.engine.work(motion.state, outputs, self.facts.leaves) if outputs is not Outputs.ACCELERATION else 0
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """ρ of the next step, the scale of ρ, and the beginning and the length of the one under way."""
        return {"last_step": np.array([self._rate, self._scale, self._begin, min(self._length, LONGEST)])}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        # nbody 0.2: ρ of the next step, the scale, and the time of the last step's end.
        found = arrays["last_step"] if "last_step" in arrays else [*arrays["rate"], 0.0]
        self._rate, self._scale, self._begin, length = map(float, found)
        self._length = length if length < LONGEST else math.inf
