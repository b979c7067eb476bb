"""Block time steps on a GPU: three kernels per block, and nothing returns to the host between them.

    predict   all bodies to the next time; list the bodies whose steps end there
    force     each warp: some of the listed bodies, and a chunk of all bodies, from tiles in shared memory
    finish    each warp: the sums of one listed body in a fixed order, its correction and its next step

Several GPUs divide the sums, and exchange them between ``force`` and ``finish``: :mod:`.gpu_workers`.

Where blocks are small their number is what counts: twenty-four of them are one CUDA graph. The next time is the smallest end
of all steps, found by the kernels that touch them (an atomic minimum of integers, which has no order). The listed bodies may
come in any order: no sum depends on it.

In ``mixed``, which order 4 offers, the pairs are computed in float32, from positions split into two float32 numbers and
velocities. The sums over tiles are float32; all others, and the bodies themselves, are float64.
"""

from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.errors import DeviceError
from nbody.forces.engine import devices_of
from nbody.integrators.integrator import Motion
from nbody.integrators.solvers.blocks import gpu_layout as layout
from nbody.integrators.solvers.blocks.bodies import BlockBodies, check_restored
from nbody.integrators.solvers.blocks.formulas import FORCES, POSITION, ROWS, TICKS, VELOCITY
from nbody.integrators.solvers.blocks.gpu_steps import begin, resolve
from nbody.integrators.solvers.blocks.gpu_workers import (
    BLOCKS_PER_GRAPH,
    NO_FIELDS,
    BlockKernels,
    Workers,
    blocks_for,
    empty_bodies,
)
from nbody.integrators.solvers.blocks.loop import BlockLoop, BlockProgress
from nbody.integrators.solvers.blocks.memory import PARTS_FROM, parts_for

MOST_GRAPHS = 16
"""Graphs that are launched before the host looks at the clock."""


def _devices(engine: Any, count: int, parts: int) -> tuple[tuple[int, ...], str]:
    """The devices of an engine that make the steps, and a line if that is only the first of several."""
    devices = devices_of(engine)
    if len(devices) == 1 or (parts > 1 and compute.connect(devices)):
        return devices, ""
    line = f"gpus: one of {len(devices)} GPUs made the steps; "
    if parts > 1:
        return devices[:1], line + "they have no access to each other's memory"
    worth = count >= PARTS_FROM[False]  # below, the run has said so before
    return devices[
        :1
    ], line + f"in mixed precision it is worth dividing them from {PARTS_FROM[True]} bodies on" if worth else ""


class DeviceBlocks(BlockLoop):
    """The loop over blocks of one state on the device."""

    def __init__(self, motion: Motion, order: int, eta: float, shared: bool = False, threshold: float = 0.0) -> None:
        state: Any = motion.state
        engine: Any = motion.engine
        gravity, count, mixed = engine.gravity, state.count, engine.precision == "mixed"
        masses = np.array(state.body.copy_to_host()[:, 3], np.float64)
        super().__init__(motion, order, eta, shared, threshold, masses)
        ticks = state.ticks.reshape(2, count)
        mass, limit = cuda.to_device(masses), cuda.to_device(np.zeros(count))
        rows = state.derivatives.reshape(ROWS, count)
        self._columns = BlockBodies(rows, ticks[0], ticks[1], state.wanted_step, mass, limit)
        parts = parts_for(count, mixed)
        self._kernels = BlockKernels.of(gravity.softening, order, mixed, shared, parts, self._fields.terms, state.dimensions)
        devices, self.message = _devices(engine, count, parts)
        self._workers = Workers(
            self._columns,
            self._kernels,
            devices,
            state.stream,
            self._fields.parameters if self._fields.terms else NO_FIELDS,
        )
        self._copies: BlockBodies | None = None
        self.restored()

    def column(self, name: str) -> np.ndarray:
        self._state.stream.synchronize()
        return getattr(self._columns, name).copy_to_host()  # type: ignore[no-any-return]

    def set_column(self, name: str, values: np.ndarray) -> None:
        getattr(self._columns, name).copy_to_device(values)
        self._next = -1

    def restored(self, now: int = TICKS) -> None:
        rows, last, step, *_ = self._bodies()
        check_restored(rows, last, step, now)
        self._next, self._now = -1, 0  # the end of the next block, -1: to be found; and that of the last one
        self._orbits = None

    def _bodies(self) -> BlockBodies:
        """The bodies on the host."""
        self._state.stream.synchronize()
        return BlockBodies(*(column.copy_to_host() for column in self._columns))

    def _pairs_changed(self, b: BlockBodies | None = None) -> None:
        # Copies the bodies to the device, if they are on the host now.
        b = b or self._bodies()
        self._orbits = self.pairs.orbits(b.rows, b.last, b.step)
        b.mass[:], b.limit[:] = self.pairs.masses_and_limits(self._orbits)
        for column, values in zip(self._columns, b, strict=True):
            column.copy_to_device(values)
        self._next = -1

    def first_derivatives(self) -> np.ndarray:
        state = self._state
        rows = np.zeros((ROWS, state.count))
        rows[POSITION], rows[VELOCITY] = state.body.copy_to_host()[:, :3].T, state.velocity.copy_to_host()[:, :3].T
        self._columns.rows.copy_to_device(rows)
        for ticks in (self._columns.last, self._columns.step):
            ticks.copy_to_device(np.zeros(state.count, np.int64))
        self.pairs.dissolved = self.pairs.formed
        self._orbits = None
        self._formed()
        for _ in range(2):  # the second one knows the accelerations
            self._workers.copy_bodies()
            self._set_clock(0.0, 0, 0, 0, 1, 1)
            self._workers.derivatives()
            state.stream.synchronize()
            rows = self._columns.rows.copy_to_host()
            if self._fields.terms:
                sums = rows[FORCES].T.copy()
                self._fields.add(np.arange(state.count), rows, self.column("mass"), 0.0, sums)
                rows[FORCES] = sums.T
                self._columns.rows.copy_to_device(rows)
        return rows

    def new_stretch(self, before: float, tick: float, unit: int, smallest: int) -> int:
        state, orbits = self._state, self._formed()
        if len(orbits.first):
            b = self._bodies()
            self.pairs.begin_stretch(b, orbits, TICKS, before)
            self._pairs_changed(b)
        self._set_clock(tick, layout.FAR, 0, unit, smallest, 0)
        first, (_, last, step, required, *_) = self._workers.first, self._columns
        begin[blocks_for(state.count), layout.THREADS, state.stream](last, step, required, first.clock, first.scale)
        state.stream.synchronize()
        clock = first.clock.copy_to_host()
        self._next, self._now = int(clock[layout.NEXT]), 0
        self.search_pairs(tick, unit)
        if clock[layout.FAILED] < 0:
            return -1
        short = np.flatnonzero(self.column("step") < smallest)  # but for pairs that have formed
        return int(short[-1]) if len(short) else -1

    def search_pairs(self, tick: float, unit: int) -> None:
        if self.pairs.threshold == 0.0:
            return
        orbits = self._formed()
        if len(orbits.first) and self._fields.terms:
            b = self._bodies()
            if self.pairs.disturbed(b, orbits, self._now, tick):
                self.pairs.dissolve(b, self._now, tick, unit)
                self._pairs_changed(b)
        last, step, limit = (self.column(name) for name in ("last", "step", "limit"))
        if len(self.pairs.candidates(last, step, limit, self._now)) > 1:
            b = self._bodies()
            if self.pairs.form(b, self._now, tick, unit):
                self._pairs_changed(b)

    def advance(self, tick: float, end: int, unit: int, smallest: int, steps: int) -> BlockProgress:
        self._formed()
        made = singles = reached = 0
        while True:
            clock = self._blocks_until(tick, end, unit, smallest, steps - made)
            made, singles = made + int(clock[layout.BLOCKS_DONE]), singles + int(clock[layout.SINGLE])
            reached, failed = int(clock[layout.REACHED]) or reached, int(clock[layout.FAILED])
            self._now = reached or self._now
            if clock[layout.EXCEEDED]:
                b = self._bodies()
                self.pairs.dissolve(b, self._now, tick, unit)
                self._pairs_changed(b)
            if not clock[layout.EXCEEDED] or failed >= 0:
                return BlockProgress(made, reached, singles, failed)

    def _blocks_until(self, tick: float, end: int, unit: int, smallest: int, steps: int) -> np.ndarray:
        """Make up to ``steps`` blocks, or all until ``end``, or until a pair is to be dissolved. Returns the clock."""
        if self._next < 0:
            self._next = int((self.column("last") + self.column("step")).min())
        self._workers.copy_bodies()
        self._set_clock(tick, self._next, end, unit, smallest, steps)
        graphs, made = 1, 0
        while True:
            for _ in range(graphs):
                self._workers.blocks()
            clock = self._workers.clock()
            before, made = made, int(clock[layout.BLOCKS_DONE])
            self._next = int(clock[layout.NEXT])
            if made >= steps or self._next > end or clock[layout.FAILED] >= 0 or clock[layout.EXCEEDED]:
                return clock
            if made == before:
                raise DeviceError(
                    "the GPU made no block step, although the next one was due; test it with 'nbody doctor', and go on "
                    "with 'nbody resume'"
                )
            graphs = min(MOST_GRAPHS, 2 * graphs, -(-(steps - made) // BLOCKS_PER_GRAPH))

    def _copy_columns(self) -> BlockBodies:
        copies = self._copies = self._copies or empty_bodies(self._state.count)
        self._copy(self._columns, copies)
        return copies

    def _restore_columns(self, copies: BlockBodies) -> None:
        self._copy(copies, self._columns)
        self._next = -1

    def _copy(self, source: BlockBodies, target: BlockBodies) -> None:
        self._state.stream.synchronize()
        for here, there in zip(source, target, strict=True):
            there.copy_to_device(here, self._state.stream)
        self._state.stream.synchronize()

    def present(self, now: float, tick: float) -> None:
        state = self._state
        self._kernels.prediction.present[blocks_for(state.count), layout.THREADS, state.stream](
            self._columns.rows, state.body, state.velocity, self._columns.last, float(now), tick
        )
        orbits = self._formed()
        if len(orbits.first):
            relative = cuda.to_device(np.concatenate(orbits.at(now, tick)))
            first, second, fraction = map(cuda.to_device, (orbits.first, orbits.second, orbits.fraction))
            resolve[blocks_for(len(orbits.first)), layout.THREADS, state.stream](
                state.body, state.velocity, first, second, relative, fraction
            )
            state.stream.synchronize()  # the arrays are needed until then

    def _set_clock(self, tick: float, following: int, end: int, unit: int, smallest: int, budget: int) -> None:
        clock = np.zeros(layout.CLOCK, np.int64)
        clock[: layout.LISTED], clock[layout.NEXT], clock[layout.FAILED] = layout.FAR, following, -1
        clock[[layout.END, layout.UNIT, layout.SMALLEST, layout.BUDGET]] = end, unit, smallest, budget
        self._workers.set(clock, np.array([tick, self._eta, self._gravity.G, self._gravity.length2, self._fields.begin]))
