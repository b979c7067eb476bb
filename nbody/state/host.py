"""The state in host memory: NumPy arrays."""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from nbody.particles import Particles
from nbody.state.clock import StateClock
from nbody.state.columns import Column
from nbody.state.frames import Frame, StateFrames
from nbody.state.moves import StateMove, StateMoves
from nbody.state.progress import ForceProgress
from nbody.state.state import State
from nbody.state.sums import system_sums


class HostMoves(StateMoves):
    """Moves of (N, D) arrays. ``scratch`` has their shape, so that a step allocates no memory."""

    def __init__(
        self,
        position: np.ndarray,
        velocity: np.ndarray,
        acceleration: np.ndarray,
        scratch: np.ndarray,
        clock: StateClock,
    ) -> None:
        super().__init__(position.dtype, clock)
        self._position, self._velocity, self._acceleration, self._scratch = position, velocity, acceleration, scratch

    def _add_product(self, target: np.ndarray, rate: np.ndarray, factor) -> None:
        """target += rate · factor."""
        np.multiply(rate, factor, out=self._scratch)
        target += self._scratch

    def make(self, moves: Iterable[StateMove]) -> None:
        x, v, a, real = self._position, self._velocity, self._acceleration, self._dtype.type
        for kind, dt in moves:
            if kind == "end":
                self._clock.end_steps()
            elif kind == "kick":
                self._add_product(v, a, real(dt))
            elif kind == "drift":
                self._add_product(x, v, real(dt))
            elif self._dtype == np.float32:
                np.multiply(v, real(dt), out=self._scratch)
                self._scratch += a * real(0.5 * dt * dt)
                x += self._scratch
            else:  # in float64 a second rounding is harmless, and earlier recordings keep their bits
                self._add_product(x, v, dt)
                self._add_product(x, a, 0.5 * dt * dt)
            if kind.startswith("drift"):
                self._clock.drift(dt)


class HostFrames(StateFrames):
    """Snapshots of arrays in host memory; the arguments are those of :func:`~nbody.state.sums.system_sums`."""

    def __init__(self, clock: StateClock, *arrays: np.ndarray) -> None:
        super().__init__(clock)
        self._arrays = arrays

    def snapshot(self) -> Frame:
        _, x, v, potential = self._arrays
        sums = system_sums(*self._arrays)
        columns = {name: potential.astype(np.float64) for name in self.columns}  # the only one
        if self.slots is not None:
            x, v = self.slots.spread(x), self.slots.spread(v)
        position, velocity = rows = np.zeros((2, len(x), 3), x.dtype)
        rows[0, :, : x.shape[1]], rows[1, :, : x.shape[1]] = x, v
        step, time = self._clock.reached
        return Frame(step, time, position, velocity, sums=sums, columns=columns, slots=self.slots)


class HostState(State[np.ndarray]):
    """Positions, velocities and accelerations as (N, D) arrays, mass and potential as (N,), all C-contiguous."""

    COLUMNS = (
        Column("mass", 0, saved=False),
        Column("position", "D"),
        Column("velocity", "D"),
        Column("acceleration", "D"),
        Column("potential", 0),
        Column("_scratch", "D", saved=False),
    )
    mass: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    potential: np.ndarray
    _scratch: np.ndarray
    _MOVES: ClassVar[type[HostMoves]] = HostMoves

    def __init__(self, particles: Particles, dtype: np.dtype) -> None:
        super().__init__(particles, dtype)
        self.mass[...] = particles.mass
        self.position[...] = particles.position
        self.velocity[...] = particles.velocity
        self.clock, self.progress = StateClock(particles.time), ForceProgress()
        self.moves = self._MOVES(self.position, self.velocity, self.acceleration, self._scratch, self.clock)
        self.frames = HostFrames(self.clock, self.mass, self.position, self.velocity, self.potential)

    def values(self, *names: str, copy: bool = True) -> list[np.ndarray]:
        found = [getattr(self, name) for name in names]
        return [array.copy() for array in found] if copy else found

    def _allocate(self, zeros: np.ndarray) -> np.ndarray:
        return zeros

    def _to_host(self, array: np.ndarray) -> np.ndarray:
        return array.copy()

    def _from_host(self, source: np.ndarray, array: np.ndarray) -> None:
        array[...] = source
