"""Leapfrog with individual block steps, for galaxies whose centre is much denser than the rest.

A body makes steps of dt/2^k, with the smallest k for which the step is at most √(2 η ε/|a|), ε being its softening length
(Springel 2005). Within a step of length dt all bodies drift to the end of the shortest step that is under way; only those
whose step ends there get new forces, a kick over half of the step that ends and one over half of the next. A step may
become longer only where a step of the longer length begins, so after dt all bodies are at the same time.

If all bodies choose dt, this is ``leapfrog``, bit for bit. Variable steps are not symplectic: over very many dynamical times
the energy drifts, more slowly for a smaller η.
"""

import math
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from nbody.forces.engine import Engine
from nbody.integrators.integrator import FixedStep, Motion
from nbody.scenario.fields import Group, Positive
from nbody.state import Want
from nbody.state.host import HostState

DEEPEST = 20
"""The shortest step is dt/2^DEEPEST; bodies that ask for a shorter one get this."""

TICKS = 1 << DEEPEST
"""dt in ticks."""


class LeapfrogBlock(FixedStep):
    """Forces on the bodies whose steps end only; ``dt`` is the largest step. On the CPU."""

    class Options(Group):
        """``eta``: accuracy of the steps."""

        eta: Annotated[Positive, Field(le=10.0)] = 0.025

    order = 2
    source = "Springel 2005"
    leaves = Want.ACCELERATION
    lengths = "individual"
    softened = True

    def __init__(self, dt: float | None, options: Group | None = None) -> None:
        super().__init__(dt, options)
        self._steps = self._rows = 0  # steps of dt, and steps of single bodies, made so far

    @classmethod
    def refusal(cls, engine: type[Engine], precision: str) -> str:
        """See :meth:`Integrator.refusal`."""
        if not (engine.subsets and issubclass(engine.state_type, HostState)):
            return "this scheme needs the forces on some of the bodies; choose engine cpu, or scheme 'leapfrog'"
        return super().refusal(engine, precision)

    def step(self, motion: Motion, want: Want = Want.ACCELERATION) -> None:
        """See :meth:`FixedStep.step`."""
        state: Any = motion.state
        motion.evaluate()
        now, rows = 0, np.arange(state.count)
        length = self._wanted(motion, rows)
        end = length.copy()
        self._kick(state, rows, length)
        while now < TICKS:
            block = end.min()
            state.drift(self.dt * (int(block - now) / TICKS))
            now, rows = int(block), np.flatnonzero(end == block)
            if now == TICKS:
                motion.evaluate(want)
            else:
                motion.engine.evaluate(state, Want.ACCELERATION, rows)
            self._kick(state, rows, length[rows])
            self._rows += len(rows)
            if now < TICKS:
                length[rows] = self._next(self._wanted(motion, rows), length[rows], now)
                end[rows] = now + length[rows]
                self._kick(state, rows, length[rows])
        self._steps += 1

    def _wanted(self, motion: Motion, rows: np.ndarray) -> np.ndarray:
        """The steps in ticks, powers of two, that accelerations and softening lengths of some bodies suggest."""
        state: Any = motion.state
        gravity, eta = motion.engine.gravity, self.options.eta  # type: ignore[attr-defined]
        length2 = state.softening2[rows].astype(np.float64) if gravity.per_species else gravity.length2
        size = np.linalg.norm(state.acceleration[rows].astype(np.float64), axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.sqrt(2 * eta * np.sqrt(length2) / size) / self.dt
        share = np.where(
            np.isfinite(share) & (share > 0), np.minimum(share, 1.0), 1.0
        )  # a state with NaN is found later
        return np.exp2(np.maximum(np.floor(np.log2(share)), -DEEPEST) + DEEPEST).astype(np.int64)

    def _next(self, wanted: np.ndarray, last: np.ndarray, now: int) -> np.ndarray:
        """The next steps: as wanted if shorter than the last ones; else at most the longest that may begin now."""
        longest = now & -now  # the largest power of two that divides it
        return np.where(wanted <= last, wanted, np.maximum(last, np.minimum(wanted, longest)))

    def _kick(self, state: Any, rows: np.ndarray, ticks: np.ndarray) -> None:
        """v += a h/2 for some bodies and their steps in ticks."""
        half = (0.5 * self.dt * (ticks / TICKS)).astype(state.dtype)
        state.velocity[rows] += state.acceleration[rows] * half[:, None]

    def work(self, motion: Motion, steps: int, want: Want = Want.ACCELERATION) -> int:
        """See :meth:`Integrator.work`: as many as in the mean of the steps so far."""
        if not steps:
            return 0
        engine, state = motion
        force = engine.work(state)
        start = 0 if state.current else force
        last = engine.work(state, want) - force if want is not Want.ACCELERATION else 0
        return start + steps * math.ceil(self.pairs_per_step(motion)) + last

    def pairs_per_step(self, motion: Motion) -> float:
        """See :meth:`Integrator.pairs_per_step`."""
        per_body = self._rows / (self._steps * motion.state.count) if self._steps else 1.0
        return per_body * motion.engine.work(motion.state)
