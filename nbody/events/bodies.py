"""The bodies as events look at them."""

from collections.abc import Callable
from typing import Any, NamedTuple

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
    """The bodies at one moment, or at T moments.

    Attributes:
        time: in the scenario's unit; or (T,).
        position, velocity: (n, D) float64; or (T, n, D).
        known: their masses and ids, and whatever else does not change within a step.
        gravity: the law between them.
    """

    time: Any
    position: Array
    velocity: Array
    known: Particles
    gravity: Gravity

    def relative(self, i: Rows, j: Rows) -> tuple[Array, Array]:
        """Positions and velocities of bodies i relative to j, (…, K, D) each, or (…, D) of two numbers."""
        x, v = self.position, self.velocity
        if j is ORIGIN:
            return x[..., i, :], v[..., i, :]
        return x[..., i, :] - x[..., j, :], v[..., i, :] - v[..., j, :]

    def moments(self, which: Any) -> "Bodies":
        """The bodies at some of T moments, or at one."""
        return self._replace(time=self.time[which], position=self.position[which], velocity=self.velocity[which])

    def of(self, shown: "Callable[[float], Bodies]", times: Array) -> "Bodies":
        """The bodies at (n,) times, one of which ``shown`` shows at a time."""
        found = [shown(float(time)) for time in times]
        x, v = (np.stack(rows) for rows in zip(*(each[1:3] for each in found), strict=True))
        return self._replace(time=times, position=x, velocity=v)

    def each(self, f: Callable[["Bodies"], Any]) -> Array:
        """What a function of the bodies at one moment returns; or at each of T, (T, …)."""
        return np.array([f(self.moments(k)) for k in range(len(self.time))]) if np.ndim(self.time) else f(self)

    def particles(self) -> Particles:
        """The bodies with all that is known of them."""
        found = object.__new__(Particles)  # which were checked when they were made
        found.__dict__.update(self.known.__dict__)
        found.position, found.velocity, found.time = self.position, self.velocity, self.time
        return found


def dot(a: Array, b: Array) -> Array:
    """Scalar products of vectors, (…) of (…, D): the same bits, however many there are."""
    found: Array = a[..., 0] * b[..., 0]
    for d in range(1, a.shape[-1]):
        found = found + a[..., d] * b[..., d]
    return found
