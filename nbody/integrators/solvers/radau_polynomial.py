"""The polynomial of a step of :mod:`.radau`: functions for kernels, one text for both processors.

Arrays with n numbers have one for each coordinate of each body. The threads that make a step together divide them: each
calls these functions, and computes its own.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.post_newtonian import STRICT
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

LONGEST_GUESS = 20.0
"""Growth of the step beyond which the last polynomial is no guess for the next one."""


class StepThreads(NamedTuple):
    """The threads that make a step.

    Attributes:
        compiled: the decorator of functions that kernels call, and that make no arrays.
        calling: that of other functions.
        number: how many there are.
        own: ``()``, the number of this one.
        wait: ``()``, until all have come so far, and see what the others wrote.
        largest, least: ``(value, memory)``, of all threads' values.
        flat: ``(rows)``, an array as one with n numbers.
        shaped: ``(row, rows)``, n numbers as an array like ``rows``.
    """

    compiled: Callable
    calling: Callable
    number: int
    own: Any
    wait: Any
    largest: Any
    least: Any
    flat: Any
    shaped: Any


class Polynomial(NamedTuple):
    """Functions for kernels; b, e and g are (7, n).

    Attributes:
        add: ``(total, lost, change)``, compensated sums (Kahan 1965): the sum is total - lost.
        newton_form: ``(b, g)``, the coefficients g of b.
        predict: ``(node, h, x, v, a0, b, at)``, the positions at a node of a step of length h.
        predict_velocity: ``(node, h, v, a0, b, at)``.
        take_in: ``(node, a, a0, b, g, real, memory)``, make the polynomial agree with the acceleration at a node. Returns
            the change of its last coefficient, at the last node relative to the largest acceleration, of the first
            ``real`` numbers, which are those of the bodies.
        changes: ``(t, h, v, a0, b, dx, dv)``, the changes of positions and velocities from the beginning of a step of
            length h to its fraction t.
        take_in_between: ``(j, a, a0, b)``, make the polynomial b, (9, n), agree with the acceleration at point j of
            :data:`.POINTS`.
        next_step: ``(a0, b, bodies, h, eta, memory)``, the next step from the polynomial at the end of a step of length h;
            see :mod:`nbody.integrators.solvers.ias15`.
        shorten: ``(b, e, ratio)``, rescale the polynomials to a step from the same moment, ``ratio`` times as long.
        go_on: ``(b, e, ratio)``, make b the guess for the next step, ``ratio`` times as long: the continued polynomial,
            which is kept in e, and the error that the last guess had.
    """

    add: Any
    newton_form: Any
    predict: Any
    predict_velocity: Any
    take_in: Any
    changes: Any
    take_in_between: Any
    next_step: Any
    shorten: Any
    go_on: Any


@cache
def polynomial_by(threads: StepThreads) -> Polynomial:
    """The functions for these threads."""
    compiled, count, own, wait = threads.compiled, threads.number, threads.own, threads.wait
    largest_of, least_of = threads.largest, threads.least

    @compiled
    def add(total, lost, change):
        for i in range(own(), total.size, count):
            term = change[i] - lost[i]
            old = total[i]
            total[i] = old + term
            lost[i] = (total[i] - old) - term

    @compiled
    def newton_form(b, g):
        for k in range(7):
            for i in range(own(), b.shape[1], count):
                total = 0.0
                for j in range(k, 7):
                    total += TO_G[j, k] * b[j, i]
                g[k, i] = total

    @compiled
    def predict(node, h, x, v, a0, b, at):
        t = TAU[node]
        half = t * t * h * h
        for i in range(own(), x.size, count):
            s = b[6, i] * POSITION[6]
            for k in range(5, -1, -1):
                s = s * t + b[k, i] * POSITION[k]
            at[i] = x[i] + (t * h * v[i] + half * (0.5 * a0[i] + t * s))

    @compiled
    def predict_velocity(node, h, v, a0, b, at):
        t = TAU[node]
        for i in range(own(), v.size, count):
            s = b[6, i] * VELOCITY[6]
            for k in range(5, -1, -1):
                s = s * t + b[k, i] * VELOCITY[k]
            at[i] = v[i] + t * h * (a0[i] + t * s)

    @compiled
    def take_in_one(node, i, a, a0, b, g):
        new = (a[i] - a0[i]) * RECIPROCAL[node, 0]
        for k in range(1, node):
            new = (new - g[k - 1, i]) * RECIPROCAL[node, k]
        difference = new - g[node - 1, i]
        g[node - 1, i] = new
        for k in range(node):
            b[k, i] += difference * TO_B[node - 1, k]
        return difference

    @compiled
    def take_in(node, a, a0, b, g, real, memory):
        change, largest = 0.0, 0.0
        for i in range(own(), real, count):
            difference = take_in_one(node, i, a, a0, b, g)
            change = max(change, abs(difference))
            largest = max(largest, abs(a[i]))
        for i in range(real + own(), a.size, count):
            take_in_one(node, i, a, a0, b, g)
        if node == 7:
            change, largest = largest_of(change, memory), largest_of(largest, memory)
        return change / largest if largest > 0.0 else 0.0

    @compiled
    def changes(t, h, v, a0, b, dx, dv):
        part, last = t * h, b.shape[0] - 1
        for i in range(own(), v.size, count):
            s, r = b[last, i] * POSITION[last], b[last, i] * VELOCITY[last]
            for k in range(last - 1, -1, -1):
                s, r = s * t + b[k, i] * POSITION[k], r * t + b[k, i] * VELOCITY[k]
            dx[i] = part * v[i] + part * part * (0.5 * a0[i] + t * s)
            dv[i] = part * (a0[i] + t * r)

    @compiled
    def take_in_between(j, a, a0, b):
        t = POINTS[j]
        for i in range(own(), a.size, count):
            value = b[8, i]
            for k in range(7, -1, -1):
                value = value * t + b[k, i]
            difference = a[i] - (a0[i] + t * value)
            for k in range(9):
                b[k, i] += difference * NEWTON[j, k]

    @compiled
    def next_step(a0, b, bodies, h, eta, memory):
        wait()
        shortest = math.inf
        for i in range(own(), bodies, count):
            y, y1, y2, y3 = 0.0, 0.0, 0.0, 0.0
            for c in range(i, 3 * bodies, bodies):
                p, p1, p2, p3 = a0[c], 0.0, 0.0, 0.0
                for k in range(7):
                    p += b[k, c]
                    p1 += (k + 1) * b[k, c]
                    p2 += (k + 1) * k * b[k, c]
                    p3 += (k + 1) * k * (k - 1) * b[k, c]
                y, y1, y2, y3 = y + p * p, y1 + p1 * p1, y2 + p2 * p2, y3 + p3 * p3
            r, r1, r2, r3 = math.sqrt(y), math.sqrt(y1), math.sqrt(y2), math.sqrt(y3)
            first, second = 2.0 * y / (y1 + r * r2), (r * r2 + y1) / (r1 * r3 + y2)
            scale = max(first if math.isfinite(first) else 0.0, second if math.isfinite(second) else 0.0)
            if scale > 0.0 and scale < shortest:
                shortest = scale
        return eta * h * math.sqrt(least_of(shortest, memory))

    @compiled
    def shorten(b, e, ratio):
        if ratio != 1.0:
            power = 1.0
            for k in range(7):
                power *= ratio
                for i in range(own(), b.shape[1], count):
                    b[k, i] *= power
                    e[k, i] *= power

    @compiled
    def go_on(b, e, ratio):
        if not ratio <= LONGEST_GUESS:
            for k in range(7):
                for i in range(own(), b.shape[1], count):
                    b[k, i], e[k, i] = 0.0, 0.0
            return
        for i in range(own(), b.shape[1], count):
            power = 1.0
            for k in range(7):
                power *= ratio
                total = 0.0
                for j in range(k, 7):
                    total += CONTINUED[k, j] * b[j, i]
                error = b[k, i] - e[k, i]
                e[k, i] = power * total
                b[k, i] = e[k, i] + error

    return Polynomial(
        add, newton_form, predict, predict_velocity, take_in, changes, take_in_between, next_step, shorten, go_on
    )


# --- One thread of a CPU --------------------------------------------------------------------------------------------


def _strict(function: Callable) -> Any:
    return inner(function, fastmath=STRICT, _nrt=False)


@_strict
def _first():
    return 0


@_strict
def _no_wait():
    pass


@_strict
def _its_own(value, memory):
    return value


@inner
def _flat(rows):
    return rows.reshape(rows.size)


@inner
def _shaped(row, rows):
    return row.reshape(rows.shape)


ALONE = StepThreads(_strict, inner, 1, _first, _no_wait, _its_own, _its_own, _flat, _shaped)
