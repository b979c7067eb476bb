"""Loops that must unroll: NVVM leaves the long body of a slab's loop rolled, and then loads wait for their use."""

from collections.abc import Callable
from typing import Any

from nbody.gpu import device_function


def unrolled(body: Callable[..., Any], count: int, first: int = 0) -> Callable[..., None]:
    """A device function that calls ``body(first, *args)`` to ``body(first + count - 1, *args)``, written out.

    With all steps in one basic block the assembler moves the loads of step s + 1 before the arithmetic of step s.
    """
    if count == 1:

        @device_function
        def once(*args):
            body(first, *args)

        return once

    low = unrolled(body, count // 2, first)
    high = unrolled(body, count - count // 2, first + count // 2)

    @device_function
    def both(*args):
        low(*args)
        high(*args)

    return both
