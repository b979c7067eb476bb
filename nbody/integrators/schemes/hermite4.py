"""Hermite's scheme of order 4 with one step for all bodies: predict, evaluate, correct (Makino & Aarseth 1992).

    predict    x_p = x + v h + a h²/2 + j h³/6        v_p = v + a h + j h²/2        (j: jerk, da/dt)
    evaluate   a₁, j₁ at x_p, v_p
    correct    v₁ = v + (a + a₁) h/2 + (j - j₁) h²/12
               x₁ = x + (v + v₁) h/2 + (a - a₁) h²/12

With ``eta`` the next step is √(η (|a||s| + |j|²)/(|j||c| + |s|²)), the smallest over all bodies (Aarseth 1985), where
s and c, the second and third derivatives of the acceleration at the end of the step, follow from a, j, a₁ and j₁. The first
step, without them, is η/10 times the smaller of |a|/|j| and √(extent/|a|). Without ``eta`` every step is ``dt``.

For few bodies the loop over steps is compiled with the pair sums in it; else Python runs the same loop, and an engine
computes the forces.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from nbody import compute
from nbody.fields.field import VELOCITIES
from nbody.forces.direct.cpu_few import adding_jerks
from nbody.forces.layers.fields import fields_of
from nbody.integrators.adaptive import BEGIN, END, LENGTH, NEXT, AdaptiveStep, inlined, kernels
from nbody.integrators.facts import SchemeFacts
from nbody.integrators.few_bodies import in_one_call
from nbody.integrators.integrator import Motion
from nbody.scenario.values import Group, Positive
from nbody.state import Column, Outputs
from nbody.state.host import HostState
from nbody.state.notes import note


class Hermite4(AdaptiveStep):
    """One force evaluation with jerk per step.

    The next step begins with the accelerations and jerks of the predicted positions. They have separate columns, since those
    of the state may be computed again for a recorded frame.
    """

    class Options(Group):
        """The options of the scheme.

        Attributes:
            eta: accuracy of the adaptive step, typically 0.01 to 0.02; without it, all steps are ``dt``.
        """

        eta: Positive | None = None

    facts = SchemeFacts(
        order=4, source="Makino & Aarseth 1992", lengths="fixed or adaptive", outputs=Outputs.JERK, power_of_dt=3,
        fields=(VELOCITIES,), notes=in_one_call,
        accuracies={"eta": (0.1, 0.04, 0.01)},
        columns=(Column("jerk", "D"), Column("step_acceleration", "D"), Column("step_jerk", "D")),
    )  # fmt: skip

    _before = np.zeros((4, 0, 0))
    """Position, velocity, acceleration and jerk at the beginning of the last step."""

    _remedy = "the largest step (integrator.dt), or a softening"

    def __init__(self, dt: float | None, options: Group | None = None) -> None:
        self._eta: float | None = options.eta if isinstance(options, self.Options) else None
        self.facts = self.facts._replace(adaptive=self._eta is not None)
        super().__init__(dt, options)

    def prepare(self, motion: Motion, contacts: bool = False) -> None:
        super().prepare(motion, contacts)
        state = motion.state
        self._before, self._clock[LENGTH] = np.zeros((4, state.count, state.dimensions), state.dtype), 0.0

    def start(self, motion: Motion) -> None:
        # Evaluates the first accelerations and jerks.
        state = motion.host
        motion.evaluate(Outputs.JERK)
        state.column("step_acceleration")[...], state.column("step_jerk")[...] = (
            state.acceleration,
            state.column("jerk"),
        )
        if self._eta is None:
            self._clock[LENGTH], self._clock[NEXT] = 0.0, self.dt
        else:
            extent = _norm(state.position - state.position.mean(axis=0)).max()
            size = _norm(state.acceleration)
            with np.errstate(divide="ignore", invalid="ignore"):  # bodies at rest have no jerk
                times = np.fmin(size / _norm(state.column("jerk")), np.sqrt(extent / size))
            times[size == 0] = np.nan  # no force acts on them yet
            self._clock[NEXT] = min(self.dt, 0.1 * self._eta * float(np.nanmin(times, initial=math.inf)))

    def _changed(self, state: HostState) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        names = "position", "velocity", "step_acceleration", "step_jerk"
        return tuple(state.values(*names, copy=False)), tuple(self._before)

    def _forces(self, motion: Motion) -> tuple[np.ndarray, np.ndarray]:
        motion.evaluate(Outputs.JERK)
        return motion.host.acceleration.T, motion.host.column("jerk").T

    def _count(self, motion: Motion, steps: int, time: float) -> None:
        super()._count(motion, steps, time)
        state = motion.host
        state.acceleration[...], state.column("jerk")[...] = self._changed(state)[0][2:]

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        scratch, fields = np.empty((6, motion.state.count)), fields_of(motion.engine)
        by_engine: Callable = engine_loop
        if fields is not None and any(term.moving for term in fields.terms):
            by_engine = partial(engine_loop, again=partial(self._forces_again, motion))
        self._make_steps(motion, steps, until, (by_engine, compiled_loop), scratch, float(self._eta or 0.0))

    def _forces_again(self, motion: Motion) -> tuple[np.ndarray, np.ndarray]:
        motion.state.clock.current = Outputs.NOTHING
        return self._forces(motion)

    def arrays(self) -> dict[str, np.ndarray]:
        """The clock; and the bodies at the beginning of the last step, if it is adaptive."""
        return super().arrays() | ({"before": self._before} if self.facts.adaptive else {})

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        if "clock" in arrays:
            super().restore(arrays)
            self._before[...] = arrays.get("before", 0.0)
        else:  # nbody 0.2: the bodies are at the end of a step
            self._clock[:] = 0.0, 0.0, 0.0, arrays["next_step"][0] or math.inf


def parts(dimensions: int) -> tuple[Any, ...]:
    """The parts of a step, to be compiled."""

    def predict(x, v, a, j, before, h):
        """Predict positions and velocities, (N, D) each, at the end of a step of length h; ``before`` gets x, v, a and j."""
        x0, v0, a0, j0 = before
        real = x.dtype.type
        h1, h2, h3 = real(h), real(h * h / 2), real(math.pow(h, 3.0) / 6)
        for i in range(x.shape[0]):
            for d in range(dimensions):
                x0[i, d], v0[i, d], a0[i, d], j0[i, d] = x[i, d], v[i, d], a[i, d], j[i, d]
                x[i, d] += v[i, d] * h1 + a[i, d] * h2 + j[i, d] * h3
                v[i, d] += a[i, d] * h1 + j[i, d] * h2

    def correct(x, v, a, j, forces, before, h):
        """Correct positions and velocities at the end of a step; ``forces``: accelerations and jerks there, (D, N) each,
        ``before``: x, v, a and j at its beginning."""
        (a1, j1), (x0, v0, a0, j0) = forces, before
        real = x.dtype.type
        half, twelfth = real(h / 2), real(h * h / 12)
        for i in range(x.shape[0]):
            for d in range(dimensions):
                a[i, d], j[i, d] = a1[d, i], j1[d, i]
                v[i, d] = v0[i, d] + ((a0[i, d] + a[i, d]) * half + (j0[i, d] - j[i, d]) * twelfth)
                x[i, d] = x0[i, d] + ((v0[i, d] + v[i, d]) * half + (a0[i, d] - a[i, d]) * twelfth)

    def next_step(a, j, before, h, eta):
        """The length of the next step (Aarseth 1985); infinity if no force acts on any body."""
        (_, _, a0, j0), h2, h3 = before, h * h, math.pow(h, 3.0)
        smallest = np.inf
        for i in range(a.shape[0]):
            size_a, size_j, size_s, size_c = 0.0, 0.0, 0.0, 0.0
            for d in range(dimensions):
                old_a, new_a = np.float64(a0[i, d]), np.float64(a[i, d])
                old_j, new_j = np.float64(j0[i, d]), np.float64(j[i, d])
                crackle = (12 * (old_a - new_a) + 6 * h * (old_j + new_j)) / h3
                snap = (-6 * (old_a - new_a) - h * (4 * old_j + 2 * new_j)) / h2 + h * crackle
                size_a, size_j = size_a + new_a * new_a, size_j + new_j * new_j
                size_s, size_c = size_s + snap * snap, size_c + crackle * crackle
            size_a, size_j, size_s, size_c = np.sqrt(size_a), np.sqrt(size_j), np.sqrt(size_s), np.sqrt(size_c)
            ratio = (size_a * size_s + size_j * size_j) / (size_j * size_c + size_s * size_s)
            if ratio < smallest:  # it is a NaN without a force
                smallest = ratio
        return np.sqrt(eta * smallest)

    return predict, correct, next_step


def steps_by(
    evaluate: Callable, predict: Callable, correct: Callable, next_step: Callable, note_step: Callable = note
) -> Callable:
    """The loop over steps; ``evaluate(x, v, law, h)``: accelerations and jerks, (D, N), a time h later."""

    def make_steps(rows, before, clock, moment, law, limits, notes, eta):
        """Make steps of all bodies.

        Args:
            rows: positions, velocities, accelerations and jerks, (N, D) each, changed in place.
            before: they get these at the beginning of the last step.
            clock: (4,) see :mod:`nbody.integrators.adaptive`.
            moment: the time, the time of step 0, and the number of this step.
            law: masses, G, the softening length squared, and scratch, (6, N).
            limits: the number of steps, the time until, and the longest step.
            notes: get the bodies after each step.
            eta: 0 if all steps have the longest length.

        Returns:
            The number of steps made, the time, and the length of a step that can't be made, with True if there is one.
        """
        x, v, a, j = rows
        (time, origin, first), (steps, until, longest), done = moment, limits, 0
        while done < steps and time < until:
            end = time + clock[NEXT]
            h = until - time if end > until else clock[NEXT]
            if not abs(h) < np.inf or time + h == time:
                return done, time, h, True
            predict(x, v, a, j, before, h)
            correct(x, v, a, j, evaluate(x, v, law, h), before, h)
            done += 1
            if eta == 0.0:
                time = origin + (first + done) * longest
            else:
                clock[BEGIN], clock[LENGTH], clock[END] = time, clock[NEXT], end
                clock[NEXT] = min(longest, next_step(a, j, before, h, eta))
                time = min(end, until)
            note_step(notes, done - 1, time, x, v)
        return done, time, 0.0, False

    return make_steps


def engine_loop(evaluate: Callable, dimensions: int, again: Callable | None = None) -> Callable:
    """The loop for Python. With ``again``, the forces at the corrected positions and velocities, each step is corrected
    twice: a predicted velocity has an error of order 3, too much for forces that depend on it (Kokubo & Makino 2004)."""
    predict, correct, next_step = kernels(parts, dimensions)
    if again is None:
        return steps_by(evaluate, predict, correct, next_step)

    def correct_twice(x, v, a, j, forces, before, h):
        correct(x, v, a, j, forces, before, h)
        correct(x, v, a, j, again(), before, h)

    return steps_by(evaluate, predict, correct_twice, next_step)


@cache
def compiled_loop(softening: str, dimensions: int) -> Callable:
    """The compiled loop with the pair sums of a law."""
    add_jerks = adding_jerks(softening, dimensions)

    @inlined
    def evaluate(x, v, law, h):
        m, G, length2, sums = law
        add_jerks(x, v, m, G, length2, sums)
        return sums[:3], sums[3:]

    return compute.kernel("cpu")(steps_by(evaluate, *map(inlined, (*parts(dimensions), note))))  # type: ignore[no-any-return]


def _norm(rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rows.astype(np.float64), axis=1)
