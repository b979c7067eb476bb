"""The compiled steps of :mod:`.radau`, ended when two bodies touch."""

import hashlib
import math
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numba.extending import overload

from nbody import compute
from nbody.integrators.collisions import contact
from nbody.integrators.collisions.contact import any_contact
from nbody.integrators.collisions.span import Span
from nbody.integrators.solvers import radau
from nbody.integrators.solvers.few_bodies import BEGIN, END
from nbody.integrators.solvers.pair_forces import variant_of
from nbody.integrators.solvers.radau import steps_for

MORE = 3
"""The number of arguments of a kernel after ``steps``: the longest step, eta, and the further numbers."""


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

    def steps_to_contact(x, v, arguments, begin, clock, limits, radius, more, again):
        """Make steps until two bodies touch in the last one.

        Args:
            x, v: (3, N).
            arguments: the kernel's next ones, up to ``begin``; ``more``: those after ``steps``.
            limits: the time until; a later one at which the bodies are shown at most; and the number of steps.
            radius: (N,).
            again: look at the last step, too.

        Returns:
            The number of steps, False if the next one cannot be made, and True if two bodies touch.
        """
        until, shown, steps = limits
        done, good, touched, count = 0, True, False, 0 if again else 1
        while (count == 0 or (done < steps and clock[END] < until)) and good and not touched:
            made, good = make_steps(variant, x, v, arguments + (begin, clock, shown, np.inf, count) + more)  # noqa: RUF005
            touched = made >= count and any_contact(begin[0], begin[1], x, v, clock[END] - clock[BEGIN], radius)
            done, count = done + made, 1
        return done, good, touched

    return compute.kernel("cpu")(steps_to_contact)


class WatchedSteps:
    """Makes steps as the kernels of :func:`~nbody.integrators.solvers.radau.steps_for` do, and stops at the first contact.

    Args:
        radius: (N,).
        within: the bodies are within a step, at which nothing has looked.

    ``span`` is the step of the contact after a call; None if there was none, or if that step goes beyond the time until.
    """

    def __init__(self, radius: np.ndarray, within: bool) -> None:
        self._radius, self._within = radius, within
        self.span: Span | None = None

    def steps_for(self, name: str) -> Callable:
        """A function with the arguments and results of the kernel ``name``."""
        return partial(self._call, _watching(name))

    def _call(self, watching: Callable, x: np.ndarray, v: np.ndarray, *arguments: Any) -> tuple[int, bool]:
        (*state, begin, clock, until, _, steps), more = arguments[:-MORE], arguments[-MORE:]

        def make(shown: float, steps: int, again: bool) -> tuple[int, bool, bool]:
            limits = float(until), shown, steps
            return watching(x, v, tuple(state), begin, clock, limits, self._radius, more, again)  # type: ignore[no-any-return]

        done, good, touched = make(math.inf, steps, self._within)
        if clock[END] > until or not (done or self._within):
            make(float(until), 0, True)
        elif touched:
            x0, v0 = begin[:2].transpose(0, 2, 1).copy()
            self.span = Span(x0, v0, x.T.copy(), v.T.copy(), clock[BEGIN], clock[END])
        return done, good
