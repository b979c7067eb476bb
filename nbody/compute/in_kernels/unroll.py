"""Unrolled loops for kernels: NVVM does not unroll long loop bodies, and then the arithmetic waits for each load."""

from collections.abc import Callable
from functools import cache
from typing import Any

from nbody.compute import device_function


def unrolled(body: Callable[..., Any], count: int) -> Callable[..., None]:
    """A device function that calls ``body(0, *args)`` to ``body(count - 1, *args)`` without a loop.

    With all steps in one basic block, the assembler moves the loads of step s + 1 before the arithmetic of step s. The step
    number is an argument of ``body``; one function per step would give the same machine code but take longer to compile
    (``gpu-tiled`` with 32 steps, on two Zen 4 cores: 2.4 s instead of 0.9 s).
    """

    @cache
    def steps(count: int) -> Callable[..., None]:
        """A device function that calls ``body(s, *args)`` to ``body(s + count - 1, *args)``."""
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
    def from_zero(*args):
        all_steps(0, *args)

    return from_zero
