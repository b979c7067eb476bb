"""The kernel of :mod:`.ias15`: the systems of an ensemble, divided among the cores."""

from collections.abc import Callable
from functools import cache

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.field import Term
from nbody.integrators.adaptive import BEGIN, END, LENGTH
from nbody.integrators.solvers.pair_forces import Attraction
from nbody.integrators.solvers.radau import RadauStep, StepLimits, stepper_for
from nbody.integrators.solvers.systems.arrays import closest_pair, is_finite
from nbody.integrators.solvers.systems.scheme import COLLISION, DONE, NOT_FINITE


@inner
def ended(x, v, good, near):
    """What has ended a system after a step, or tried one."""
    if not good:
        return COLLISION
    return DONE if np.isfinite(near) and is_finite(v) else NOT_FINITE


@cache
def steps_of_all(kind: str, terms: tuple[Term, ...], dimensions: int) -> Callable:
    """The kernel ``advance``, which makes steps of all systems by forces of a kind and external fields."""
    make_steps = inner(stepper_for(kind, terms, dimensions), calls=True)

    @inner(calls=True)
    def one_system(x, v, law, step, limits, made, closest):
        """Make steps of one system, until ``made`` is ``limits.steps`` or a step passes ``limits.until``. Returns what has
        ended the system, the steps made, and the shortest distance."""
        until, last, steps, longest, eta = limits
        status, clock = DONE, step.clock
        while made < steps and clock[END] < until and status == DONE:
            done, good = make_steps(x, v, law, step, StepLimits(np.inf, last, 1, longest, eta))
            near = closest_pair(x)
            status = ended(x, v, good, near)
            if status == DONE:
                made, closest = made + done, min(closest, near)
        if status != DONE:  # it stays where that step began, and nothing that is not finite stays in the state
            clock[LENGTH], clock[END] = 0.0, clock[BEGIN]
            step.b[:], step.e[:], step.lost_x[:], step.lost_v[:] = 0.0, 0.0, 0.0, 0.0
        make_steps(x, v, law, step, StepLimits(until, last, 0, longest, eta))
        return status, made, closest

    @compute.kernel("cpu")
    def advance(first, last, x, v, law, step, limits, ends):
        """Make up to ``limits.steps`` steps of each of the systems ``first`` … ``last`` - 1, until one passes the time
        ``limits.until``.

        The arrays are those of :func:`.stepper_for` with a first axis for the systems; ``ends``: (S,) each, the number of
        steps so far, what has ended the system, and the shortest distance."""
        (made, status, closest), more = ends, law.more.copy()  # part of it may be scratch
        for s in range(first, last):
            if status[s] == DONE:
                sums = step.b[s], step.e[s], step.lost_x[s], step.lost_v[s]
                own = RadauStep(step.begin[s], step.clock[s], sums[0], sums[1], sums[2], sums[3], step.growth[s])
                status[s], made[s], closest[s] = one_system(
                    x[s], v[s], Attraction(law.m[s], law.G, law.length2, more), own,
                    StepLimits(limits.until, limits.last, made[s] + limits.steps, limits.longest, limits.eta),
                    made[s], closest[s],
                )  # fmt: skip

    return advance  # type: ignore[no-any-return]
