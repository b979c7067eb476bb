"""Loops that must be unrolled: NVVM does not unroll a long loop body, and the arithmetic then waits for its loads."""

from collections.abc import Callable
from functools import cache
from typing import Any

from nbody.gpu import device_function


def unrolled(body: Callable[..., Any], count: int) -> Callable[..., None]:
    """A device function that calls ``body(0, *args)`` to ``body(count - 1, *args)`` without a loop.

    With all steps in one basic block the assembler moves the loads of step s + 1 before the arithmetic of step s. The number
    of a step is an argument of ``body``: a function for each of 32 steps would take 2.4 s to compile instead of 0.9 s
    (``gpu-tiled``, two Zen 4 cores), for the same machine code.
    """

    @cache
    def steps(count: int) -> Callable[..., None]:
        """A device function that calls ``body(s, *args)`` and so on, ``count`` times."""
        if count == 1:
            return body
        half = count // 2
        low, high = steps(half), steps(count - half)

        @device_function
        def both(s, *args):
            low(s, *args)
            high(s + half, *args)

        return both

    all_steps = steps(count)

    @device_function
    def from_nought(*args):
        all_steps(0, *args)

    return from_nought
