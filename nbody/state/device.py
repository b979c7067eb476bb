"""The state on a GPU.

Arrays have rows of four numbers, so that a body is one 128-bit load in float32:

    body         (N, 4)   x   y   z   m
    velocity     (N, 4)   vx  vy  vz  0
    acceleration (N, 4)   ax  ay  az  φ      (φ: potential per unit mass, or the q of ``Want.ENERGY``, if requested)

In 2-D, z = vz = az = 0. Kicks, drifts and the packing of frames are collected until a force evaluation or the host needs
their result, and are then made by one launch: :mod:`nbody.state.moves`. Repeated steps are replayed as CUDA graphs
(:mod:`nbody.state.replay`), and long evaluations report their progress (:mod:`nbody.state.marks`).
"""

from collections.abc import Callable, Collection, Hashable
from typing import Any

import numpy as np

from nbody.diagnostics.density import NEIGHBOURS
from nbody.gpu import cuda, out_of_memory
from nbody.particles import Particles
from nbody.state import Column, Snapshot, State
from nbody.state.clock import GraphTime, moment, set_clock
from nbody.state.frames import COLUMNS
from nbody.state.marks import Marks
from nbody.state.moves import (
    BEND,
    CURVE,
    CURVED_DRIFT,
    DRIFT,
    KICK,
    MOST,
    NOTHING,
    PACK,
    THREADS,
    Area,
    PendingMove,
    blocks,
    copy_potential,
    make_moves,
)  # fmt: skip
from nbody.state.replay import Replays
from nbody.state.staging import DeviceBlock, Staging
from nbody.state.sums import SUMS


class DeviceState(State):
    """Particles on the current CUDA device, in the layout above."""

    COLUMNS = (Column("body", 4), Column("velocity", 4), Column("acceleration", 4))
    body: Any
    velocity: Any
    acceleration: Any
    softening2: Any

    def __init__(self, particles: Particles, dtype: np.dtype) -> None:
        size = self.bytes_needed(particles.count, particles.dimensions, np.dtype(dtype).name)
        with out_of_memory(f"a state of {particles.count} particles", size):
            super().__init__(particles, dtype)
            self._no_area = Area(cuda.device_array((2, 0, 3), dtype), cuda.device_array((0, SUMS), np.float64))
        rows = np.zeros((self.count, 4), dtype)
        rows[:, : self.dimensions] = particles.velocity
        self.velocity.copy_to_device(rows)
        rows[:, : self.dimensions], rows[:, 3] = particles.position, particles.mass
        self.body.copy_to_device(rows)
        self.stream = cuda.stream()
        self.waiting: list[PendingMove] = []
        """Moves that are requested but not made yet."""
        self._area: Area | None = None  # for the frame that one of them packs
        self.has_moved = False
        """True once the kernel that makes moves is compiled."""
        self._replays = Replays()
        self._marks = Marks(self.stream)
        self.recording: int | None = None
        """The steps that were :attr:`made` when the recording of a graph began; None if none is recorded."""
        self._clock = cuda.to_device(np.zeros(1, np.int64))
        self.interactions: int | None = None
        """Those of a force evaluation, in an engine that computes fewer than all pairs."""
        self.division: Any = None
        """The order in which the engine computes bodies with and without mass; None if that is the state's own."""
        self.helpers: Any = None
        """The other GPUs that compute forces (:mod:`nbody.forces.direct.gpu_helpers`); None if there are none."""
        self.ranks: Any = None
        """The processes that divide force evaluations (:mod:`nbody.forces.direct.gpu_ranks`), which no graph can record;
        None if there is one."""
        self._staging: Staging | None = None  # made for the first snapshot

    @property
    def pairs(self) -> int:
        """Interactions per force evaluation."""
        return self.interactions or self.count * (self.division.count if self.division else self.count)

    # --- Moves ---

    def _kick(self, dt) -> None:
        self._note(KICK, dt)

    def _drift(self, dt) -> None:
        self._note(DRIFT, dt)

    def _drift_taylor(self, dt, half_dt2) -> None:
        if self.dtype == np.float32:
            self._note(CURVE, half_dt2)
            self._note(CURVED_DRIFT, dt)
        else:  # in float64 a second rounding is harmless, and earlier recordings keep their bits
            self._note(DRIFT, dt)
            self._note(BEND, half_dt2)

    def _note(self, kind: int, factor, area: Area | None = None) -> None:
        """Collect a move, and the area that it packs a frame into."""
        # A curve stays in registers until the drift after it, so both must be in the same launch.
        full = len(self.waiting) == MOST or (kind == CURVE and len(self.waiting) == MOST - 1)
        if full or (area and self._area):
            self.settle()
        self.waiting.append(PendingMove(kind, factor))
        self._area = area or self._area

    def settle(self) -> None:
        """Make the collected moves. Call this before launching a kernel on the state's arrays."""
        moves, area = self.waiting, self._area or self._no_area
        self.forget_moves()
        if moves:
            none = PendingMove(NOTHING, self.dtype.type(0))
            kinds, factors = zip(*moves, *[none] * (MOST - len(moves)), strict=True)
            arrays = self.body, self.velocity, self.acceleration
            make_moves[blocks(self.count), THREADS, self.stream](*arrays, kinds, factors, area.rows, area.block_sums)
            self._fill(area)
            self.has_moved = True

    def forget_moves(self) -> None:
        """Drop the collected moves."""
        self.waiting, self._area = [], None

    def repeat(self, step: Callable[[], None], count: int, key: Hashable) -> None:
        # Many steps are one replay of a CUDA graph.
        if key is None:
            return super().repeat(step, count, key)
        self._replays.repeat(self, step, count, key)

    def moment(self) -> GraphTime:
        """The time, as kernels take it: :mod:`nbody.state.clock`."""
        if self.recording is None:
            return moment(self._clock, 0, self.now, 0.0, [])
        return moment(self._clock, self.made - self.recording, self.origin, self.dt, self.drifts)

    def set_clock(self) -> None:
        """Set the step at which a graph starts, if a force depends on the time."""
        if self.time_dependent:
            set_clock[1, 32, self.stream](self._clock, np.int64(self.step + self.made))

    # --- Results ---

    def send_with_frames(self, names: Collection[str], particles: Particles) -> None:
        super().send_with_frames(names, particles)
        if "density" in self.frame_columns:
            from nbody.diagnostics.gpu_density import DeviceDensity

            self._density = DeviceDensity(particles, self.dtype)

    def _offered_columns(self) -> tuple[str, ...]:
        return COLUMNS if self.count > NEIGHBOURS else ("potential",)

    def _fill(self, area: Area) -> None:
        """Fill the columns of a frame, whose rows have just been packed. (The bodies may have moved on.)"""
        for name, column in zip(self.frame_columns, area.columns, strict=False):  # an empty area has none
            if name == "potential":
                copy_potential[blocks(self.count), THREADS, self.stream](self.acceleration, column)
            else:
                self._density.launch(area.rows[0], self.body, column, self.stream)

    def snapshot(self) -> Snapshot:
        staging = self._staging_area()
        block = staging.next_block()
        side = staging.side_for(block, self.stream)
        self._pack(side, 1)
        return staging.send(side, block, 1, self.stream)[0]

    def snapshots(self, step: Callable[[], None], count: int, key: Hashable) -> list[Snapshot]:
        # The steps and the packing of their frames are one replay.
        staging = self._staging_area()
        if staging.sides == 1:  # the steps need not wait until the last frame is copied
            self.repeat(step, 1, key)
            return [self.snapshot()]
        block = staging.next_block()
        side = staging.side_for(block, self.stream)
        if key is None:
            self._pack(side, count, step)
        else:
            self._replays.make(self, lambda: self._pack(side, count, step), 1, (key, count, side.number), key)
        return staging.send(side, block, count, self.stream)

    def _staging_area(self) -> Staging:
        self._staging = self._staging or Staging(self.count, self.dtype, self.frame_columns)
        return self._staging

    def _pack(self, side: DeviceBlock, count: int, step: Callable[[], None] | None = None) -> None:
        """Pack ``count`` frames, each after a call of ``step`` if it is given."""
        for area in side.areas[:count]:
            if step is not None:
                step()
            self._note(PACK, self.dtype.type(0), area)
        self.settle()

    def forces(self) -> tuple[np.ndarray, np.ndarray]:
        self.synchronize()
        rows = self.acceleration.copy_to_host()
        return rows[:, : self.dimensions].copy(), rows[:, 3].copy()

    def phase_space(self) -> tuple[np.ndarray, np.ndarray]:
        self.settle()
        self.synchronize()
        position, velocity = (array.copy_to_host()[:, : self.dimensions] for array in (self.body, self.velocity))
        return np.ascontiguousarray(position), np.ascontiguousarray(velocity)

    def views(self) -> tuple[Any, Any]:
        # The fourth number of each row is left out.
        self.settle()
        self.synchronize()
        return self.body[:, : self.dimensions], self.velocity[:, : self.dimensions]

    def arrays(self) -> dict[str, np.ndarray]:
        self.settle()
        return super().arrays()

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.forget_moves()
        super().restore(arrays)

    def _allocate(self, column: Column) -> Any:
        return cuda.to_device(np.zeros_like(self._empty(column), order="C"))

    def _to_host(self, array: Any) -> np.ndarray:
        return array.copy_to_host()

    def _from_host(self, source: np.ndarray, array: Any) -> None:
        array.copy_to_device(source)

    # --- Progress ---

    def report(self, interactions: int) -> None:
        # Without a watch and ranks it does nothing.
        if self.ranks:
            self.ranks.wait()  # with a time limit, which marks do not have
        if self.watch is not None:
            self.requested += interactions
            self._marks.add(interactions, self._add_computed)

    def synchronize(self, soon: bool = False) -> None:
        # It does not wait for frames on their way to the host.
        if self.ranks:
            self.ranks.wait()
        # A wait without signals would not see that a helper has failed.
        self._marks.wait_for_all(soon and self.helpers is None, self._add_computed)
