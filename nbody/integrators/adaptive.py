"""Schemes that choose the length of each step, one for all bodies; and the error of a step that is too short."""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.errors import RunFailed
from nbody.integrators.collisions.span import Span, Watcher
from nbody.integrators.few_bodies import in_one_call
from nbody.integrators.integrator import Integrator, Motion
from nbody.integrators.tangents import Tangents
from nbody.scenario.values import Group
from nbody.state import Outputs
from nbody.state.host import HostState
from nbody.state.notes import NO_NOTES

BEGIN, LENGTH, END, NEXT = range(4)
"""Indices of a clock, (4,): when the last step begins, how long it is, when it ends, and the length of the next one. The
length is 0, or :data:`UNKNOWN`, if the bodies are at the beginning of a step."""

UNKNOWN = -1.0

LONGEST = 1e300
"""A step that nothing limits, as a checkpoint holds it: a finite number."""


class AdaptiveStep(Integrator):
    """A scheme whose last step is kept from its beginning on. A step that goes beyond the time ``until`` is counted, and the
    bodies are shown within it; the next call makes it again, or shows another time. So frames and calls change no step."""

    def __init__(self, dt: float | None, options: Group | None = None, tangents: Tangents | None = None) -> None:
        super().__init__(dt, options, tangents)
        self._clock = np.zeros(4)

    def _return(self, motion: Motion, until: float) -> int:
        state, last = motion.state, self._clock
        if not last[LENGTH] or not (state.clock.moment.within or until < state.clock.time):
            return 0
        for now, before in zip(*self._changed(motion.host), strict=True):
            now[...] = before
        last[NEXT], last[LENGTH], state.clock.current = last[LENGTH], 0.0, self.facts.leaves
        state.clock.count(-1, last[BEGIN])
        return 1

    def _advance_to_contact(self, motion: Motion, steps: int, until: float, watcher: Watcher) -> Span | None:
        if not (watcher.ends_steps and self.facts.adaptive):
            return super()._advance_to_contact(motion, steps, until, watcher)
        clock = motion.state.clock
        while steps > 0 and clock.time < until:  # look at whole steps: what is shown changes none
            begin, (x0, v0) = clock.time, motion.state.values("position", "velocity")
            self._advance(motion, 1, math.inf)
            x, v = motion.state.values("position", "velocity")
            span = Span(x0, v0, x, v, begin, clock.time, show=partial(self._shown, motion))
            if watcher.touching(span):
                return span
            steps -= 1
        self.advance(motion, 0, until)
        return None

    def _shown(self, motion: Motion, time: float) -> tuple[np.ndarray, np.ndarray, int]:
        """Show a time within the last step: see :class:`.Span`."""
        self.advance(motion, 0, time)
        x, v = (rows.astype(np.float64) for rows in motion.state.values("position", "velocity"))
        return x, v, motion.state.clock.step

    def _count(self, motion: Motion, steps: int, time: float) -> None:
        """Count steps, of which the bodies are shown within the last one if it goes beyond ``time``."""
        motion.state.clock.count(steps, time, within=self._clock[LENGTH] > 0 and time < self._clock[END])

    def _make_steps(
        self, motion: Motion, steps: int, until: float, loops: tuple[Callable, Callable], scratch: Any, *more: Any
    ) -> None:
        """Make steps with one force evaluation each, by a scheme's loop over steps: for few bodies many steps in a compiled
        call with the pair sums in it; else Python runs the loop step by step, and the engine computes the forces.

        Args:
            loops: ``(evaluate, dimensions)``, the loop for Python; and ``(softening, dimensions)``, the compiled one.
            scratch: working memory of the compiled loop.
            more: further arguments of the loop.

        Raises:
            RunFailed: a step can't be made.
        """
        (engine, state), host, few, failed = motion, motion.host, in_one_call(motion), False
        clock, gravity = state.clock, engine.gravity

        def evaluate(x: Any, v: Any, law: tuple, h: float) -> Any:
            clock.drift(h)
            return self._forces(motion)

        loop = loops[few](gravity.softening if few else evaluate, state.dimensions)
        law = host.mass, gravity.G, gravity.length2, scratch
        while steps and clock.time < until and not failed:
            made, time, h, failed = loop(
                *self._changed(host), self._clock, (clock.time, clock.origin, clock.step), law,
                (steps if few else 1, float(until), float(self.dt)), host.clock.notes if few else NO_NOTES, *more,
            )  # fmt: skip
            steps -= made
            self._count(motion, made, time)
            clock.current = self.facts.leaves
            if few:
                state.progress.report(made * engine.work(state, self.facts.outputs))
        if failed:
            raise too_short(motion, h, self._remedy)

    _remedy = "a softening"
    """What to give instead of a step that is too short."""

    def _forces(self, motion: Motion) -> Any:
        """The forces at the present positions as a loop over steps takes them, (D, N) each."""
        raise NotImplementedError

    def _changed(self, state: HostState) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """The arrays that a step changes, and those with their values at the beginning of the last one."""
        raise NotImplementedError

    def arrays(self) -> dict[str, np.ndarray]:
        """The clock."""
        return {"clock": np.minimum(self._clock, LONGEST)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._clock = np.where(arrays["clock"] < LONGEST, arrays["clock"], math.inf)


inlined = inner(forceinline=True)
"""Compiles a part of a step for a compiled loop."""


@cache
def kernels(parts: Callable, dimensions: int) -> tuple[Callable, ...]:
    """The parts of a step, compiled for callers in Python."""
    return tuple(map(compute.kernel("cpu"), parts(dimensions)))


def nearest_pair(motion: Motion, i: int | None = None) -> str:
    """Body i (by default the one with the largest acceleration) and its nearest neighbour, as a clause; empty if no
    other body is at a finite distance."""
    state = motion.state
    if i is None:
        motion.evaluate(Outputs.ACCELERATION)
        size = np.linalg.norm(state.values("acceleration")[0].astype(np.float64), axis=1)
        i = int(np.argmax(np.where(np.isfinite(size), size, np.inf)))
    [position] = state.values("position")
    distance = np.linalg.norm(position.astype(np.float64) - position[i], axis=1)
    distance[i] = np.nan
    if not np.isfinite(distance).any():
        return ""
    j = int(np.nanargmin(distance))
    first, second = sorted((i, j))
    return f": particles {first} and {second} (counted from 0) are {distance[j]:g} apart"


def too_short(motion: Motion, h: float, remedy: str) -> RunFailed:
    """The error of a step of the length ``h``, which is lost in the time or not finite; ``remedy``: what to give."""
    clock = motion.state.clock
    where = f"step {clock.step}: a time step of {h:g} at time {clock.time:g} can't be made{nearest_pair(motion)}"
    return RunFailed(f"{where}; give {remedy}")
