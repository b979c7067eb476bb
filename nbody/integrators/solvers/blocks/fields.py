"""External fields in block steps: their acceleration, and its first two derivatives along the motion of a body.

A field gives no derivatives. They are central differences of order 4 on the path x + v τ + a τ²/2 + j τ³/6, with the whole
acceleration a and the jerk j there, at τ = ±δ, ±2δ. The step δ is an eighth of the body's own step h, which follows all that
changes the force on it; so no length of the field need be known, and fields may change with time. The differences have
errors in δ⁴, so both schemes keep their orders: of the error of order 6 in a step, the differences are a tenth.

A force that depends on the velocity is evaluated again with the corrected one: the predicted velocity is one order too
coarse.
"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.added import AddedFields
from nbody.fields.compiled import summed
from nbody.fields.field import HEADER, Term
from nbody.integrators.solvers.blocks import formulas

STEP = 0.125
"""The step of the differences as a fraction of a body's step."""


def passes(terms: Sequence[Term]) -> int:
    """How often a sum of fields is evaluated for the correction of a body."""
    return 2 if any(term.moving for term in terms) else 1


def path_values(terms: Sequence[Term], dimensions: int, compile: Callable) -> Callable:
    """The compiled ``at(x, v, a, j, m, tau, time, parameters)``: the acceleration of a sum of fields at the time
    ``time + tau`` on the path of a body; x, v, a, j: its position and derivatives, three numbers each."""
    flat = dimensions == 2
    total = summed(terms, compile, compile(lambda own, i: own))

    @compile
    def at(x, v, a, j, m, tau, time, parameters):
        half, third = 0.5 * tau, tau * formulas.SIXTH * tau
        own = (
            x[0] + tau * (v[0] + half * a[0] + third * j[0]),
            x[1] + tau * (v[1] + half * a[1] + third * j[1]),
            x[2] + tau * (v[2] + half * a[2] + third * j[2]),
            v[0] + tau * (a[0] + half * j[0]),
            v[1] + tau * (a[1] + half * j[1]),
            v[2] + tau * (a[2] + half * j[2]),
            m,
        )
        ax, ay, az, _ = total(0, own, 1, time + tau, parameters)
        return ax, ay, 0.0 if flat else az

    return at


def difference(before2, before, now, after, after2, d):
    """The first and the second derivative from values at -2d, -d, 0, d and 2d, with errors in d⁴."""
    first = (8.0 * (after - before) - (after2 - before2)) / (12.0 * d)
    return first, (16.0 * (after + before - 2.0 * now) - (after2 + before2 - 2.0 * now)) / (12.0 * d * d)


FIELD_DOMINATED = 1e-6
"""(Forces of bodies on each other / whole force)² below which steps are not shortened any more."""


def shortened(order: int, compile: Callable) -> Callable:
    """``factor(pairs, whole)``: by which a step is shorter in a field, from the squared accelerations by the other bodies
    and by all. The error of a step is a part (h/T)^order of the whole acceleration. In a star cluster that moves around a
    galaxy it must be small beside what the stars do to each other, which may be a hundredth of that."""
    power = 0.5 / order

    @compile
    def factor(pairs, whole):
        if not pairs < whole:
            return 1.0
        return max(pairs / whole, FIELD_DOMINATED) ** power

    return factor


@cache
def field_sums(terms: tuple[Term, ...], dimensions: int) -> Callable:
    """For kernels on the CPU: ``add(x, v, m, d, time, parameters, sums)`` adds acceleration, jerk and snap of the fields to
    those of the pairs, ``sums`` (9,), for a body with the position ``x`` and the velocity ``v``, three numbers each; ``d``:
    the step of the differences."""
    at, derivatives, rounds = path_values(terms, dimensions, inner), inner(difference), passes(terms)

    @inner
    def add(x, v, m, d, time, parameters, sums):
        none = 0.0, 0.0, 0.0
        fx, fy, fz = at(x, v, none, none, m, 0.0, time, parameters)
        a = sums[0] + fx, sums[1] + fy, sums[2] + fz
        jx, jy, jz, sx, sy, sz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for _ in range(rounds):  # the snap of a force that depends on the velocity depends on its jerk
            j = sums[3] + jx, sums[4] + jy, sums[5] + jz
            ax, ay, az = at(x, v, a, j, m, -2.0 * d, time, parameters)
            bx, by, bz = at(x, v, a, j, m, -d, time, parameters)
            cx, cy, cz = at(x, v, a, j, m, d, time, parameters)
            dx, dy, dz = at(x, v, a, j, m, 2.0 * d, time, parameters)
            jx, sx = derivatives(ax, bx, fx, cx, dx, d)
            jy, sy = derivatives(ay, by, fy, cy, dy, d)
            jz, sz = derivatives(az, bz, fz, cz, dz, d)
        for k, value in enumerate((fx, fy, fz, jx, jy, jz, sx, sy, sz)):
            sums[k] += value

    return add


@cache
def first_sums(terms: tuple[Term, ...], dimensions: int) -> Callable:
    """The kernel ``add(which, p, mass, d, time, parameters, sums)``: the same for the bodies ``which``; p (9, N):
    positions and velocities, d (N,) the steps of the differences, sums (N, 9)."""
    add = field_sums(terms, dimensions)

    @compute.kernel("cpu")
    def add_all(which, p, mass, d, time, parameters, sums):
        for i in which:
            x, v = (p[0, i], p[1, i], p[2, i]), (p[3, i], p[4, i], p[5, i])
            add(x, v, mass[i], d[i], time, parameters, sums[i])

    return add_all


class BlockFields:
    """The external fields of a run of block steps.

    Args:
        added: the fields, or None.
        dimensions: of the bodies.
        G: the gravitational constant.

    Attributes:
        terms, parameters: of the sum; none without fields.
        begin: the time at which the present stretch begins.
    """

    def __init__(self, added: AddedFields | None, dimensions: int, G: float) -> None:
        self._added, self._dimensions, self._G, self.begin = added, dimensions, G, 0.0
        self.terms = added.terms if added is not None else ()
        self.parameters = added.parameters if added is not None else np.zeros((0, HEADER))

    @property
    def smooth(self) -> bool:
        """True if pairs feel them as their centres of mass do: they depend neither on velocities nor on masses."""
        return not any(term.moving or "m" in term.takes.split(", ") for term in self.terms)

    def add(self, which: np.ndarray, p: np.ndarray, mass: np.ndarray, after: float, sums: np.ndarray) -> None:
        """Add acceleration, jerk and snap of the fields to ``sums`` (N, 9) of some bodies, whose steps are not known; p
        (9, N): positions and velocities of all, ``after``: the time since the beginning of the stretch."""
        if self._added is None or not self.terms:
            return
        x, v, time = p[:3].T.copy(), p[3:6].T.copy(), self.begin + after
        d = self._added.difference_steps(x[:, : self._dimensions], v[:, : self._dimensions], mass, time)
        first_sums(self.terms, self._dimensions)(which, p, mass, d, time, self.parameters, sums)

    def tide(self, x: np.ndarray, distance: float, after: float) -> float:
        """The tide at a place x (3,) across a distance, as the mass that raises it divided by its distance cubed."""
        if self._added is None or not self.terms:
            return 0.0
        ends = (x + 0.5 * distance * np.concatenate([np.eye(3), -np.eye(3)]))[:, : self._dimensions]
        a, _ = self._added.at(ends, self.begin + after)
        return float(np.linalg.norm(a[:3] - a[3:], axis=1).max()) / (distance * self._G)
