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
from nbody.forces.problem import Problem
from nbody.integrators.integrator import FixedStep, Motion
from nbody.law import Gravity
from nbody.scenario.fields import Group, Positive
from nbody.state import Want

DEEPEST = 20
"""The shortest step is dt/2^DEEPEST; bodies that ask for a shorter one get this."""

TICKS = 1 << DEEPEST
"""dt in ticks."""


class LeapfrogBlock(FixedStep):
    """Forces on the bodies whose steps end only; ``dt`` is the largest step. With engines that compute these."""

    class Options(Group):
        """``eta``: accuracy of the steps."""

        eta: Annotated[Positive, Field(le=10.0)] = 0.025

    order = 2
    source = "Springel 2005"
    leaves = Want.ACCELERATION
    lengths = "individual"
    softened = True
    same_moves = False

    def __init__(self, dt: float | None, options: Group | None = None) -> None:
        super().__init__(dt, options)
        self._steps = 0  # of dt, made so far
        self.single: int = 0
        self._lengths: Any = None

    @classmethod
    def problem(cls, gravity: Gravity, precision: str, count: int = 1) -> Problem:
        # The forces on the bodies of a block.
        return super().problem(gravity, precision, count)._replace(targets=True)

    @classmethod
    def working_bytes(cls, engine: type[Engine], particles: int, precision: str) -> int:
        # The lengths and ends of steps, and the rows of a block.
        return 3 * 8 * particles + engine.target_bytes(particles, precision)

    def step(self, motion: Motion, want: Want = Want.ACCELERATION) -> None:
        state: Any = motion.state
        motion.evaluate()
        lengths, now = self._lengths_of(motion), 0
        lengths.begin()
        while now < TICKS:
            block, rows = lengths.next_block()
            state.drift(self.dt * ((block - now) / TICKS))
            now = block
            if now == TICKS:
                motion.evaluate(want)
            else:
                motion.engine.evaluate(state, Want.ACCELERATION, rows)
            lengths.end(rows, now)
            self.single += rows.shape[0]
        self._steps += 1

    def _lengths_of(self, motion: Motion) -> Any:
        """The lengths of the steps of a state's bodies, where the state is."""
        if self._lengths is None or self._lengths.state is not motion.state:  # it is another one after mergers
            eta: float = self.options.eta  # type: ignore[attr-defined]
            if motion.engine.device == "gpu":
                from nbody.integrators.leapfrog_block_gpu import DeviceLengths

                self._lengths = DeviceLengths(motion, self.dt, eta)
            else:
                self._lengths = HostLengths(motion, self.dt, eta)
        return self._lengths

    def work(self, motion: Motion, steps: int, want: Want = Want.ACCELERATION) -> int:
        # As many as in the mean of the steps so far.
        if not steps:
            return 0
        engine, state = motion
        force = engine.work(state)
        start = 0 if state.current else force
        last = engine.work(state, want) - force if want is not Want.ACCELERATION else 0
        return start + steps * math.ceil(self.pairs_per_step(motion)) + last

    def pairs_per_step(self, motion: Motion) -> float:
        return self.bodies_per_step(motion) / motion.state.count * motion.engine.work(motion.state)

    def remark(self) -> str:
        # What several GPUs do not divide.
        state = None if self._lengths is None else self._lengths.state
        if getattr(state, "helpers", None):
            return "gpus: only the first GPU computed the forces on some bodies; all divided those on all bodies"
        if getattr(state, "ranks", None):
            return "every rank computed the forces on some bodies; the GPUs divided those on all bodies"
        return ""

    def bodies_per_step(self, motion: Motion) -> float:
        return self.single / self._steps if self._steps else float(motion.state.count)


class HostLengths:
    """The lengths of the steps of all bodies in host memory, and the ticks at which they end."""

    def __init__(self, motion: Motion, dt: float, eta: float) -> None:
        self._gravity, self.state, self._dt, self._eta = motion.engine.gravity, motion.state, dt, eta
        self._length = self._end = np.zeros(motion.state.count, np.int64)

    def begin(self) -> None:
        """Begin a step of dt: all bodies choose a length, and are kicked over half of it."""
        rows = np.arange(self.state.count)
        self._length = self._wanted(rows)
        self._end = self._length.copy()
        self._kick(rows)

    def next_block(self) -> tuple[int, Any]:
        """The tick at which the next steps end, and the bodies that make them."""
        block = self._end.min()
        return int(block), np.flatnonzero(self._end == block)

    def end(self, rows: Any, now: int) -> None:
        """End the steps of some bodies, with a kick over half of them; and begin their next ones, unless dt is over."""
        self._kick(rows)
        if now < TICKS:
            self._length[rows] = self._next(self._wanted(rows), self._length[rows], now)
            self._end[rows] = now + self._length[rows]
            self._kick(rows)

    def _wanted(self, rows: np.ndarray) -> np.ndarray:
        """The steps in ticks, powers of two, that accelerations and softening lengths of some bodies suggest."""
        state: Any = self.state
        length2 = state.softening2[rows].astype(np.float64) if self._gravity.per_species else self._gravity.length2
        size = np.linalg.norm(state.acceleration[rows].astype(np.float64), axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.sqrt(2 * self._eta * np.sqrt(length2) / size) / self._dt
        share = np.where(
            np.isfinite(share) & (share > 0), np.minimum(share, 1.0), 1.0
        )  # a state with NaN is found later
        return np.exp2(np.maximum(np.floor(np.log2(share)), -DEEPEST) + DEEPEST).astype(np.int64)

    def _next(self, wanted: np.ndarray, last: np.ndarray, now: int) -> np.ndarray:
        """The next steps: as wanted if shorter than the last ones; else at most the longest that may begin now."""
        longest = now & -now  # the largest power of two that divides it
        return np.where(wanted <= last, wanted, np.maximum(last, np.minimum(wanted, longest)))

    def _kick(self, rows: np.ndarray) -> None:
        """v += a h/2 for some bodies and their steps."""
        state: Any = self.state
        half = (0.5 * self._dt * (self._length[rows] / TICKS)).astype(state.dtype)
        state.velocity[rows] += state.acceleration[rows] * half[:, None]
