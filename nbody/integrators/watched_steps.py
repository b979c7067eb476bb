"""Compiled steps that end when two bodies touch, made of a kernel that makes steps."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from nbody.collisions.contact import Span, any_contact
from nbody.forces.direct.cpu_cache import disk_cached


@cache
def _watching(kernel: Callable) -> Callable:
    def steps_to_contact(x, v, before, state, moment, limits, radius, more):
        """Call ``kernel(x, v, *state, *moment, until, 1, *more)`` until two bodies touch.

        Args:
            x, v: (3, N).
            before: (2, 3, N) gets their values at the beginning of the last step.
            moment: the time and the length of the next step.
            limits: the time until, and the number of steps.
            radius: (N,).

        Returns:
            What the kernel returns (number of steps, time, next step, success), the time of the last step's beginning, and
            True if two bodies have touched in it.
        """
        time, h = moment
        until, steps = limits
        done, good, begun, touched = 0, True, time, False
        while done < steps and time < until and good and not touched:
            before[0], before[1], begun = x, v, time
            made, time, h, good = kernel(x, v, *(state + (time, h, until, 1) + more))  # noqa: RUF005  (Numba)
            done += made
            touched = any_contact(before[0], before[1], x, v, time - begun, radius)
        return done, time, h, good, begun, touched

    return disk_cached(steps_to_contact)


class WatchedSteps:
    """Stands for a kernel ``kernel(x, v, *state, time, h, until, steps, *more)``, and stops at the first contact.

    Args:
        radius: (N,).
        states: the number of arguments ``state``.

    ``span`` is the step of the contact after a call; None if there was none.
    """

    def __init__(self, radius: np.ndarray, states: int) -> None:
        self._radius, self._states = radius, states
        self.span: Span | None = None

    def call(self, kernel: Callable, x: np.ndarray, v: np.ndarray, *arguments: Any) -> tuple[int, float, float, bool]:
        """Call the kernel with these arguments."""
        state, rest = arguments[: self._states], arguments[self._states :]
        before = np.empty((2, *x.shape))
        *found, begun, touched = _watching(kernel)(
            x, v, before, state, (float(rest[0]), float(rest[1])), (float(rest[2]), rest[3]), self._radius, rest[4:]
        )
        if touched:
            self.span = Span(before[0].T, before[1].T, x.T.copy(), v.T.copy(), begun, found[1])
        return tuple(found)  # type: ignore[return-value]
