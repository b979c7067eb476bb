"""The kernel of :mod:`.ias15`: the systems of an ensemble, divided among the cores."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numba import njit
from numba.extending import overload

from nbody import compute
from nbody.integrators.solvers.few_bodies import BEGIN, END, LENGTH
from nbody.integrators.solvers.pair_forces import variant_of
from nbody.integrators.solvers.radau import steps_for
from nbody.integrators.solvers.systems.scheme import COLLISION, DONE, NOT_FINITE


@njit(error_model="numpy")
def closest_pair(x):
    """The shortest distance of two of the bodies x, (3, n); NaN if a position is not finite."""
    least, total = np.inf, 0.0
    for i in range(1, x.shape[1]):
        for j in range(i):
            dx, dy, dz = x[0, j] - x[0, i], x[1, j] - x[1, i], x[2, j] - x[2, i]
            r2 = dx * dx + dy * dy + dz * dz
            total += r2
            least = min(least, r2)
    return np.sqrt(least) + 0.0 * total


@njit(error_model="numpy")
def is_finite(rows):
    """True if all numbers of a (k, n) array are finite."""
    total = 0.0
    for c in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            total += 0.0 * rows[c, i]
    return total == 0.0


@njit(error_model="numpy")
def copy(source, target):
    """Copy a (k, n) array."""
    for c in range(source.shape[0]):
        for i in range(source.shape[1]):
            target[c, i] = source[c, i]


@njit(error_model="numpy")
def ended(x, v, good, near):
    """What has ended a system after a step, or tried one."""
    if not good:
        return COLLISION
    return DONE if np.isfinite(near) and is_finite(v) else NOT_FINITE


def one_system(variant, x, v, arguments, begin, clock, limits, more, made, closest):
    """In a kernel: steps of one system, until ``made`` is ``steps`` or a step passes ``until``, each by
    :func:`.radau.steps_for`, whose arguments these are; ``limits``: until and steps; ``variant`` is a constant text. Returns
    what has ended the system, the steps made, and the shortest distance."""
    raise NotImplementedError("for kernels only")


@overload(one_system, prefer_literal=True)
def _one_system_in_a_kernel(variant, x, v, arguments, begin, clock, limits, more, made, closest):
    advance = steps_for(variant.literal_value.split()[0])

    def one_system(variant, x, v, arguments, begin, clock, limits, more, made, closest):
        status, (until, steps) = DONE, limits
        while made < steps and clock[END] < until and status == DONE:
            done, good = advance(x, v, *(arguments + (begin, clock, np.inf, np.inf, 1) + more))  # noqa: RUF005  (Numba)
            near = closest_pair(x)
            status = ended(x, v, good, near)
            if status == DONE:
                made, closest = made + done, min(closest, near)
        if status != DONE:  # it stays where that step began, and nothing that is not finite stays in the state
            clock[LENGTH], clock[END] = 0.0, clock[BEGIN]
            for rows in arguments[3:]:
                rows[:] = 0.0
        advance(x, v, *(arguments + (begin, clock, until, np.inf, 0) + more))  # noqa: RUF005
        return status, made, closest

    return one_system


@cache
def steps_of_all(law_name: str) -> Callable:
    """The compiled function ``advance``, which makes steps of all systems under a law; see its text below."""
    variant = variant_of(law_name)

    def advance(
        first, last, x, v, m, G, length2, b, e, lost_x, lost_v, begin, clock, until, steps, longest, eta, made, status,
        closest,
    ):  # fmt: skip
        """Make up to ``steps`` steps of each of the systems ``first`` … ``last`` - 1, until one passes the time ``until``.

        The arrays are those of one system (:func:`.radau.steps_for`) with a first axis for the systems;
        made, status, closest: (S,), the number of steps so far, what has ended it, and the shortest distance."""
        for s in range(first, last):
            if status[s] == DONE:
                status[s], made[s], closest[s] = one_system(
                    variant, x[s], v[s], (m[s], G, length2, b[s], e[s], lost_x[s], lost_v[s]), begin[s], clock[s],
                    (until, made[s] + steps), (longest, eta), made[s], closest[s],
                )  # fmt: skip

    return compute.kernel("cpu")(advance)
