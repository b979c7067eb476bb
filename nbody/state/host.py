"""The state in host memory: NumPy arrays."""

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from nbody.particles import Particles
from nbody.state.clock import StateClock
from nbody.state.columns import Column
from nbody.state.frames import Frame, StateFrames
from nbody.state.moves import DRIFTS, MoveKind, StateMove, StateMoves, moving, parts_of
from nbody.state.progress import ForceProgress
from nbody.state.state import State
from nbody.state.sums import system_sums


class HostMoves(StateMoves):
    """Moves of (N, D) arrays: positions, velocities, accelerations, and one for the Taylor terms of drifts."""

    def __init__(self, arrays: tuple[np.ndarray, ...], clock: StateClock) -> None:
        super().__init__(arrays[0].dtype, clock)
        self._arrays, self._make = arrays, moving(self._add_product)

    @staticmethod
    def _add_product(target: np.ndarray, rate: np.ndarray, factor: Any) -> None:
        target += rate * factor

    def make(self, moves: Iterable[StateMove]) -> None:
        for kind, dt in moves:
            if kind == MoveKind.END:
                self._clock.end_steps()
                continue
            for part, factor in parts_of(kind, dt, self._dtype):
                self._make(part, factor, *self._arrays)
            if kind in DRIFTS:
                self._clock.drift(dt)

    def _negate_velocities(self) -> None:
        np.negative(self._arrays[1], out=self._arrays[1])


class HostFrames(StateFrames):
    """Snapshots of arrays in host memory; the arguments are those of :func:`~nbody.state.sums.system_sums`."""

    def __init__(self, clock: StateClock, *arrays: np.ndarray) -> None:
        super().__init__(clock)
        self._arrays = arrays

    def snapshot(self) -> Frame:
        _, x, v, potential = self._arrays
        sums = system_sums(*self._arrays)
        extras = {name: potential.astype(np.float64) for name in self.extras}  # the only one
        if self.slots is not None:
            x, v = self.slots.spread(x), self.slots.spread(v)
        position, velocity = rows = np.zeros((2, len(x), 3), x.dtype)
        rows[0, :, : x.shape[1]], rows[1, :, : x.shape[1]] = x, v
        step, time = self._clock.reached
        return Frame(step, time, position, velocity, sums=sums, extras=extras, slots=self.slots)


class HostState(State[np.ndarray]):
    """Positions, velocities and accelerations as (N, D) arrays, mass and potential as (N,), all C-contiguous; and
    ``_taylor_term``, (N, D), for moves (:mod:`nbody.state.moves`)."""

    COLUMNS = (
        Column("mass", 0, saved=False),
        Column("position", "D"),
        Column("velocity", "D"),
        Column("acceleration", "D"),
        Column("potential", 0),
        Column("_taylor_term", "D", saved=False),
    )
    mass: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    potential: np.ndarray
    _taylor_term: np.ndarray
    _MOVES: ClassVar[type[HostMoves]] = HostMoves

    def __init__(self, particles: Particles, dtype: np.dtype) -> None:
        super().__init__(particles, dtype)
        self.mass[...] = particles.mass
        self.position[...] = particles.position
        self.velocity[...] = particles.velocity
        self.clock, self.progress = StateClock(particles.time), ForceProgress()
        self.moves = self._MOVES((self.position, self.velocity, self.acceleration, self._taylor_term), self.clock)
        self.frames = HostFrames(self.clock, self.mass, self.position, self.velocity, self.potential)

    def values(self, *names: str, copy: bool = True, rows: np.ndarray | None = None) -> list[np.ndarray]:
        found = [getattr(self, name) for name in names]
        if rows is not None:
            return [array[rows] for array in found]
        return [array.copy() for array in found] if copy else found

    def _allocate(self, zeros: np.ndarray) -> np.ndarray:
        return zeros

    def _to_host(self, array: np.ndarray) -> np.ndarray:
        return array.copy()

    def _from_host(self, source: np.ndarray, array: np.ndarray) -> None:
        array[...] = source
