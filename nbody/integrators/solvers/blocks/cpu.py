"""Block time steps on the CPU, in float64; see ``cpu_kernels.py`` for the loop over blocks."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from nbody.forces.engine import team_of
from nbody.integrators.integrator import Motion
from nbody.integrators.solvers.blocks.bodies import PARKED, BlockBodies, check_restored
from nbody.integrators.solvers.blocks.cpu_kernels import (
    DERIVATIVES,
    BlockArrays,
    BlockScale,
    blocks_for,
    in_ticks,
    prediction_for,
    start_for,
)
from nbody.integrators.solvers.blocks.formulas import TICKS
from nbody.integrators.solvers.blocks.pairs import Orbits, Pairs
from nbody.parallel import segments
from nbody.parallel.segments import worth_dividing


class HostBlocks:
    """The loop over blocks of one state in host memory."""

    message = ""

    def __init__(self, motion: Motion, order: int, eta: float, shared: bool = False, threshold: float = 0.0) -> None:
        state: Any = motion.state
        self._state, count = state, state.count
        self._gravity, self._order, self._eta, self._shared = motion.engine.gravity, order, eta, shared
        self._team, self._memory = (
            team_of(motion.engine),
            BlockArrays(np.empty((9, count)), np.empty(count, np.int64), np.empty((count, 9))),
        )
        self._rows = state.derivatives.reshape(3 * DERIVATIVES, count)
        self._last, self._step = state.ticks.reshape(2, count)
        self.pairs = Pairs(self._gravity, order, eta, np.array(state.mass, np.float64), threshold)
        self.restored()

    def restored(self, now: int = TICKS) -> None:
        """The state's columns have been restored from a checkpoint of the time ``now``, in ticks. Raises ValueError if they
        are damaged."""
        check_restored(self._rows, self._last, self._step, now)
        self._now = -1  # the time reached in ticks; -1: to be found
        self._orbits: Orbits | None = None

    def _bodies(self) -> BlockBodies:
        """The bodies, with the masses and limits that follow from the formed pairs."""
        if self._orbits is None:
            self._orbits = self.pairs.orbits(self._rows, self._last, self._step)
            self._mass, self._limit = self.pairs.masses_and_limits(self._orbits)
        return BlockBodies(self._rows, self._last, self._step, self._state.wanted_step, self._mass, self._limit)

    def _pairs_changed(self) -> None:
        self._orbits = None
        self._bodies()

    def first_derivatives(self) -> np.ndarray:
        """Evaluate acceleration, jerk and snap of all bodies, in two passes over the pairs. Returns all, (18, N)."""
        state, D, gravity = self._state, self._state.dimensions, self._gravity
        self._rows[:] = 0.0
        self._last[:] = self._step[:] = 0
        self._orbits, self.pairs.dissolved = None, self.pairs.formed
        self._rows[:D], self._rows[3 : 3 + D] = state.position.T, state.velocity.T
        p, _, sums = self._memory
        p[:6], p[6:] = self._rows[:6], 0.0
        team = worth_dividing(self._team, state.count**2)
        for _ in range(2):  # the second one knows the accelerations
            start_for(gravity.softening)(*team.own(state.count), p, state.mass, gravity.length2, gravity.G, sums)
            team.gather_rows(sums, team.bounds(state.count))
            self._rows[6:15], p[6:] = sums.T, sums.T[:3]
        return self._rows

    def set_wanted(self, wanted: np.ndarray) -> None:
        """Set the steps that accuracy asks for, (N,)."""
        self._state.wanted_step[...] = wanted

    def wanted(self) -> np.ndarray:
        """The steps that accuracy asks for, (N,)."""
        return self._state.wanted_step  # type: ignore[no-any-return]

    def shortest(self) -> int:
        """The shortest of the next steps in ticks."""
        return int(self._step.min())

    def new_stretch(self, before: float, tick: float, unit: int, smallest: int) -> int:
        """All bodies are at the same time, 0 ticks from now on; ``before``: the length of a tick until now. Joins pairs.
        Returns a body whose step is too short, or -1."""
        b = self._bodies()
        assert self._orbits is not None
        if len(self._orbits.first):
            self.pairs.begin_stretch(b, self._orbits, TICKS, before)
            self._pairs_changed()
        self._last[:] = self._now = 0
        for i, wanted in enumerate(self._state.wanted_step):
            if self._step[i] < PARKED:
                self._step[i] = in_ticks(wanted, tick, unit)
        self.look(tick, unit)
        short = np.flatnonzero(self._step < smallest)
        return int(short[0]) if len(short) else -1

    def look(self, tick: float, unit: int) -> None:
        """Join the pairs that are hardly perturbed at present."""
        if self.pairs.join(self._bodies(), self._now, tick, unit):
            self._pairs_changed()

    def advance(self, tick: float, end: int, unit: int, smallest: int, steps: int) -> tuple[int, int, int, int]:
        """Make up to ``steps`` blocks, or all until ``end``. Returns the number of blocks, the time reached in ticks, the
        steps of single bodies, and a body whose step would be too short, or -1."""
        if self._now < 0:
            self._now = int(self._last.max())
        gravity, team, made, singles, waiting = self._gravity, self._team, 0, 0, 0
        ranks = team.rank, team.size, segments.WORTH
        scale = BlockScale(tick, unit, smallest, self._shared, self._eta, gravity.length2, gravity.G, ranks)
        blocks_of = blocks_for(gravity.softening, self._order)
        while True:
            b = self._bodies()
            assert self._orbits is not None
            blocks, self._now, single, failed, exceeded, waiting = blocks_of(
                b, self._orbits.second, self._now, end, steps - made, scale, self._memory, waiting
            )
            made, singles = made + blocks, singles + single
            if exceeded:
                self.pairs.part(b, self._now, tick, unit)
                self._pairs_changed()
            if waiting:
                team.gather_rows(self._memory.sums[:waiting], team.bounds(waiting))
            if not (exceeded or waiting) or failed >= 0:
                return made, self._now, singles, failed

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Blocks that are made inside a ``with`` block change nothing, and part no pair."""
        b, now = self._bodies(), self._now
        columns = b.rows, b.last, b.step, b.wanted, b.limit
        copies = [column.copy() for column in columns]
        b.limit[:] = 0.0
        yield
        for column, copy in zip(columns, copies, strict=True):
            column[...] = copy
        self._now = now

    def step_to(self, end: int) -> None:
        """Let the next steps of all bodies end at the time ``end``, in ticks, steps back too."""
        moving = (self._last != end) & (self._step < PARKED)
        self._step[:] = np.where(moving, end - self._last, self._step)

    def present(self, now: float, tick: float) -> None:
        """Predict all bodies to one time, in ticks, into the state's positions and velocities."""
        state = self._state
        p = np.empty((9, state.count))
        prediction_for(self._order)(self._rows, p, self._last, float(now), tick)
        state.position[...], state.velocity[...] = p[: state.dimensions].T, p[3 : 3 + state.dimensions].T
        self._bodies()
        assert self._orbits is not None
        self._orbits.resolve(state.position, state.velocity, now, tick)
