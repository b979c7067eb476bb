"""The state in host memory: NumPy arrays."""

import numpy as np

from nbody.particles import Particles
from nbody.state import Column, Snapshot, State
from nbody.state.sums import system_sums


class HostState(State):
    """Positions, velocities and accelerations as (N, D) arrays, mass and potential as (N,), all C-contiguous."""

    COLUMNS = (
        Column("mass", 0, saved=False),
        Column("position", "D"),
        Column("velocity", "D"),
        Column("acceleration", "D"),
        Column("potential", 0),
        Column("_scratch", "D", saved=False),  # so that a step allocates no memory
    )
    mass: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    potential: np.ndarray
    jerk: np.ndarray
    softening2: np.ndarray
    _scratch: np.ndarray

    def __init__(self, particles: Particles, dtype: np.dtype) -> None:
        super().__init__(particles, dtype)
        self.mass[...] = particles.mass
        self.position[...] = particles.position
        self.velocity[...] = particles.velocity

    def _add_product(self, target: np.ndarray, rate: np.ndarray, factor) -> None:
        """target += rate · factor."""
        np.multiply(rate, factor, out=self._scratch)
        target += self._scratch

    def _kick(self, dt) -> None:
        self._add_product(self.velocity, self.acceleration, dt)

    def _drift(self, dt) -> None:
        self._add_product(self.position, self.velocity, dt)

    def _drift_taylor(self, dt, half_dt2) -> None:
        if self.dtype == np.float32:
            np.multiply(self.velocity, dt, out=self._scratch)
            self._scratch += self.acceleration * half_dt2
            self.position += self._scratch
        else:  # in float64 a second rounding is harmless, and earlier recordings keep their bits
            self._add_product(self.position, self.velocity, dt)
            self._add_product(self.position, self.acceleration, half_dt2)

    def snapshot(self) -> Snapshot:
        sums = system_sums(self.mass, self.position, self.velocity, self.potential)
        position, velocity = rows = np.zeros((2, self.count, 3), self.dtype)
        rows[0, :, : self.dimensions], rows[1, :, : self.dimensions] = self.position, self.velocity
        columns = {name: self.potential.astype(np.float64) for name in self.frame_columns}  # the only one
        return Snapshot(position, velocity, sums, columns)

    def forces(self) -> tuple[np.ndarray, np.ndarray]:
        return self.acceleration.copy(), self.potential.copy()

    def phase_space(self) -> tuple[np.ndarray, np.ndarray]:
        return self.position.copy(), self.velocity.copy()

    def views(self) -> tuple[np.ndarray, np.ndarray]:
        return self.position, self.velocity

    def _allocate(self, column: Column) -> np.ndarray:
        return np.zeros_like(self._empty(column), order="C")

    def _to_host(self, array: np.ndarray) -> np.ndarray:
        return array.copy()

    def _from_host(self, source: np.ndarray, array: np.ndarray) -> None:
        array[...] = source
