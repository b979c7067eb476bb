"""Block time steps on the CPU, in float64; see ``cpu_kernels.py`` for the loop over blocks."""

import numpy as np

from nbody.forces.engine import team_of
from nbody.integrators.integrator import Motion
from nbody.integrators.solvers.blocks.bodies import PARKED, BlockBodies, check_restored
from nbody.integrators.solvers.blocks.cpu_kernels import (
    BlockArrays,
    BlockScale,
    blocks_for,
    in_ticks_now,
    prediction_for,
    start_for,
)
from nbody.integrators.solvers.blocks.formulas import ACCELERATION, FORCES, PHASE, ROWS, TICKS
from nbody.integrators.solvers.blocks.loop import BlockLoop, BlockProgress
from nbody.parallel import segments
from nbody.parallel.segments import worth_dividing


class HostBlocks(BlockLoop):
    """The loop over blocks of one state in host memory."""

    def __init__(self, motion: Motion, order: int, eta: float, shared: bool = False, threshold: float = 0.0) -> None:
        state = motion.host
        super().__init__(motion, order, eta, shared, threshold, state.mass)
        count, self._team = state.count, team_of(motion.engine)
        self._memory = BlockArrays(np.empty((9, count)), np.empty(count, np.int64), np.empty((count, 9)))
        rows, (last, step) = state.column("derivatives").reshape(ROWS, count), state.column("ticks").reshape(2, count)
        self._columns = BlockBodies(rows, last, step, state.column("wanted_step"), np.zeros(count), np.zeros(count))
        self.restored()

    def column(self, name: str) -> np.ndarray:
        return getattr(self._columns, name)  # type: ignore[no-any-return]

    def set_column(self, name: str, values: np.ndarray) -> None:
        self.column(name)[...] = values

    def restored(self, now: int = TICKS) -> None:
        check_restored(*self._columns[:3], now)
        self._now = -1  # the time reached in ticks; -1: to be found
        self._orbits = None

    def _pairs_changed(self) -> None:
        b = self._columns
        self._orbits = self.pairs.orbits(b.rows, b.last, b.step)
        b.mass[:], b.limit[:] = self.pairs.masses_and_limits(self._orbits)

    def first_derivatives(self) -> np.ndarray:
        state, D, gravity, (rows, last, step, *_) = self._state, self._state.dimensions, self._gravity, self._columns
        rows[:], last[:], step[:] = 0.0, 0, 0
        self._orbits, self.pairs.dissolved = None, self.pairs.formed
        rows[:D], rows[3 : 3 + D] = state.position.T, state.velocity.T
        p, _, sums = self._memory
        p[PHASE], p[ACCELERATION] = rows[PHASE], 0.0
        team = worth_dividing(self._team, state.count**2)
        for _ in range(2):  # the second one knows the accelerations
            start_for(gravity.softening)(*team.own_range(state.count), p, state.mass, gravity.length2, gravity.G, sums)
            team.gather_rows(sums, team.bounds(state.count))
            self._fields.add(np.arange(state.count), p, state.mass, 0.0, sums)
            rows[FORCES], p[ACCELERATION] = sums.T, sums.T[:3]
        return rows  # type: ignore[no-any-return]

    def new_stretch(self, before: float, tick: float, unit: int, smallest: int) -> int:
        b, orbits = self._columns, self._formed()
        if len(orbits.first):
            self.pairs.begin_stretch(b, orbits, TICKS, before)
            self._pairs_changed()
        b.last[:] = self._now = 0
        for i, required in enumerate(b.required):
            if b.step[i] < PARKED:
                b.step[i] = in_ticks_now(required, tick, unit)
        self.search_pairs(tick, unit)
        short = np.flatnonzero(b.step < smallest)
        return int(short[0]) if len(short) else -1

    def search_pairs(self, tick: float, unit: int) -> None:
        b = self._columns
        if self.pairs.disturbed(b, self._formed(), self._now, tick):
            self.pairs.dissolve(b, self._now, tick, unit)
            self._pairs_changed()
        if self.pairs.form(b, self._now, tick, unit):
            self._pairs_changed()

    def advance(self, tick: float, end: int, unit: int, smallest: int, steps: int) -> BlockProgress:
        if self._now < 0:
            self._now = int(self._columns.last.max())
        gravity, team, made, singles, waiting = self._gravity, self._team, 0, 0, 0
        ranks = team.rank, team.size, segments.WORTH
        fields = self._fields
        scale = BlockScale(
            tick, unit, smallest, self._shared, self._eta, gravity.length2, gravity.G, fields.begin, fields.parameters,
            ranks,
        )  # fmt: skip
        blocks_of = blocks_for(gravity.softening, self._order, fields.terms, self._state.dimensions)
        while True:
            b, parked = self._columns, self._formed().second
            blocks, self._now, single, failed, exceeded, waiting = blocks_of(
                b, parked, self._now, end, steps - made, scale, self._memory, waiting
            )
            made, singles = made + blocks, singles + single
            if exceeded:
                self.pairs.dissolve(b, self._now, tick, unit)
                self._pairs_changed()
            if waiting:
                team.gather_rows(self._memory.sums[:waiting], team.bounds(waiting))
            if not (exceeded or waiting) or failed >= 0:
                return BlockProgress(made, self._now, singles, failed)

    def _copy_columns(self) -> BlockBodies:
        return BlockBodies(*(column.copy() for column in self._columns))

    def _restore_columns(self, copies: BlockBodies) -> None:
        for column, copy in zip(self._columns, copies, strict=True):
            column[...] = copy

    def present(self, now: float, tick: float) -> None:
        state = self._state
        p = np.empty((9, state.count))
        prediction_for(self._order)(self._columns.rows, p, self._columns.last, float(now), tick)
        state.position[...], state.velocity[...] = p[: state.dimensions].T, p[3 : 3 + state.dimensions].T
        self._formed().resolve(state.position, state.velocity, now, tick)
