"""Leapfrog with adaptive steps for all bodies, time-reversible: the energy of an eccentric orbit does not drift.

A step of kick-drift-kick has the length h = 1/ρ. The next one follows from the bodies at its beginning:

    ρ₊ = 2 ρ(x, v) - ρ₋,        ρ(x, v) = (1/η) (Σ_{i<j} (v²/r² + G(m_i + m_j)/r³)⁸)^(1/16)

with the softened distance r and the relative speed v of each pair. A run backwards makes the same steps, whereas with
h = 1/ρ(x, v) it would not, and the energy would drift (Huang & Leimkuhler 1997). The sum is a smooth form of the maximum:
where another pair becomes the fastest, a kink would make ρ₊ and ρ₋ differ from then on. If ρ₊ would be negative, as of
pairs that a field has stopped, it is ρ if there is a longest step. It needs no softening and no jerk, but one more pass over
the pairs.

For few bodies the loop over steps is compiled with the pair sums in it; else an engine computes the forces.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import prange

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.forces.direct.cpu_few import adding_pairs
from nbody.forces.direct.cpu_roots import FAST
from nbody.forces.engine import Engine
from nbody.forces.problem import Problem, Refusal
from nbody.integrators.adaptive import BEGIN, END, LENGTH, NEXT, AdaptiveStep, inlined, kernels
from nbody.integrators.facts import SchemeFacts
from nbody.integrators.few_bodies import components, in_one_call, shortest_time
from nbody.integrators.integrator import Motion
from nbody.scenario.values import Group, Positive
from nbody.state import Column, Outputs
from nbody.state.host import HostState
from nbody.state.notes import note

ALONE = 512
"""Fewer bodies than this are left to one core: waking the others costs as much."""


class LeapfrogAdaptive(AdaptiveStep):
    """A force evaluation and a pass over the pairs per step. ``dt``, if given, is the longest step. On the CPU."""

    class Options(Group):
        """The options of the scheme.

        Attributes:
            eta: the step as a fraction of the shortest time r/√(v² + G(m_i + m_j)/r) of a pair.
        """

        eta: Positive = 0.05

    _options: Options

    facts = SchemeFacts(
        order=2, source="Huang & Leimkuhler 1997", lengths="adaptive", adaptive=True, leaves=Outputs.ACCELERATION,
        precisions={"cpu": ("float32", "float64")}, accuracies={"eta": (0.3, 0.1, 0.05)}, notes=in_one_call,
        columns=(Column("last_position", "D"), Column("last_velocity", "D"), Column("last_acceleration", "D")),
    )  # fmt: skip

    _remedy = "a smaller integrator.eta, the largest step (integrator.dt), or a softening"

    def __init__(self, dt: float | None, options: Group | None = None) -> None:
        super().__init__(dt, options)
        self._rates = np.zeros((2, 2))  # ρ of the next step and ρ(x, v) η; and both at the beginning of the last step

    @classmethod
    def supports(cls, engine: type[Engine] | Engine, problem: Problem) -> str:
        if problem.of_scheme.fields and problem.of_scheme.unlimited:
            reason = "the steps of this scheme follow from the pairs alone, not from external fields"
            return Refusal(reason, "integrator.dt", "give the largest step, 'dt'")
        return super().supports(engine, problem)

    def start(self, motion: Motion) -> None:
        motion.evaluate()
        state = motion.host
        law = motion.engine.gravity
        if scale := 1 / shortest_time(motion):
            scale = rate_of_all(state.position, state.velocity, (state.mass, law.G, law.length2, ()), scale)
        self._clock[:], self._rates[0] = 0.0, (scale / self._options.eta, scale)

    def _changed(self, state: HostState) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        last = state.column("last_position"), state.column("last_velocity"), state.column("last_acceleration")
        return (state.position, state.velocity, state.acceleration), last

    def _return(self, motion: Motion, until: float) -> int:
        if returned := super()._return(motion, until):
            self._rates[0], self._clock[NEXT] = self._rates[1], 0.0  # the rates say how long the next step is
        return returned

    def _forces(self, motion: Motion) -> np.ndarray:
        motion.evaluate()
        return motion.host.acceleration.T

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        motion.evaluate()
        scratch = tuple(np.zeros((3, 3, motion.state.count)))
        loops = engine_loop, compiled_loop
        self._make_steps(motion, steps, until, loops, scratch, self._rates, self._options.eta)

    def arrays(self) -> dict[str, np.ndarray]:
        """The clock, and the rates now and at the beginning of the last step."""
        return super().arrays() | {"rates": self._rates}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        if "clock" in arrays:
            super().restore(arrays)
            self._rates = arrays["rates"].copy()
        else:  # nbody 0.2: the bodies are at the end of a step
            self._rates[0] = arrays["rate"][:2]


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


def parts(dimensions: int) -> tuple[Any, ...]:
    """The parts of a step, to be compiled."""

    def begin(x, v, a, before, h):
        """A kick over half a step and a drift, (N, D) each; ``before`` gets x, v and a."""
        x0, v0, a0 = before
        half, whole = x.dtype.type(h / 2), x.dtype.type(h)
        for i in range(x.shape[0]):
            for d in range(dimensions):
                x0[i, d], v0[i, d], a0[i, d] = x[i, d], v[i, d], a[i, d]
                v[i, d] += a[i, d] * half
                x[i, d] += v[i, d] * whole

    def end(v, a, forces, h):
        """A kick over half a step by the accelerations ``forces``, (D, N)."""
        half = v.dtype.type(h / 2)
        for i in range(v.shape[0]):
            for d in range(dimensions):
                a[i, d] = forces[d, i]
                v[i, d] += a[i, d] * half

    return begin, end


def steps_by(evaluate: Callable, rate: Callable, begin: Callable, end: Callable, note_step: Callable = note) -> Callable:
    """The loop; ``evaluate(x, v, law, h)``: accelerations (D, N) a time h later; ``rate(x, v, law, scale)``: ρ η."""

    def make_steps(rows, before, clock, moment, law, limits, notes, rates, eta):
        """Make steps of all bodies.

        Args:
            rows: positions, velocities and accelerations, (N, D) each, changed in place.
            before: they get these at the beginning of the last step.
            clock: (4,) see :mod:`nbody.integrators.adaptive`; the last number is not used.
            moment: the time, the time of step 0, and the number of this step.
            law: masses, G, the softening length squared, and scratch, (3, N) each.
            limits: the number of steps, the time until, and the longest step.
            notes: get the bodies after each step.
            rates: (2, 2) ρ of the next step and ρ(x, v) η; and both at the beginning of the last step.
            eta: η.

        Returns:
            The number of steps made, the time, and the length of a step that can't be made, with True if there is one.
        """
        (x, v, a), (time, _, _), (steps, until, longest), (now, scale) = rows, moment, limits, rates[0]
        done, length, failed = 0, 0.0, False
        while done < steps and time < until:
            length = min(longest, 1 / now if now != 0.0 else np.inf)
            h = until - time if time + length > until else length
            failed = not now >= 0 or not h < np.inf or time + h == time
            if failed:
                break
            first, whole, last, before_rates = time, length, time + length, (now, scale)
            begin(x, v, a, before, h)
            end(v, a, evaluate(x, v, law, h), h)
            done += 1
            if last <= until:
                if scale > 0.0:
                    scale = rate(x, v, law, scale)
                ahead = 2 * (scale / eta) - now
                now = scale / eta if ahead < 0.0 and longest < np.inf else ahead
            time = min(last, until)
            note_step(notes, done - 1, time, x, v)
        if done:
            clock[BEGIN], clock[LENGTH], clock[END] = first, whole, last
            rates[0, 0], rates[0, 1], (rates[1, 0], rates[1, 1]) = now, scale, before_rates
        return done, time, length, failed

    return make_steps


def rate_of_all(x: np.ndarray, v: np.ndarray, law: tuple, scale: float) -> float:
    """ρ η of (N, D) positions and velocities, on all cores."""
    return float(compiled_rate(len(x) >= ALONE)(components(x), components(v), *law[:3], scale))


@cache
def compiled_rate(parallel: bool) -> Callable:
    """:func:`rate_of_pairs`, compiled for callers in Python."""
    return compute.kernel("cpu", parallel=parallel, fastmath=FAST)(rate_of_pairs)  # type: ignore[no-any-return]


def engine_loop(evaluate: Callable, dimensions: int) -> Callable:
    """The loop for Python."""
    return steps_by(evaluate, rate_of_all, *kernels(parts, dimensions))


@cache
def compiled_loop(softening: str, dimensions: int) -> Callable:
    """The compiled loop with the pair sums of a law."""
    add_pairs = adding_pairs(softening, dimensions)
    rate_alone = inner(rate_of_pairs, fastmath=FAST)

    @inlined
    def evaluate(x, v, law, h):
        m, G, length2, (sums, _, _) = law
        add_pairs(x, m, G, length2, sums)
        return sums

    @inlined
    def rate(x, v, law, scale):
        m, G, length2, (_, position, speed) = law
        for i in range(m.size):
            for d in range(dimensions):
                position[d, i], speed[d, i] = x[i, d], v[i, d]
        return rate_alone(position, speed, m, G, length2, scale)

    return compute.kernel("cpu")(steps_by(evaluate, rate, *map(inlined, (*parts(dimensions), note))))  # type: ignore[no-any-return]
