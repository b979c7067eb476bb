"""The state in the computer's own memory: plain NumPy arrays."""

import numpy as np

from nbody.particles import Particles
from nbody.state import Potential, Snapshot, State
from nbody.state.sums import system_sums


class HostState(State):
    """Positions, velocities and accelerations as (N, D) arrays, mass and potential as (N,), all C-contiguous."""

    def __init__(self, particles: Particles, dtype: np.dtype) -> None:
        super().__init__(particles, dtype)
        self.mass = particles.mass.astype(dtype)
        self.position = particles.position.astype(dtype)
        self.velocity = particles.velocity.astype(dtype)
        self.acceleration = np.zeros_like(self.position)
        self.potential = np.zeros_like(self.mass)
        self._scratch = np.empty_like(self.position)  # so that a step allocates nothing

    def _add(self, target: np.ndarray, rate: np.ndarray, factor) -> None:
        """target += rate · factor."""
        np.multiply(rate, factor, out=self._scratch)
        target += self._scratch

    def _kick(self, dt) -> None:
        self._add(self.velocity, self.acceleration, dt)

    def _drift(self, dt) -> None:
        self._add(self.position, self.velocity, dt)

    def _drift_taylor(self, dt, half_dt2) -> None:
        self._add(self.position, self.velocity, dt)
        self._add(self.position, self.acceleration, half_dt2)

    def snapshot(self) -> Snapshot:
        """See :meth:`State.snapshot`."""
        sums = system_sums(self.mass, self.position, self.velocity, self.potential)
        position, velocity = rows = np.zeros((2, self.count, 3), self.dtype)
        rows[0, :, : self.dimensions], rows[1, :, : self.dimensions] = self.position, self.velocity
        return Snapshot(position, velocity, sums)

    def forces(self) -> tuple[np.ndarray, np.ndarray]:
        """See :meth:`State.forces`."""
        return self.acceleration.copy(), self.potential.copy()

    def arrays(self) -> dict[str, np.ndarray]:
        """See :meth:`State.arrays`."""
        names = ("position", "velocity", "acceleration", "potential")
        return {name: getattr(self, name).copy() for name in names} | {"fresh": self._flags()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """See :meth:`State.restore`."""
        for name in ("position", "velocity", "acceleration", "potential"):
            getattr(self, name)[...] = arrays[name]
        fresh, potential = arrays["fresh"]
        self.fresh, self.has_potential = bool(fresh), Potential(int(potential))

    def _flags(self) -> np.ndarray:
        return np.array([self.fresh, self.has_potential], np.uint8)
