"""The bodies as events look at them."""

from typing import NamedTuple

import numpy as np

from nbody.law import Gravity
from nbody.particles import Particles

Array = np.ndarray

NONE = -1
"""The id of a body that is not there."""

ORIGIN = None
"""Stands for the rows of bodies to which others are relative, if these are none."""

Rows = Array | int | None
"""Rows of bodies, or one (which is faster: a step of few bodies is a matter of microseconds)."""


class Bodies(NamedTuple):
    """The bodies at one moment.

    Attributes:
        time: in the scenario's unit.
        position, velocity: (n, D) float64.
        known: their masses and ids, and whatever else does not change within a step.
        gravity: the law between them.
    """

    time: float
    position: Array
    velocity: Array
    known: Particles
    gravity: Gravity

    def relative(self, i: Rows, j: Rows) -> tuple[Array, Array]:
        """Positions and velocities of bodies i relative to j, (K, D) each, or (D,) of two numbers."""
        x, v = self.position, self.velocity
        return (x[i], v[i]) if j is ORIGIN else (x[i] - x[j], v[i] - v[j])

    def particles(self) -> Particles:
        """The bodies with all that is known of them."""
        found = object.__new__(Particles)  # which were checked when they were made
        found.__dict__.update(self.known.__dict__)
        found.position, found.velocity, found.time = self.position, self.velocity, self.time
        return found


def dot(a: Array, b: Array) -> Array:
    """Scalar products of the vectors in rows, (K,) of (K, D); a number of (D,)."""
    found: Array = a @ b if a.ndim == 1 else np.einsum("ij,ij->i", a, b)
    return found
