"""The particles at one moment, as the initial conditions, the engines and the file exchange them."""

from dataclasses import dataclass, field

import numpy as np

from nbody.errors import InputError

Array = np.ndarray


@dataclass
class Particles:
    """N bodies in D dimensions at one moment.

    Attributes:
        mass: (N,) float64, not negative. Units: the scenario's.
        position: (N, D) float64, D is 2 or 3.
        velocity: (N, D) float64.
        id: (N,) int64, unique; 0 … N-1 by default.
        time: the time of this moment, in the scenario's unit.
        step: the number of steps made so far.
    """

    mass: Array
    position: Array
    velocity: Array
    id: Array = field(default_factory=lambda: np.empty(0, np.int64))
    time: float = 0.0
    step: int = 0

    def __post_init__(self) -> None:
        self.mass = np.ascontiguousarray(self.mass, np.float64)
        self.position = np.ascontiguousarray(self.position, np.float64)
        self.velocity = np.ascontiguousarray(self.velocity, np.float64)
        if not len(self.id):
            self.id = np.arange(len(self.mass), dtype=np.int64)
        self.id = np.ascontiguousarray(self.id, np.int64)

    @property
    def count(self) -> int:
        """N."""
        return len(self.mass)

    @property
    def dimensions(self) -> int:
        """D, 2 or 3."""
        return self.position.shape[1]

    def check(self, where: str = "") -> "Particles":
        """Return these particles, if they are physically meaningful.

        Raises:
            InputError: different lengths, a dimension other than 2 or 3, no particles, a NaN or an infinity (the message
                names the first row), a negative mass, only zero masses, or repeated ids.
        """
        n = len(self.mass)
        if self.mass.ndim != 1 or self.position.ndim != 2 or self.velocity.ndim != 2:
            raise InputError(
                f"{where}mass must be (N,), position and velocity (N, 2) or (N, 3); "
                f"got {self.mass.shape}, {self.position.shape}, {self.velocity.shape}"
            )
        if n == 0:
            raise InputError(f"{where}there are no particles; give at least one")
        for name in ("position", "velocity", "id"):
            if len(getattr(self, name)) != n:
                raise InputError(
                    f"{where}{name} has {len(getattr(self, name))} rows but mass has {n}; "
                    "every array needs one row per particle"
                )
        if self.dimensions not in (2, 3) or self.velocity.shape != self.position.shape:
            raise InputError(
                f"{where}position {self.position.shape} and velocity {self.velocity.shape} "
                "must both be (N, 2) or both (N, 3)"
            )
        for name in ("mass", "position", "velocity"):
            finite = np.isfinite(getattr(self, name)).reshape(n, -1).all(axis=1)
            if not finite.all():
                raise InputError(
                    f"{where}{name} of particle {int(np.argmin(finite))} (counted from 0) "
                    "is not a finite number; correct or remove that row"
                )
        if (self.mass < 0).any():
            row = int(np.argmax(self.mass < 0))
            raise InputError(
                f"{where}mass of particle {row} (counted from 0) is negative ({self.mass[row]:g}); "
                "masses are zero or more"
            )
        if not self.mass.any():
            raise InputError(f"{where}every mass is zero; at least one particle needs a mass")
        ids = np.sort(self.id)  # np.unique() would import another 10 ms of NumPy
        if (ids[1:] == ids[:-1]).any():
            raise InputError(f"{where}ids repeat; every particle needs its own")
        return self
