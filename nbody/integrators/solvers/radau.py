"""Steps of a 15th-order Gauss–Radau scheme, in float64: the kernel of :mod:`.ias15`, and what :mod:`.encounters` and
:mod:`.encounters_gpu` call.

Within a step of length h the acceleration at the time τ h is a polynomial,

    a(τ) = a₀ + b₀ τ + b₁ τ² + … + b₆ τ⁷,

which agrees with the forces at the seven Radau points τ₁ … τ₇; positions and velocities are its integrals. The coefficients
are found by iteration, starting from the last step's polynomial. g are the coefficients of the same polynomial in Newton's
form, a₀ + g₀ τ + g₁ τ (τ − τ₁) + …, which takes in one new force at a time. (Everhart 1985; Rein & Spiegel 2015.)
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.field import Term
from nbody.integrators.adaptive import BEGIN, END, LENGTH, NEXT
from nbody.integrators.solvers.megno import grow, size2_of
from nbody.integrators.solvers.pair_forces import RELATIVITY, VARIED, accelerations_of
from nbody.integrators.solvers.radau_polynomial import ALONE, StepThreads, polynomial_by
from nbody.integrators.solvers.radau_tables import POINTS, TAU

MOST_ITERATIONS = 12
"""Iterations that find the polynomial; two or three are usual."""

CONVERGED = 1e-16
"""The change of b₆ relative to the largest acceleration at which the iteration ends."""

SAFETY = 0.25
"""A step is repeated if the next one would be shorter than this fraction of it; steps grow at most by the reciprocal."""


class RadauStep(NamedTuple):
    """The last step of N bodies, which a kernel replaces by the next one. Tangent vectors are further rows: with M of them
    all arrays have 3 (1 + M) instead of 3 rows of N numbers.

    Attributes:
        begin: (3, 3, N) positions, velocities and accelerations at its beginning.
        clock: (4,) when it begins, its length, when it ends, and the length of the next one: :data:`BEGIN` to :data:`NEXT`.
        b, e: (7, 3N) its polynomial, and the guess for it.
        lost_x, lost_v: (3, N) what rounding added to the sums ``begin[0]`` and ``begin[1]``.
        growth: (2, M, 5) the numbers of tangent vectors at its beginning, and when they are shown.
    """

    begin: np.ndarray
    clock: np.ndarray
    b: np.ndarray
    e: np.ndarray
    lost_x: np.ndarray
    lost_v: np.ndarray
    growth: np.ndarray


@inner
def grow_tangents(step, h):
    """Take the growth of tangent vectors in a step of length h into ``growth[0]``; they are at its end. One that becomes
    long is scaled, with its polynomial."""
    begin, _, b, e, lost_x, lost_v, growth = step
    n = 3 * begin.shape[2]
    for k in range(growth.shape[1]):
        rows = 3 * k + 3
        scale = grow(size2_of(begin[0, rows : rows + 3], begin[1, rows : rows + 3], 0), h, growth[0, k])
        if scale != 1.0:  # number by number: slices would compile the text of an error for 2 s
            for i in range(rows, rows + 3):
                for j in range(begin.shape[2]):
                    for each in range(len(begin)):
                        begin[each, i, j] *= scale
                    lost_x[i, j] *= scale
                    lost_v[i, j] *= scale
            for i in range(len(b)):
                for j in range((k + 1) * n, (k + 2) * n):
                    b[i, j] *= scale
                    e[i, j] *= scale


@inner
def show_growth(x, v, h, growth):
    """Let ``growth[1]`` be the numbers a time h after the beginning of the step, when the rows are x and v."""
    for at in np.ndindex(growth.shape[1:]):
        growth[1, at[0], at[1]] = growth[0, at[0], at[1]]
    for k in range(growth.shape[1] if h > 0.0 else 0):
        rows = 3 * k + 3
        grow(size2_of(x[rows : rows + 3], v[rows : rows + 3], 0), h, growth[1, k])


class StepLimits(NamedTuple):
    """How far steps go.

    Attributes:
        until: no step begins at this time or later, and no later time is shown.
        last: no step ends later; a step ends at this time.
        steps: the most steps.
        longest: the longest step.
        eta: the step in units of the shortest time scale.
    """

    until: float
    last: float
    steps: int
    longest: float
    eta: float


@cache
def steps_for(kind: str, terms: tuple[Term, ...] = (), dimensions: int = 3) -> Callable:
    """The kernel of :func:`stepper_for`."""
    return compute.kernel("cpu")(stepper_for(kind, terms, dimensions))


ROWS = 12
"""The rows of memory that a step needs, and more of them if times within steps are shown."""

ROWS_TO_SHOW = 9


class StepMemory(NamedTuple):
    """Memory in which a step is made.

    Attributes:
        rows: (:data:`ROWS` or more, n).
        shared: what threads need to compare their values.
    """

    rows: np.ndarray
    shared: np.ndarray


def stepper_for(kind: str, terms: tuple[Term, ...] = (), dimensions: int = 3) -> Callable:
    """The function ``advance``, to be compiled: :func:`stepper_by` one thread of the CPU, by the forces of a kind and of
    external fields (:func:`.accelerations_of`)."""
    shown, accelerate = kind != "encounter", accelerations_of(kind, terms, dimensions)
    steps = inner(stepper_by(ALONE, accelerate, kind, any(term.moving for term in terms)), calls=True)
    rows = ROWS + ROWS_TO_SHOW if shown else ROWS

    def advance(x, v, law, step, limits):
        return steps(x, v, law, step, limits, StepMemory(np.empty((rows, x.size)), step.clock))

    return advance


def stepper_by(threads: StepThreads, accelerate: Any, kind: str, moving: bool = False) -> Callable:
    """The function ``advance``, to be compiled: threads make steps together.

    Args:
        accelerate: see :func:`.accelerations_of`.
        kind: that of the forces; times within steps of ``encounter`` are not shown.
        moving: external fields depend on the velocities.
    """
    moving |= kind.endswith(tuple(RELATIVITY.values()))
    varied, shown = kind.endswith(VARIED), kind != "encounter"
    flat, shaped, wait = threads.flat, threads.shaped, threads.wait
    own, count = threads.own, threads.number
    (
        add, newton_form, predict, predict_velocity, take_in, changes, take_in_between, next_step, shorten, go_on
    ) = polynomial_by(threads)  # fmt: skip

    @threads.calling
    def fit(time, h, x0, v0, a0, b, law, like, memory):
        """Find the polynomial b of a step of length h by iteration."""
        rows = memory.rows
        at, moved, a, g = rows[0], rows[1], rows[2], rows[5:12]
        newton_form(b, g)
        before = np.inf
        for iteration in range(MOST_ITERATIONS):
            error = 0.0
            for node in range(1, 8):
                predict(node, h, x0, v0, a0, b, at)
                if moving:
                    predict_velocity(node, h, v0, a0, b, moved)
                wait()
                accelerate(shaped(at, like), shaped(moved, like), law, time + TAU[node] * h, shaped(a, like))
                wait()
                error = take_in(node, a, a0, b, g, 3 * law.m.size, memory)
            if error < CONVERGED or (iteration > 1 and error >= before):
                break
            before = error

    @threads.calling
    def changes_within(time, t, h, x0, v0, a0, b, law, like, memory, dx, dv):
        """The changes of positions and velocities from the beginning of a step to its fraction t, to rounding."""
        rows = memory.rows
        at, moved, a, within = rows[0], rows[1], rows[2], rows[12:21]
        for i in range(x0.size):
            for k in range(7):
                within[k, i] = b[k, i]
            within[7, i], within[8, i] = 0.0, 0.0
        for j in range(2):
            changes(POINTS[j], h, v0, a0, within, dx, dv)
            for i in range(x0.size):
                at[i], moved[i] = x0[i] + dx[i], v0[i] + dv[i]
            accelerate(shaped(at, like), shaped(moved, like), law, time + POINTS[j] * h, shaped(a, like))
            take_in_between(j, a, a0, within)
        changes(t, h, v0, a0, within, dx, dv)

    def advance(x, v, law, step, limits, memory):
        """Make steps, until one ends at the time ``until`` or after it; x and v, (3, N) with the rows of tangent vectors,
        become the positions and velocities at that time, or at the end of the last step if it is earlier.

        Args:
            law: :class:`.Attraction`.
            step: :class:`RadauStep`.
            limits: :class:`StepLimits`.
            memory: :class:`StepMemory`.

        Returns:
            The number of steps, and False if the next step cannot be made.
        """
        until, last, steps, longest, eta = limits
        begin, clock, b, e, lost_x, lost_v, growth = step
        dx, dv = memory.rows[3], memory.rows[4]
        x0, v0, a0 = flat(begin[0]), flat(begin[1]), flat(begin[2])
        off_x, off_v = flat(lost_x), flat(lost_v)
        done, good = 0, True
        time, length, end, h = clock[BEGIN], clock[LENGTH], clock[END], clock[NEXT]
        while done < steps and end < until:
            if length > 0.0:
                changes(1.0, length, v0, a0, b, dx, dv)
                add(x0, off_x, dx)
                add(v0, off_v, dv)
                go_on(b, e, h / length)
                if varied:
                    grow_tangents(step, length)
            time, length = end, 0.0
            wait()
            accelerate(begin[0], begin[1], law, time, begin[2])
            wait()
            while True:  # until the step is short enough
                left, tried = last - time, min(h, longest)
                if tried >= left:
                    tried = left
                elif 2.0 * tried > left:  # two equal steps instead of a long and a tiny one
                    tried = 0.5 * left
                good = math.isfinite(tried) and time + tried > time
                if not good:
                    break
                shorten(b, e, tried / h)
                fit(time, tried, x0, v0, a0, b, law, x, memory)
                h = next_step(a0, b, law.m.size, tried, eta, memory)
                if not math.isfinite(h):  # no force: nothing limits the step
                    h = tried / SAFETY
                if h >= SAFETY * tried:
                    break
                shorten(b, e, h / tried)
            if not good:
                h = tried
                break
            length, end = tried, last if tried == left else time + tried
            h = min(h, length / SAFETY, longest)
            done += 1
        wait()
        clock[BEGIN], clock[LENGTH], clock[END], clock[NEXT] = time, length, end, h
        if not length > 0.0:
            for i in range(own(), dx.size, count):
                dx[i], dv[i] = 0.0, 0.0
        elif end <= until or not shown:
            changes(1.0, length, v0, a0, b, dx, dv)
        elif shown:
            changes_within(time, max(0.0, until - time) / length, length, x0, v0, a0, b, law, x, memory, dx, dv)
        at_x, at_v = flat(x), flat(v)
        for i in range(own(), dx.size, count):
            at_x[i], at_v[i] = x0[i] + (dx[i] - off_x[i]), v0[i] + (dv[i] - off_v[i])
        if varied:
            show_growth(x, v, min(end, until) - time if length > 0.0 else 0.0, growth)
        return done, good

    return advance
