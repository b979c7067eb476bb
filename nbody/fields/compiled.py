"""The sum of several fields as one compiled function, for engines, schemes and solvers; and its loops on the CPU."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.field import ABOUT, ARGUMENTS, FIRST, HEADER, LAST, Term


def summed(terms: Sequence[Term], compile: Callable[[Any], Any], body: Callable) -> Callable:
    """The compiled function ``at(i, bodies, n, t, p) -> (ax, ay, az, phi)``: the sum of ``terms`` on body i of n, where row
    k of p (K, HEADER + n) belongs to term k. Equal terms in a row are one loop, so that a thousand of them are compiled as
    fast as one. ``body(bodies, i) -> (x, y, z, vx, vy, vz, m)`` reads a body."""

    @compile
    def nothing(i, bodies, n, own, t, p):
        return 0.0, 0.0, 0.0, 0.0

    total, first = nothing, 0
    for term, equal in groupby(terms):
        last = first + len(list(equal))
        plus = _plus_about(body, term.reaction) if term.about else _plus
        total, first = plus(total, _compiled(term, compile), first, last, compile), last

    @compile
    def at(i, bodies, n, t, p):
        return total(i, bodies, n, body(bodies, i), t, p)

    return at


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
    def both(i, bodies, n, own, t, p):
        ax, ay, az, phi = before(i, bodies, n, own, t, p)
        x, y, z, vx, vy, vz, m = own
        for k in range(first, last):
            bx, by, bz, psi = term(x - p[k, 0], y - p[k, 1], z - p[k, 2], vx, vy, vz, m, 0.0, t, p[k, HEADER:])
            ax, ay, az, phi = ax + bx, ay + by, az + bz, phi + psi
        return ax, ay, az, phi

    return both


def _plus_about(body: Callable, reaction: bool) -> Callable:
    """The same of a term that acts about a body, with its reaction on that body."""

    def plus(before: Callable, term: Callable, first: int, last: int, compile: Callable[[Any], Any]) -> Callable:
        @compile
        def relative(j, c, bodies, t, p, k):
            x, y, z, vx, vy, vz, m = body(bodies, j)
            X, Y, Z, VX, VY, VZ, M = body(bodies, c)
            return term(x - X, y - Y, z - Z, vx - VX, vy - VY, vz - VZ, m, M, t, p[k, HEADER:])

        @compile
        def both(i, bodies, n, own, t, p):
            ax, ay, az, phi = before(i, bodies, n, own, t, p)
            for k in range(first, last):
                c, lowest, highest = int(p[k, ABOUT]), int(p[k, FIRST]), min(n, int(p[k, LAST]))
                if c != i and lowest <= i < highest:
                    bx, by, bz, psi = relative(i, c, bodies, t, p, k)
                    ax, ay, az, phi = ax + bx, ay + by, az + bz, phi + psi
                if reaction and c == i and own[6] > 0.0:
                    for j in range(lowest, highest):
                        m = body(bodies, j)[6]
                        if j != i and m > 0.0:
                            bx, by, bz, _ = relative(j, c, bodies, t, p, k)
                            share = m / own[6]
                            ax, ay, az = ax - share * bx, ay - share * by, az - share * bz
            return ax, ay, az, phi

        return both

    return plus


@inner
def host_body(bodies, i):
    """Body i, from the first one on, of (N, D) positions and velocities, and masses, of any precision."""
    x, v, m, first = bodies
    i, z, vz = first + i, 0.0, 0.0
    if x.shape[1] == 3:
        z, vz = np.float64(x[i, 2]), np.float64(v[i, 2])
    return np.float64(x[i, 0]), np.float64(x[i, 1]), z, np.float64(v[i, 0]), np.float64(v[i, 1]), vz, np.float64(m[i])


@cache
def _at_body(terms: tuple[Term, ...]) -> Callable:
    """For kernels: ``at_body(i, (x, v, m, first), n, time, parameters) -> (ax, ay, az, phi)``."""
    return summed(terms, inner, host_body)


@cache
def adding_fields(terms: tuple[Term, ...]) -> Callable:
    """For kernels: ``add_fields(x, v, m, time, parameters, a)`` adds the fields at a time to the accelerations ``a`` of
    bodies at ``x`` with velocities ``v``, (N, D) each, with the bits of :meth:`nbody.fields.added.AddedFields.add`."""
    at_body = _at_body(terms)

    @inner
    def add_fields(x, v, m, time, parameters, a):
        for i in range(m.size):
            ax, ay, az, _ = at_body(i, (x, v, m, 0), m.size, time, parameters)
            a[i, 0], a[i, 1] = a[i, 0] + ax, a[i, 1] + ay
            if x.shape[1] == 3:
                a[i, 2] += az

    return add_fields


@cache
def values_of(terms: tuple[Term, ...]) -> Callable:
    """``values(rows, x, v, m, n, times, parameters, found)``: acceleration and potential (T, 4) of the sum for some float64
    bodies of systems of n, each at its time (T,). A body in a singular centre gets infinities, which stop the run at its
    next frame."""
    at_body = _at_body(terms)

    @compute.kernel("cpu")
    def values(rows, x, v, m, n, times, parameters, found):
        for k in range(rows.size):  # on one core: N evaluations beside N² pairs
            first = rows[k] // n * n
            found[k, 0], found[k, 1], found[k, 2], found[k, 3] = at_body(
                rows[k] - first, (x, v, m, first), n, times[k], parameters
            )

    return values
