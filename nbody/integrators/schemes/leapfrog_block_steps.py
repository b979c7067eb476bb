"""How a body chooses its steps in ``leapfrog_block``, and the kicks at their ends: one text for both processors.

A step is a power of two of ticks; ``steps``, (N, 2) int32, has the length and the end of each body's step.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

DEEPEST = 20
"""The shortest step is dt/2^DEEPEST; bodies that ask for a shorter one get this."""

TICKS = 1 << DEEPEST
"""dt in ticks."""

LENGTH, END = range(2)
"""Columns of ``steps``."""


def half_steps(dt: float, dtype: np.dtype) -> np.ndarray:
    """Half a step of 2^k ticks, for each k."""
    return (0.5 * dt * 2.0 ** np.arange(-DEEPEST, 1)).astype(dtype)


class BodySteps(NamedTuple):
    """``begin(velocity, acceleration, steps, i, halves, scale)``: body i chooses its first step, the longest one of at most
    √(scale/|a|) dt, and is kicked over half of it. ``end(…, now)``: it is kicked over half of the step that ends, and,
    unless dt is over, begins a next one with a kick. ``halves``: :func:`half_steps`."""

    begin: Any
    end: Any


def body_steps(compile: Callable, exponent: Callable, dimensions: int) -> BodySteps:
    """The functions for a processor; ``compile``: its decorator, ``exponent``: 2^k → k for integers."""

    @compile
    def required(acceleration, i, scale):
        square = 0.0
        for k in range(dimensions):
            a = np.float64(acceleration[i, k])
            square += a * a
        if not (0.0 < square < 1e300):  # a state with NaN is found later
            return TICKS
        _, power = math.frexp(math.sqrt(scale / math.sqrt(square)))
        return 1 << (DEEPEST + min(max(power - 1, -DEEPEST), 0))

    @compile
    def kick(velocity, acceleration, i, half):
        for k in range(dimensions):
            velocity[i, k] += acceleration[i, k] * half

    @compile
    def begin(velocity, acceleration, steps, i, halves, scale):
        length = required(acceleration, i, scale)
        steps[i, LENGTH], steps[i, END] = length, length
        kick(velocity, acceleration, i, halves[exponent(length)])

    @compile
    def end(velocity, acceleration, steps, i, halves, scale, now):
        length = int(steps[i, LENGTH])
        kick(velocity, acceleration, i, halves[exponent(length)])
        if now < TICKS:
            new, longest = required(acceleration, i, scale), now & -now  # the largest power of two that divides it
            length = new if new <= length else max(length, min(new, longest))
            steps[i, LENGTH], steps[i, END] = length, now + length
            kick(velocity, acceleration, i, halves[exponent(length)])

    return BodySteps(begin, end)
