"""The sum of several fields as one compiled function, for engines, schemes and solvers; and its loops on the CPU."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.field import ARGUMENTS, Term


def summed(terms: Sequence[Term], compile: Callable[[Any], Any]) -> Callable:
    """The compiled function ``total(x, y, z, vx, vy, vz, m, t, p) -> (ax, ay, az, phi)``: the sum of ``terms``, where row k
    of p (K, 3 + n) has the centre and the parameters of term k. Equal terms in a row are one loop, so that a thousand of
    them are compiled as fast as one."""

    @compile
    def nothing(x, y, z, vx, vy, vz, m, t, p):
        return 0.0, 0.0, 0.0, 0.0

    total, first = nothing, 0
    for term, equal in groupby(terms):
        last = first + len(list(equal))
        total, first = _plus(total, _compiled(term, compile), first, last, compile), last
    return total


def _compiled(term: Term, compile: Callable[[Any], Any]) -> Callable:
    """A term as a function of all :data:`ARGUMENTS`. (Its text contains names of arguments alone.)"""
    known: dict[str, Any] = {"__name__": __name__, "function": compile(term.function)}
    lines = [f"def evaluate({ARGUMENTS}):", f"    return function({term.takes})"]
    if term.returns < 4:
        az, phi = "az" if term.returns == 3 else "0.0", "0.0"
        if term.potential is not None:
            known["potential"], phi = compile(term.potential), f"potential({term.potential_takes})"
        parts = "ax, ay, az" if term.returns == 3 else "ax, ay"
        lines[1:] = [f"    {parts} = function({term.takes})", f"    return ax, ay, {az}, {phi}"]
    exec("\n".join(lines), known)
    return compile(known["evaluate"])


def _plus(before: Callable, term: Callable, first: int, last: int, compile: Callable[[Any], Any]) -> Callable:
    @compile
    def both(x, y, z, vx, vy, vz, m, t, p):
        ax, ay, az, phi = before(x, y, z, vx, vy, vz, m, t, p)
        for k in range(first, last):
            bx, by, bz, psi = term(x - p[k, 0], y - p[k, 1], z - p[k, 2], vx, vy, vz, m, t, p[k, 3:])
            ax, ay, az, phi = ax + bx, ay + by, az + bz, phi + psi
        return ax, ay, az, phi

    return both


@cache
def _at_body(terms: tuple[Term, ...]) -> Callable:
    """For kernels: ``at_body(i, x, v, m, time, parameters) -> (ax, ay, az, phi)`` for (N, D) arrays of any precision."""
    total = summed(terms, inner)

    @inner
    def at_body(i, x, v, m, time, parameters):
        z, vz = 0.0, 0.0
        if x.shape[1] == 3:
            z, vz = np.float64(x[i, 2]), np.float64(v[i, 2])
        x0, x1, v0, v1 = np.float64(x[i, 0]), np.float64(x[i, 1]), np.float64(v[i, 0]), np.float64(v[i, 1])
        return total(x0, x1, z, v0, v1, vz, np.float64(m[i]), time, parameters)

    return at_body


@cache
def adding_fields(terms: tuple[Term, ...]) -> Callable:
    """For kernels: ``add_fields(x, v, m, time, parameters, a)`` adds the fields at a time to the accelerations ``a`` of
    bodies at ``x`` with velocities ``v``, (N, D) each, with the bits of :meth:`nbody.fields.added.AddedFields.add`."""
    at_body = _at_body(terms)

    @inner
    def add_fields(x, v, m, time, parameters, a):
        for i in range(m.size):
            ax, ay, az, _ = at_body(i, x, v, m, time, parameters)
            a[i, 0], a[i, 1] = a[i, 0] + ax, a[i, 1] + ay
            if x.shape[1] == 3:
                a[i, 2] += az

    return add_fields


@cache
def values_of(terms: tuple[Term, ...]) -> Callable:
    """``values(x, v, m, times, parameters, found)``: acceleration and potential (N, 4) of the sum for float64 bodies, each
    at its time (N,). A body in a singular centre gets infinities, which stop the run at its next frame."""
    at_body = _at_body(terms)

    @compute.kernel("cpu")
    def values(x, v, m, times, parameters, found):
        for i in range(m.size):  # on one core: N evaluations beside N² pairs
            found[i, 0], found[i, 1], found[i, 2], found[i, 3] = at_body(i, x, v, m, times[i], parameters)

    return values
