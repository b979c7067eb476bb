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

    distance = np.linalg.norm(x - centre, axis=1) + (size or 0.0)
    elsewhere = distance > 0
    distance = np.where(distance > 0, distance, 1.0) if size is None else distance
    still = np.zeros(len(x))
    speed = np.linalg.norm(v, axis=1) + np.sqrt(np.linalg.norm(moved(0, still), axis=1) * distance)
    h = (UNKNOWN_SIZE if size is None else STEP) * distance / np.where(speed > 0, speed, 1.0)
    if together:
        h[:] = np.min(h[elsewhere], initial=np.inf) if elsewhere.any() else h
    change = 8 * (moved(1, h) - moved(-1, h)) - (moved(2, h) - moved(-2, h))
    return change / (12 * h[:, None])
