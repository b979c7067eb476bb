"""Hermite's scheme of order 4 with one step for all bodies: predict, evaluate, correct (Makino & Aarseth 1992).

    predict    x_p = x + v h + a h²/2 + j h³/6        v_p = v + a h + j h²/2        (j: jerk, da/dt)
    evaluate   a₁, j₁ at x_p, v_p
    correct    v₁ = v + (a + a₁) h/2 + (j - j₁) h²/12
               x₁ = x + (v + v₁) h/2 + (a - a₁) h²/12

With ``eta`` the next step is √(η (|a||s| + |j|²)/(|j||c| + |s|²)), the smallest over all bodies (Aarseth 1985), where
s and c, the second and third derivatives of the acceleration at the end of the step, follow from a, j, a₁ and j₁. The first
step, without them, is η/10 times the smaller of |a|/|j| and √(extent/|a|). Without ``eta`` every step is ``dt``.

At a time within an adaptive step the bodies are shown by a shorter step from its beginning, which is not fed back.
"""

import math
from typing import Any

import numpy as np

from nbody.integrators.encounter import LONGEST, too_short
from nbody.integrators.integrator import Integrator, Motion, SchemeFacts
from nbody.integrators.solvers.few_bodies import in_one_call
from nbody.scenario.values import Group, Positive
from nbody.state import Column, Outputs

REMEDY = "the largest step (integrator.dt), or a softening"


class Hermite4(Integrator):
    """One force evaluation with jerk per step.

    The next step begins with the accelerations and jerks of the predicted positions. They have separate columns, since those
    of the state may be computed again for a recorded frame.
    """

    class Options(Group):
        """``eta``: accuracy of the adaptive step, typically 0.01 to 0.02; without it, all steps are ``dt``."""

        eta: Positive | None = None

    facts = SchemeFacts(
        order=4, source="Makino & Aarseth 1992", lengths="fixed or adaptive", outputs=Outputs.JERK, power_of_dt=3,
        columns=(Column("jerk", "D"), Column("step_acceleration", "D"), Column("step_jerk", "D")),
    )  # fmt: skip

    def __init__(self, dt: float | None, options: Group | None = None) -> None:
        self._eta: float | None = options.eta if isinstance(options, self.Options) else None
        self.facts = self.facts._replace(adaptive=self._eta is not None)
        super().__init__(dt, options)
        self._next = self.dt
        self._begin, self._length = 0.0, 0.0  # of the last step, if adaptive; the length is 0 before the first one
        self._before = np.zeros((4, 0, 0))  # position, velocity, acceleration and jerk at its beginning

    def prepare(self, motion: Motion, contacts: bool = False) -> None:
        super().prepare(motion, contacts)
        self._before, self._length = np.zeros((4, motion.state.count, motion.state.dimensions), motion.state.dtype), 0.0

    def start(self, motion: Motion) -> None:
        # Evaluates the first accelerations and jerks.
        state: Any = motion.state
        motion.evaluate(Outputs.JERK)
        state.step_acceleration[...], state.step_jerk[...] = state.acceleration, state.jerk
        if self._eta is not None:
            extent = _norm(state.position - state.position.mean(axis=0)).max()
            size = _norm(state.acceleration)
            with np.errstate(divide="ignore", invalid="ignore"):  # bodies at rest have no jerk
                times = np.fmin(size / _norm(state.jerk), np.sqrt(extent / size))
            times[size == 0] = np.nan  # no force acts on them yet
            self._next = min(self.dt, 0.1 * self._eta * _smallest(times))

    def _return(self, motion: Motion, until: float) -> int:
        state: Any = motion.state
        if not self._length or not (state.clock.moment.within or until < state.clock.time):
            return 0
        state.position[...], state.velocity[...], state.step_acceleration[...], state.step_jerk[...] = self._before
        state.invalidate()
        state.clock.count(-1, self._begin)
        self._next, self._length = self._length, 0.0
        return 1

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        clock = motion.state.clock
        if in_one_call(motion):
            self._advance_few(motion, steps, until)
            return
        while steps and clock.time < until:
            begin, h = clock.time, self._next
            end = begin + h
            self._step(motion, h if end <= until else until - begin)
            steps -= 1
            if self.facts.adaptive:
                self._begin, self._length = begin, h
                clock.count(1, min(end, until), within=until < end)
            else:
                clock.count_steps(1, self.dt)

    def work(self, motion: Motion, steps: int, outputs: Outputs = Outputs.ACCELERATION) -> int:
        forces = steps * motion.engine.work(motion.state, Outputs.JERK)
        return forces + (motion.engine.work(motion.state, outputs) if outputs is not Outputs.ACCELERATION else 0)

    def arrays(self) -> dict[str, np.ndarray]:
        """The length of the next step, 0 if nothing limits it; of adaptive steps the beginning of the last one: when it is,
        the length, and the bodies."""
        found = {"next_step": np.array([self._next if math.isfinite(self._next) else 0.0])}
        if self.facts.adaptive:
            found |= {"last_step": np.array([self._begin, min(self._length, LONGEST)]), "before": self._before}
        return found

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._next = float(arrays["next_step"][0]) or math.inf
        if "last_step" in arrays:  # not from nbody 0.2
            self._begin, length = map(float, arrays["last_step"])
            self._length, self._before = length if length < LONGEST else math.inf, arrays["before"].copy()

    def _advance_few(self, motion: Motion, steps: int, until: float) -> None:
        from nbody.integrators.schemes.hermite4_few import steps_for  # imports Numba

        state: Any = motion.state
        engine, clock = motion.engine, state.clock
        made, time, self._next, last, (length, failed) = steps_for(engine.gravity.softening, state.dimensions)(
            state.position, state.velocity, state.step_acceleration, state.step_jerk, state.mass,
            (engine.gravity.G, engine.gravity.length2), (clock.time, float(self._next)), (steps, float(until)),
            (clock.origin, clock.step, float(self.dt)), float(self._eta or 0.0), self._before,
        )  # fmt: skip
        if made:
            self._begin, self._length = last if self.facts.adaptive else (0.0, 0.0)
            clock.count(made, time, within=self.facts.adaptive and time < self._begin + self._length)
            state.acceleration[...], state.jerk[...] = state.step_acceleration, state.step_jerk
            state.invalidate()
        state.progress.report(made * engine.work(state, Outputs.JERK))
        if failed:
            raise too_short(motion, length, REMEDY)

    def _step(self, motion: Motion, h: float) -> None:
        state: Any = motion.state
        if not math.isfinite(h) or state.clock.time + h == state.clock.time:
            raise too_short(motion, h, REMEDY)
        real = state.dtype.type
        h1, h2, h3 = real(h), real(h * h / 2), real(h**3 / 6)
        x, v = state.position.copy(), state.velocity.copy()
        a, j = state.step_acceleration.copy(), state.step_jerk.copy()
        state.position += v * h1 + a * h2 + j * h3
        state.velocity += a * h1 + j * h2
        state.clock.drift(h)
        motion.evaluate(Outputs.JERK)
        a1, j1 = state.step_acceleration, state.step_jerk
        a1[...], j1[...] = state.acceleration, state.jerk
        half, twelfth = real(h / 2), real(h * h / 12)
        state.velocity[...] = v + ((a + a1) * half + (j - j1) * twelfth)
        state.position[...] = x + ((v + state.velocity) * half + (a - a1) * twelfth)
        state.invalidate()
        if self._eta is not None:
            self._next = min(self.dt, self._aarseth(a, j, a1, j1, h))
            self._before[:] = x, v, a, j

    def _aarseth(self, a: np.ndarray, j: np.ndarray, a1: np.ndarray, j1: np.ndarray, h: float) -> float:
        """The next step: √(η (|a||s| + |j|²)/(|j||c| + |s|²)), the smallest over all bodies."""
        a, j, a1, j1 = (each.astype(np.float64) for each in (a, j, a1, j1))
        crackle = (12 * (a - a1) + 6 * h * (j + j1)) / h**3
        snap = (-6 * (a - a1) - h * (4 * j + 2 * j1)) / h**2 + h * crackle
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = (_norm(a1) * _norm(snap) + _norm(j1) ** 2) / (_norm(j1) * _norm(crackle) + _norm(snap) ** 2)
        assert self._eta is not None
        return math.sqrt(self._eta * _smallest(ratios))


def _norm(rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rows.astype(np.float64), axis=1)


def _smallest(values: np.ndarray) -> float:
    """The smallest number that is not NaN; infinity if there is none (no force acts on any body)."""
    return float(np.nanmin(values, initial=math.inf))
