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
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit, prange

from nbody import compute
from nbody.forces.direct.cpu_few import adding_pairs
from nbody.forces.direct.cpu_roots import FAST
from nbody.forces.engine import Engine, device_of
from nbody.forces.problem import Problem
from nbody.integrators.encounter import LONGEST, too_short
from nbody.integrators.integrator import Integrator, Motion, SchemeFacts
from nbody.integrators.solvers.few_bodies import components, in_one_call, shortest_time
from nbody.scenario.values import Group, Positive
from nbody.state import Column, Outputs


def rate_of_pairs(x, v, m, G, length2, scale):
    """ρ η of (3, N) positions and velocities, to be compiled. ``scale`` is near the result, so that its powers neither
    overflow nor vanish."""
    sums, unit = np.zeros(m.size), 1.0 / scale**2
    for i in prange(m.size):
        total = 0.0
        xi, yi, zi, vxi, vyi, vzi, mi = x[0, i], x[1, i], x[2, i], v[0, i], v[1, i], v[2, i], m[i]
        for j in range(i):
            dx, dy, dz = x[0, j] - xi, x[1, j] - yi, x[2, j] - zi
            vx, vy, vz = v[0, j] - vxi, v[1, j] - vyi, v[2, j] - vzi
            r2 = length2 + dx * dx + dy * dy + dz * dz
            both = mi + m[j]
            square = unit * (vx * vx + vy * vy + vz * vz + G * both / np.sqrt(r2)) / r2
            square *= square
            square *= square
            total += square * square if both > 0.0 else 0.0
        sums[i] = total
    return scale * sums.sum() ** (1 / 16)


@cache
def rate(parallel: bool) -> Callable:
    """:func:`rate_of_pairs`, compiled."""
    return compute.kernel("cpu", parallel=parallel, fastmath=FAST)(rate_of_pairs)


rate_alone = njit(rate_of_pairs, error_model="numpy", fastmath=FAST)


@cache
def steps_for(softening: str, dimensions: int) -> Callable:
    """The kernel of a law."""
    add_pairs = adding_pairs(softening, dimensions)

    def make_steps(x, v, a, m, law, moment, limits, rates, eta, before):
        """Make steps until the next one would go beyond the end, or can't be made.

        Args:
            x, v, a: (N, D) positions, velocities and accelerations, changed in place.
            law: G and the softening length squared.
            moment: the time, and the largest step.
            limits: the number of steps, and the time until.
            rates: ρ of the next step, and ρ(x, v) η.
            before: three arrays that get x, v and a at the beginning of the last step.

        Returns:
            The number of steps made, the beginning and the length of the last one, the rates there, and the rates now.
        """
        (time, longest), (steps, until), (rate, scale) = moment, limits, rates
        (G, length2), (x0, v0, a0) = law, before
        last, earlier = (time, 0.0), (rate, scale)
        sums, place, speed = np.empty((3, m.size)), np.zeros((3, m.size)), np.zeros((3, m.size))
        real, done = x.dtype.type, 0
        while done < steps:
            h = min(longest, 1 / rate if rate > 0.0 else np.inf)
            if not (rate >= 0.0 and h < np.inf and time + h != time and time + h <= until):
                break
            half, whole = real(h / 2), real(h)
            for i in range(m.size):
                for d in range(dimensions):
                    x0[i, d], v0[i, d], a0[i, d] = x[i, d], v[i, d], a[i, d]
                    v[i, d] += a[i, d] * half
                    x[i, d] += v[i, d] * whole
            add_pairs(x, m, G, length2, sums)
            for i in range(m.size):
                for d in range(dimensions):
                    a[i, d] = sums[d, i]
                    v[i, d] += a[i, d] * half
                    place[d, i], speed[d, i] = x[i, d], v[i, d]
            done, last, earlier = done + 1, (time, h), (rate, scale)
            time += h
            if scale > 0.0:
                scale = rate_alone(place, speed, m, G, length2, scale)
            rate = 2 * (scale / eta) - rate
        return done, last, earlier, (rate, scale)

    return compute.kernel("cpu")(make_steps)


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
        self._begin = self._length = 0.0  # of the last step; before the first one the length is 0
        self._before = 0.0, 0.0  # rate and scale at its beginning

    @classmethod
    def supports(cls, engine: type[Engine] | Engine, problem: Problem) -> str:
        if device_of(engine) != "cpu":
            return "this scheme works on the CPU"
        if problem.fields and problem.unlimited:
            return "the steps of this scheme follow from the pairs alone, not from external fields"
        return super().supports(engine, problem)

    def start(self, motion: Motion) -> None:
        motion.evaluate()
        self._scale = 1 / shortest_time(motion)
        self._rate, self._begin, self._length = self._wanted(motion), motion.state.clock.time, 0.0

    def _is_within_a_step(self, motion: Motion) -> bool:
        return self._length > 0 and motion.state.clock.time != self._begin + self._length

    def _return(self, motion: Motion, until: float) -> int:
        state: Any = motion.state
        if not self._length or not (self._is_within_a_step(motion) or until < state.clock.time):
            return 0
        state.position[...], state.velocity[...] = state.last_position, state.last_velocity
        state.acceleration[...], state.clock.current = state.last_acceleration, Outputs.ACCELERATION
        (self._rate, self._scale), state.clock.time, self._length = self._before, self._begin, 0.0
        state.clock.step -= 1
        return 1

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        clock = motion.state.clock
        motion.evaluate()
        while steps and clock.time < until:
            if made := self._few_steps(motion, steps, until) if in_one_call(motion) else 0:
                steps -= made
                continue
            h = min(self.dt, 1 / self._rate if self._rate else math.inf)
            if not self._rate >= 0 or math.isinf(min(h, until)) or clock.time + min(h, until) == clock.time:
                raise too_short(motion, h, "a smaller integrator.eta, the largest step (integrator.dt), or a softening")
            self._keep(motion, h)
            end = clock.time + h
            self._step(motion, h if end <= until else until - clock.time)
            steps, clock.step, clock.time = steps - 1, clock.step + 1, min(end, until)
            if end <= until:
                self._rate = 2 * self._wanted(motion) - self._rate

    def _few_steps(self, motion: Motion, steps: int, until: float) -> int:
        """Make steps that end before the time ``until``, at most ``steps``. Returns their number."""
        state: Any = motion.state
        law, clock = motion.engine.gravity, state.clock
        made, last, before, rates = steps_for(law.softening, state.dimensions)(
            state.position, state.velocity, state.acceleration, state.mass, (law.G, law.length2),
            (clock.time, float(self.dt)), (steps, float(until)), (float(self._rate), float(self._scale)),
            self._options.eta,  # type: ignore[attr-defined]
            (state.last_position, state.last_velocity, state.last_acceleration),
        )  # fmt: skip
        if made:
            (self._begin, self._length), self._before, (self._rate, self._scale) = last, before, rates
            clock.step, clock.time = clock.step + made, self._begin + self._length
            clock.current = self.facts.leaves
        state.progress.report(made * motion.engine.work(state))
        return int(made)

    def _step(self, motion: Motion, h: float) -> None:
        motion.state.moves.kick(h / 2)
        motion.state.moves.drift(h)
        motion.evaluate()
        motion.state.moves.kick(h / 2)

    def _keep(self, motion: Motion, h: float) -> None:
        """Keep the state as the beginning of a step of length h."""
        state: Any = motion.state
        state.last_position[...], state.last_velocity[...] = state.position, state.velocity
        state.last_acceleration[...] = state.acceleration
        self._begin, self._length, self._before = state.clock.time, h, (self._rate, self._scale)

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
        """ρ of the next step and the scale of ρ; the beginning and the length of the last step, and both there."""
        last = self._begin, min(self._length, LONGEST), *self._before
        return {"last_step": np.array([self._rate, self._scale, *last])}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        # nbody 0.2: ρ of the next step, the scale, and the time of the last step's end.
        found = arrays["last_step"] if "last_step" in arrays else [*arrays["rate"], 0.0, 0.0, 0.0]
        self._rate, self._scale, self._begin, length, *before = map(float, found)
        self._length, self._before = length if length < LONGEST else math.inf, (before[0], before[1])
