"""The compiled steps of :mod:`.radau`, ended when two bodies touch."""

import hashlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numba.extending import overload

from nbody.forces.direct.cpu_cache import disk_cached
from nbody.integrators import radau
from nbody.integrators.collisions import contact
from nbody.integrators.collisions.contact import any_contact
from nbody.integrators.collisions.span import Span
from nbody.integrators.pair_forces import variant_of
from nbody.integrators.radau import steps_for

STATE = 7
"""The number of arguments between positions and velocities and the time: mass, G, length2, b, e, lost_x, lost_v."""


def make_steps(variant, x, v, arguments):
    """The kernel of a variant (a text, so that the cached file of a kernel that calls it is found again)."""
    raise NotImplementedError("for kernels only")


@overload(make_steps, prefer_literal=True)
def _make_steps_in_a_kernel(variant, x, v, arguments):
    kernel = steps_for(variant.literal_value.split()[0])

    def make_steps(variant, x, v, arguments):
        return kernel(x, v, *arguments)

    return make_steps


@cache
def _watching(name: str) -> Callable:
    made_of = b"".join(Path(module.__file__ or "").read_bytes() for module in (contact, radau))
    variant = f"{variant_of(name)} {hashlib.sha256(made_of).hexdigest()}"  # changes with what the kernel is made of

    def steps_to_contact(x, v, before, state, moment, limits, radius, more):
        """Make steps until two bodies touch.

        Args:
            x, v: (3, N).
            before: (2, 3, N) gets their values at the beginning of the last step.
            state: the kernel's next :data:`STATE` arguments; ``more``: its last ones.
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
            made, time, h, good = make_steps(variant, x, v, state + (time, h, until, 1) + more)  # noqa: RUF005  (Numba)
            done += made
            touched = any_contact(before[0], before[1], x, v, time - begun, radius)
        return done, time, h, good, begun, touched

    return disk_cached(steps_to_contact)


class WatchedSteps:
    """Makes steps as the kernels of :func:`~nbody.integrators.radau.steps_for` do, and stops at the first contact.

    Args:
        radius: (N,).

    ``span`` is the step of the contact after a call; None if there was none.
    """

    def __init__(self, radius: np.ndarray) -> None:
        self._radius = radius
        self.span: Span | None = None

    def steps_for(self, name: str) -> Callable:
        """A function with the arguments and results of the kernel ``name``."""
        return partial(self._call, _watching(name))

    def _call(
        self, watching: Callable, x: np.ndarray, v: np.ndarray, *arguments: Any
    ) -> tuple[int, float, float, bool]:
        before = np.empty((2, *x.shape))
        state, (time, h, until, steps, *more) = arguments[:STATE], arguments[STATE:]
        moment, limits = (float(time), float(h)), (float(until), steps)
        *found, begun, touched = watching(x, v, before, state, moment, limits, self._radius, tuple(more))
        if touched:
            self.span = Span(before[0].T, before[1].T, x.T.copy(), v.T.copy(), begun, found[1])
        return tuple(found)  # type: ignore[return-value]
