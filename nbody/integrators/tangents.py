"""Tangent vectors of a run's orbit: solutions of the variational equations, and how fast they grow.

A tangent vector is the derivative of all positions and velocities with respect to a change of the initial ones. From its
length δ follow

    Y(t) = 2/t ∫ s d(ln δ),    MEGNO = 1/t ∫ Y ds,    λ = ln(δ(t)/δ(0))/t.

MEGNO goes to 2 on regular orbits, where δ grows linearly, and grows as λ t/2 on chaotic ones (Cincotta & Simó 2000). λ is an
estimate of the largest Lyapunov exponent at the time t (Benettin et al. 1980), which falls as ln(t)/t on regular orbits.
"""

from collections.abc import Mapping

import numpy as np

from nbody.diagnostics.observables import OF_TANGENTS
from nbody.state import Column

LOG, SIZE2, LATEST, MEAN, TIME = range(5)
"""The numbers of a tangent vector, (5,): ln δ(t)/δ(0); the square of its present length, which scaling changes; Y; MEGNO;
and the time t."""

COLUMNS = "tangent_position", "tangent_velocity"

SEED = 2000


class Tangents:
    """The tangent vectors of one system, or of each of an ensemble. They are columns of the state, in the coordinates of the
    scheme; it moves them with the bodies.

    Args:
        count: M of each system; 0 for none.
        systems: S.

    Attributes:
        numbers: (S, M, 5), see :data:`LOG`.
    """

    def __init__(self, count: int = 0, systems: int = 1) -> None:
        self.count, self.numbers = count, np.zeros((systems, count, 5))

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the state."""
        return tuple(Column(name, 3 * self.count) for name in COLUMNS) if self.count else ()

    @property
    def varied(self) -> tuple[bool, ...]:
        """``(True,)`` if there are any, else ``()``: two types, for which kernels are compiled apart."""
        return (True,) if self.count else ()

    def first(self, bodies: int, dimensions: int) -> np.ndarray:
        """The vectors at the beginning, (M, 2, 3, n): positions and velocities of n bodies, in directions that are random
        but the same for every system and in every run."""
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(SEED)))
        found = rng.standard_normal((self.count, 2, 3, bodies))
        found[:, :, dimensions:] = 0.0
        return found / np.sqrt(np.sum(found * found, axis=(1, 2, 3), keepdims=True))  # type: ignore[no-any-return]

    def observed(self, prefix: str = "") -> dict[str, np.ndarray]:
        """The observables that belong to the first vector: a number of a single system, (S,) of an ensemble."""
        if not self.count:
            return {}
        numbers = self.numbers[:, 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            exponents = np.where(numbers[:, TIME] > 0, numbers[:, LOG] / numbers[:, TIME], 0.0)
        found = zip(OF_TANGENTS, (numbers[:, MEAN].copy(), exponents), strict=True)
        return {prefix + name: values if prefix else values[0] for name, values in found}

    def arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint keeps besides the columns."""
        return {"growth": self.numbers} if self.count else {}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore what :meth:`arrays` returned."""
        if self.count:
            self.numbers = arrays["growth"].copy()
