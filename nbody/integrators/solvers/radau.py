"""One step of a 15th-order Gauss–Radau scheme: the kernel of :mod:`.ias15`, for the CPU in float64.

Within a step of length h the acceleration at the time τ h is a polynomial,

    a(τ) = a₀ + b₀ τ + b₁ τ² + … + b₆ τ⁷,

which agrees with the forces at the seven Radau points τ₁ … τ₇; positions and velocities are its integrals. The coefficients
are found by iteration, starting from the last step's polynomial. g are the coefficients of the same polynomial in Newton's
form, a₀ + g₀ τ + g₁ τ (τ − τ₁) + …, which takes in one new force at a time. (Everhart 1985; Rein & Spiegel 2015.)
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.field import Term
from nbody.fields.post_newtonian import STRICT
from nbody.integrators.adaptive import BEGIN, END, LENGTH, NEXT
from nbody.integrators.solvers.megno import grow, size2_of
from nbody.integrators.solvers.pair_forces import RELATIVITY, VARIED, accelerations_of
from nbody.integrators.solvers.radau_tables import (
    CONTINUED,
    NEWTON,
    POINTS,
    POSITION,
    RECIPROCAL,
    TAU,
    TO_B,
    TO_G,
    VELOCITY,
)

MOST_ITERATIONS = 12
"""Iterations that find the polynomial; two or three are usual."""

CONVERGED = 1e-16
"""The change of b₆ relative to the largest acceleration at which the iteration ends."""

SAFETY = 0.25
"""A step is repeated if the next one would be shorter than this fraction of it; steps grow at most by the reciprocal."""

LONGEST_GUESS = 20.0
"""Growth of the step beyond which the last polynomial is no guess for the next one."""


@inner
def add(total, lost, change):
    """Compensated sums (Kahan 1965): the sum is total - lost."""
    for i in range(total.size):
        term = change[i] - lost[i]
        old = total[i]
        total[i] = old + term
        lost[i] = (total[i] - old) - term


@inner
def newton_form(b, g):
    """The coefficients g of b, (7, 3N) each."""
    for k in range(7):
        for i in range(b.shape[1]):
            total = 0.0
            for j in range(k, 7):
                total += TO_G[j, k] * b[j, i]
            g[k, i] = total


@inner(fastmath=STRICT)
def predict(n, h, x, v, a0, b, at):
    """The positions at node n of a step of length h."""
    t = TAU[n]
    half = t * t * h * h
    for i in range(x.size):
        s = b[6, i] * POSITION[6]
        for k in range(5, -1, -1):
            s = s * t + b[k, i] * POSITION[k]
        at[i] = x[i] + (t * h * v[i] + half * (0.5 * a0[i] + t * s))


@inner(fastmath=STRICT)
def predict_velocity(n, h, v, a0, b, at):
    """The velocities at node n of a step of length h."""
    t = TAU[n]
    for i in range(v.size):
        s = b[6, i] * VELOCITY[6]
        for k in range(5, -1, -1):
            s = s * t + b[k, i] * VELOCITY[k]
        at[i] = v[i] + t * h * (a0[i] + t * s)


@inner(fastmath=STRICT)
def take_in_one(n, i, a, a0, b, g):
    """:func:`take_in` for one number; returns the change of its last coefficient."""
    new = (a[i] - a0[i]) * RECIPROCAL[n, 0]
    for k in range(1, n):
        new = (new - g[k - 1, i]) * RECIPROCAL[n, k]
    difference = new - g[n - 1, i]
    g[n - 1, i] = new
    for k in range(n):
        b[k, i] += difference * TO_B[n - 1, k]
    return difference


@inner(fastmath=STRICT)
def take_in(n, a, a0, b, g, real):
    """Make the polynomial agree with the acceleration at node n. Returns the change of its last coefficient, relative to the
    largest acceleration, of the first ``real`` numbers, which are those of the bodies."""
    change, largest = 0.0, 0.0
    for i in range(real):
        difference = take_in_one(n, i, a, a0, b, g)
        change = max(change, abs(difference))
        largest = max(largest, abs(a[i]))
    for i in range(real, a.size):
        take_in_one(n, i, a, a0, b, g)
    return change / largest if largest > 0.0 else 0.0


@inner(fastmath=STRICT)
def changes(t, h, v, a0, b, dx, dv):
    """The changes dx and dv of positions and velocities from the beginning of a step of length h to its fraction t."""
    part, last = t * h, b.shape[0] - 1
    for i in range(v.size):
        s, r = b[last, i] * POSITION[last], b[last, i] * VELOCITY[last]
        for k in range(last - 1, -1, -1):
            s, r = s * t + b[k, i] * POSITION[k], r * t + b[k, i] * VELOCITY[k]
        dx[i] = part * v[i] + part * part * (0.5 * a0[i] + t * s)
        dv[i] = part * (a0[i] + t * r)


@inner(fastmath=STRICT)
def take_in_between(j, a, a0, b):
    """Make the polynomial b, (9, 3N), agree with the acceleration at point j of :data:`POINTS`."""
    t = POINTS[j]
    for i in range(a.size):
        value = b[8, i]
        for k in range(7, -1, -1):
            value = value * t + b[k, i]
        difference = a[i] - (a0[i] + t * value)
        for k in range(9):
            b[k, i] += difference * NEWTON[j, k]


@inner
def next_step(a0, b, bodies, h, eta):
    """The next step from the polynomial at the end of a step of length h; see :mod:`nbody.integrators.solvers.ias15`."""
    shortest = np.inf
    for i in range(bodies):
        y, y1, y2, y3 = 0.0, 0.0, 0.0, 0.0
        for c in range(i, 3 * bodies, bodies):
            p, p1, p2, p3 = a0[c], 0.0, 0.0, 0.0
            for k in range(7):
                p += b[k, c]
                p1 += (k + 1) * b[k, c]
                p2 += (k + 1) * k * b[k, c]
                p3 += (k + 1) * k * (k - 1) * b[k, c]
            y, y1, y2, y3 = y + p * p, y1 + p1 * p1, y2 + p2 * p2, y3 + p3 * p3
        r, r1, r2, r3 = np.sqrt(y), np.sqrt(y1), np.sqrt(y2), np.sqrt(y3)
        first, second = 2.0 * y / (y1 + r * r2), (r * r2 + y1) / (r1 * r3 + y2)
        scale = max(first if np.isfinite(first) else 0.0, second if np.isfinite(second) else 0.0)
        if scale > 0.0 and scale < shortest:
            shortest = scale
    return eta * h * np.sqrt(shortest)


@inner
def shorten(b, e, ratio):
    """Rescale the polynomials to a step from the same moment, ``ratio`` times as long."""
    if ratio != 1.0:
        power = 1.0
        for k in range(7):
            power *= ratio
            for i in range(b.shape[1]):
                b[k, i] *= power
                e[k, i] *= power


@inner
def continue_polynomial(b, e, ratio):
    """Make b the guess for the next step, ``ratio`` times as long: the continued polynomial, which is kept in e, and the
    error that the last guess had."""
    if not ratio <= LONGEST_GUESS:
        b[:], e[:] = 0.0, 0.0
        return
    for i in range(b.shape[1]):
        power = 1.0
        for k in range(7):
            power *= ratio
            total = 0.0
            for j in range(k, 7):
                total += CONTINUED[k, j] * b[j, i]
            error = b[k, i] - e[k, i]
            e[k, i] = power * total
            b[k, i] = e[k, i] + error


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


def stepper_for(kind: str, terms: tuple[Term, ...] = (), dimensions: int = 3) -> Callable:
    """The function ``advance``, to be compiled: it makes steps by the forces of a kind and of external fields
    (:func:`.accelerations_of`)."""
    accelerate = accelerations_of(kind, terms, dimensions)
    moving = kind.endswith(tuple(RELATIVITY.values())) or any(term.moving for term in terms)
    varied = kind.endswith(VARIED)

    @inner
    def fit(time, h, x0, v0, a0, b, g, law, scratch):
        """Find the polynomial b of a step of length h by iteration."""
        at, moved, a = scratch
        n = x0.size
        newton_form(b, g)
        before = np.inf
        for iteration in range(MOST_ITERATIONS):
            error = 0.0
            for node in range(1, 8):
                predict(node, h, x0, v0, a0, b, at.reshape(n))
                if moving:
                    predict_velocity(node, h, v0, a0, b, moved.reshape(n))
                accelerate(at, moved, law, time + TAU[node] * h, a)
                error = take_in(node, a.reshape(n), a0, b, g, 3 * law.m.size)
            if error < CONVERGED or (iteration > 1 and error >= before):
                break
            before = error

    @inner
    def changes_within(time, t, h, x0, v0, a0, b, law, scratch, dx, dv):
        """The changes of positions and velocities from the beginning of a step to its fraction t, to rounding."""
        at, moved, a = scratch
        n = x0.size
        shown = np.zeros((9, n))
        for k in range(7):
            for i in range(n):
                shown[k, i] = b[k, i]
        for j in range(2):
            changes(POINTS[j], h, v0, a0, shown, dx, dv)
            for i in range(n):
                at.reshape(n)[i], moved.reshape(n)[i] = x0[i] + dx[i], v0[i] + dv[i]
            accelerate(at, moved, law, time + POINTS[j] * h, a)
            take_in_between(j, a.reshape(n), a0, shown)
        changes(t, h, v0, a0, shown, dx, dv)

    def advance(x, v, law, step, limits):
        """Make steps, until one ends at the time ``until`` or after it; x and v, (3, N) with the rows of tangent vectors,
        become the positions and velocities at that time, or at the end of the last step if it is earlier.

        Args:
            law: :class:`.Attraction`.
            step: :class:`RadauStep`.
            limits: :class:`StepLimits`.

        Returns:
            The number of steps, and False if the next step cannot be made.
        """
        until, last, steps, longest, eta = limits
        begin, clock, b, e, lost_x, lost_v, growth = step
        n = x.size
        scratch = np.empty(x.shape), np.empty(x.shape), np.empty(x.shape)
        g, dx, dv = np.empty((7, n)), np.zeros(n), np.zeros(n)
        x0, v0, a0 = begin[0].reshape(n), begin[1].reshape(n), begin[2].reshape(n)
        off_x, off_v = lost_x.reshape(n), lost_v.reshape(n)
        done, good = 0, True
        time, length, end, h = clock[BEGIN], clock[LENGTH], clock[END], clock[NEXT]
        while done < steps and end < until:
            if length > 0.0:
                changes(1.0, length, v0, a0, b, dx, dv)
                add(x0, off_x, dx)
                add(v0, off_v, dv)
                continue_polynomial(b, e, h / length)
                if varied:
                    grow_tangents(step, length)
            time, length = end, 0.0
            accelerate(begin[0], begin[1], law, time, begin[2])
            while True:  # until the step is short enough
                left, tried = last - time, min(h, longest)
                if tried >= left:
                    tried = left
                elif 2.0 * tried > left:  # two equal steps instead of a long and a tiny one
                    tried = 0.5 * left
                good = np.isfinite(tried) and time + tried > time
                if not good:
                    break
                shorten(b, e, tried / h)
                fit(time, tried, x0, v0, a0, b, g, law, scratch)
                h = next_step(a0, b, law.m.size, tried, eta)
                if not np.isfinite(h):  # no force: nothing limits the step
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
        clock[BEGIN], clock[LENGTH], clock[END], clock[NEXT] = time, length, end, h
        if not length > 0.0:
            dx[:], dv[:] = 0.0, 0.0
        elif end <= until:
            changes(1.0, length, v0, a0, b, dx, dv)
        else:
            changes_within(time, max(0.0, until - time) / length, length, x0, v0, a0, b, law, scratch, dx, dv)
        at_x, at_v = x.reshape(n), v.reshape(n)
        for i in range(n):
            at_x[i], at_v[i] = x0[i] + (dx[i] - off_x[i]), v0[i] + (dv[i] - off_v[i])
        if varied:
            show_growth(x, v, min(end, until) - time if length > 0.0 else 0.0, growth)
        return done, good

    return advance
