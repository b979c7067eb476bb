"""Tangent vectors of a run's orbit: solutions of the variational equations, and how fast they grow.

A tangent vector is the derivative of all positions and velocities with respect to a change of the initial ones. From its
length δ follow

    Y(t) = 2/t ∫ s d(ln δ),    MEGNO = 1/t ∫ Y ds,    λ = ln(δ(t)/δ(0))/t.

MEGNO goes to 2 on regular orbits, where δ grows linearly, and grows as λ t/2 on chaotic ones (Cincotta & Simó 2000). λ is an
estimate of the largest Lyapunov exponent at the time t (Benettin et al. 1980), which falls as ln(t)/t on regular orbits.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from nbody.diagnostics.observables import OF_TANGENTS
from nbody.state import Column
from nbody.state.host import HostState

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
        given: (M, 2, 3, n) the vectors at the beginning; by default random ones. These are not scaled, so nothing observes
            how fast they grow.
        masses: (M, n) the changes of the masses that belong to them, or (0, n).

    Attributes:
        numbers: (S, M, 5), see :data:`LOG`; (S, 0, 5) of vectors that are given.
    """

    def __init__(
        self, count: int = 0, systems: int = 1, given: np.ndarray | None = None, masses: np.ndarray | None = None
    ) -> None:
        self.count, self.given = count if given is None else len(given), given
        self.masses = np.zeros((0, 0)) if masses is None else masses
        self.numbers = np.zeros((systems, self.count if given is None else 0, 5))

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the state."""
        return tuple(Column(name, 3 * self.count, dtype="float64") for name in COLUMNS) if self.count else ()

    @property
    def varied(self) -> tuple[bool, ...]:
        """``(True,)`` if there are any, else ``()``: two types, for which kernels are compiled apart."""
        return (True,) if self.count else ()

    def first(self, bodies: int, dimensions: int) -> np.ndarray:
        """The vectors at the beginning, (M, 2, 3, n): positions and velocities of n bodies, in directions that are random
        but the same for every system and in every run, if none are given."""
        if self.given is not None:
            return self.given
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(SEED)))
        found = rng.standard_normal((self.count, 2, 3, bodies))
        found[:, :, dimensions:] = 0.0
        return found / np.sqrt(np.sum(found * found, axis=(1, 2, 3), keepdims=True))  # type: ignore[no-any-return]

    def begin(self, state: HostState) -> None:
        """Put the first vectors of all systems into a state, in its coordinates, and let them begin to grow."""
        systems, grown = self.numbers.shape[:2]
        with tangent_vectors(state, self.count, systems) as vectors:
            vectors[:] = self.first(state.count // systems, state.dimensions)
            self.numbers[:] = 0.0
            self.numbers[..., SIZE2] = np.sum(vectors[:, :grown] ** 2, axis=(2, 3, 4))

    def observed(self, prefix: str = "") -> dict[str, np.ndarray]:
        """The observables that belong to the first vector: a number of a single system, (S,) of an ensemble."""
        if not self.numbers.size:
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


@contextmanager
def tangent_vectors(state: HostState, count: int, systems: int = 1) -> Iterator[np.ndarray]:
    """The columns of :class:`Tangents` as an (S, M, 2, 3, n) array, which replaces them after a
    ``with`` block."""
    n = state.count // systems
    columns = state.values(*COLUMNS, copy=False) if count else ()
    found = np.empty((systems, count, 2, 3, n))
    for c, rows in enumerate(columns):
        found[:, :, c] = rows.reshape(systems, n, count, 3).transpose(0, 2, 3, 1)
    yield found
    for c, rows in enumerate(columns):
        rows[...] = found[:, :, c].transpose(0, 3, 1, 2).reshape(rows.shape)
