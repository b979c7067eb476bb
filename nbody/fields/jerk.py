"""The jerk of external fields, by differences: what Hermite's scheme needs of functions without derivatives."""

from collections.abc import Callable

import numpy as np

Array = np.ndarray

STEP = 1e-3
"""The step of a difference, in units of the time in which a body crosses the field."""

UNKNOWN_SIZE = 1e-4
"""The same if the field's length is not known, in units of the time in which a body crosses its distance from the centre."""


def jerk_along(
    values: Callable[[Array, Array, Array], Array],
    x: Array,
    v: Array,
    a: Array,
    time: float,
    centre: Array,
    size: float | None,
    together: bool = False,
) -> Array:
    """The rate of change (N, D) of a field's acceleration along the bodies' motion: a central difference of order 4. With a
    known length its error is some 1e-12 of the jerk.

    Args:
        values: the accelerations at positions, velocities and times (N,).
        x, v, a: positions, velocities, and the whole acceleration of the bodies, (N, D) each.
        centre: (D,), of the field.
        size: the smallest length over which it changes near its centre; None if that is not known.
        together: the field depends on other bodies, so that all move over the same times.
    """

    def moved(steps: int, h: Array) -> Array:
        return values(x + steps * (v.T * h).T, v + steps * (a.T * h).T, time + steps * h)

    h = difference_steps(x - centre, v, moved(0, np.zeros(len(x))), size)
    if together:
        elsewhere = (x != centre).any(axis=1)
        h[:] = np.min(h[elsewhere], initial=np.inf) if elsewhere.any() else h
    change = 8 * (moved(1, h) - moved(-1, h)) - (moved(2, h) - moved(-2, h))
    return change / (12 * h[:, None])


def difference_steps(d: Array, v: Array, a: Array, size: float | None) -> Array:
    """The steps (N,) of differences in a field with a ``size``, at places d from its centre, velocities and accelerations
    of the field (N, D)."""
    distance = np.linalg.norm(d, axis=1) + (size or 0.0)
    distance = np.where(distance > 0, distance, 1.0) if size is None else distance
    speed = np.linalg.norm(v, axis=1) + np.sqrt(np.linalg.norm(a, axis=1) * distance)
    return (UNKNOWN_SIZE if size is None else STEP) * distance / np.where(speed > 0, speed, 1.0)
