"""The kernels of block time steps on the CPU: one compiled loop over blocks, in float64.

A block is all bodies whose steps end at the next time. Everything is predicted to that time, the forces of all bodies on the
block's are summed, and these bodies are corrected and get new steps. Arrays have a row per component, so that the sums over
all bodies are vectorized; large blocks are divided among the cores. The order of each sum is fixed.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import prange

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.field import Term
from nbody.forces.direct.cpu_roots import FAST, compile_for_vectors
from nbody.integrators.solvers.blocks import fields, formulas
from nbody.integrators.solvers.blocks.formulas import A, C, J, S, V, X
from nbody.integrators.solvers.kepler import kepler_step
from nbody.law import inverse_root, pair_law, pair_slopes

ALONE = 1 << 18
"""Fewer pairs than this in a block are left to one core: waking the others costs as much."""


in_ticks, following_step = formulas.step_choice(inner)
perturbs = formulas.pair_perturbation(inner(lambda x: np.sqrt(x)), inner(fastmath=FAST))


@cache
def sums_of(law_name: str, order: int) -> Callable:
    """For kernels: ``sum_forces(i, p, m, length2, sums)``, the nine sums (a, j, s)/G of all other bodies on body i;
    p (9, N): predicted x, v, a."""
    made = law_name, 3, inner(fastmath=FAST)(inverse_root), inner(fastmath=FAST)
    weights = formulas.pair_weights(order, pair_law(*made), inner(fastmath=FAST), pair_slopes(*made))
    snap = order == 6

    @inner(fastmath=FAST)
    def part(i, first, last, p, m, length2, sums):
        compile_for_vectors()
        xi, yi, zi, vxi, vyi, vzi = p[0, i], p[1, i], p[2, i], p[3, i], p[4, i], p[5, i]
        axi, ayi, azi = p[6, i], p[7, i], p[8, i]
        ax, ay, az, jx, jy, jz, sx, sy, sz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(first, last):
            dax, day, daz = (p[6, j] - axi, p[7, j] - ayi, p[8, j] - azi) if snap else (0.0, 0.0, 0.0)
            dx, dy, dz = p[0, j] - xi, p[1, j] - yi, p[2, j] - zi
            vx, vy, vz = p[3, j] - vxi, p[4, j] - vyi, p[5, j] - vzi
            w, pw, qw, rw = weights(dx, dy, dz, vx, vy, vz, dax, day, daz, m[j], length2)
            ax += w * dx
            ay += w * dy
            az += w * dz
            jx += w * vx - pw * dx
            jy += w * vy - pw * dy
            jz += w * vz - pw * dz
            if snap:
                sx += w * dax - qw * vx + rw * dx
                sy += w * day - qw * vy + rw * dy
                sz += w * daz - qw * vz + rw * dz
        for k, value in enumerate((ax, ay, az, jx, jy, jz, sx, sy, sz)):
            sums[k] += value

    @inner
    def sum_forces(i, p, m, length2, sums):
        sums[:] = 0.0
        part(i, 0, i, p, m, length2, sums)
        part(i, i + 1, m.size, p, m, length2, sums)

    return sum_forces


@cache
def predicting(order: int) -> Callable:
    """For kernels: ``predict_all(rows, p, last, now, tick)``, p (9, N) of all bodies at the time ``now`` from their
    derivatives ``rows`` (18, N)."""
    predict = formulas.predictor(order, inner(fastmath=FAST))

    @inner(fastmath=FAST)
    def predict_all(rows, p, last, now, tick):
        compile_for_vectors()
        for k in range(3):
            for j in range(last.size):
                h = (now - last[j]) * tick
                x, v, a = predict(
                    rows[X + k, j], rows[V + k, j], rows[A + k, j], rows[J + k, j], rows[S + k, j], rows[C + k, j], h
                )
                p[X + k, j], p[V + k, j], p[A + k, j] = x, v, a

    return predict_all


@cache
def correcting(order: int) -> Callable:
    """For kernels: ``correct(i, rows, sums, h, eta)``, which corrects body i at the end of a step of length h. Returns the
    length of its next step."""
    end_of_step = formulas.corrector(order, inner)
    length = formulas.step_length(order, inner(lambda x: np.sqrt(x)), inner)

    @inner
    def correct(i, rows, sums, h, eta):
        a, j, s, c, d, e = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(3):
            a1, j1, s1 = sums[k], sums[3 + k], sums[6 + k]
            x, v, snap, crackle, fourth, fifth = end_of_step(
                rows[X + k, i], rows[V + k, i], rows[A + k, i], rows[J + k, i], rows[S + k, i], a1, j1, s1, h
            )
            rows[X + k, i], rows[V + k, i], rows[A + k, i] = x, v, a1
            rows[J + k, i], rows[S + k, i], rows[C + k, i] = j1, snap, crackle
            a, j, s = a + a1 * a1, j + j1 * j1, s + snap * snap
            c, d, e = c + crackle * crackle, d + fourth * fourth, e + fifth * fifth
        return length(a, j, s, c, d, e, eta)

    return correct


@inner(fastmath=FAST)
def perturbation(i, p, m):
    """How strongly and how soon the others perturb the pair whose centre of mass is body i: the largest max(M, 2 m) / r³,
    and the largest (v/r)², of a body of mass m at the distance r that moves at the relative speed v; p (9, N): see
    :func:`predicting`."""
    strongest, quickest, heavy = 0.0, 0.0, m[i]
    for j in range(m.size):
        if j != i:
            dx, dy, dz = p[0, j] - p[0, i], p[1, j] - p[1, i], p[2, j] - p[2, i]
            vx, vy, vz = p[3, j] - p[3, i], p[4, j] - p[4, i], p[5, j] - p[5, i]
            strong, quick = perturbs(dx * dx + dy * dy + dz * dz, vx * vx + vy * vy + vz * vz, heavy, m[j])
            strongest, quickest = max(strongest, strong), max(quickest, quick)
    return strongest, quickest


@cache
def start_for(law_name: str) -> Callable:
    """The kernel ``start(first, last, p, m, length2, G, sums)``, which fills ``sums`` (N, 9) with acceleration, jerk and
    snap of the bodies ``first`` to ``last`` (not included); p (9, N): see :func:`predicting`."""
    sum_forces = sums_of(law_name, 6)

    @compute.kernel("cpu", parallel=True)
    def start(first, last, p, m, length2, G, sums):
        for i in prange(first, last):
            sum_forces(i, p, m, length2, sums[i])
            for k in range(9):
                sums[i, k] *= G

    return start  # type: ignore[no-any-return]


@compute.kernel("cpu")
def kepler_motion(x, v, mu, h):
    """Move n separations x and velocities v, (3, n), by the times h on Kepler orbits of strength mu."""
    for k in range(mu.size):
        kepler_step(k, x, v, mu[k], h[k])


@compute.kernel("cpu")
def in_ticks_now(h, tick, most):
    """:func:`in_ticks` as a kernel."""
    return in_ticks(h, tick, most)


@compute.kernel("cpu")
def perturbation_now(i, p, m):
    """:func:`perturbation` as a kernel."""
    return perturbation(i, p, m)


class BlockArrays(NamedTuple):
    """Working memory: p (9, N), see :func:`predicting`; the bodies of a block (N,); and their sums (N, 9)."""

    p: np.ndarray
    active: np.ndarray
    sums: np.ndarray


class BlockScale(NamedTuple):
    """What blocks depend on besides the bodies.

    Attributes:
        tick: the length of a tick.
        largest, smallest: limits of a step in ticks.
        shared: all bodies make the shortest step.
        eta: the accuracy.
        length2, G: of the law.
        begin, parameters: the time at tick 0, and the parameters of the external fields.
        ranks: this rank, their number, and the fewest pairs of a block that they divide.
    """

    tick: float
    largest: int
    smallest: int
    shared: bool
    eta: float
    length2: float
    G: float
    begin: float
    parameters: np.ndarray
    ranks: tuple[int, int, int]


@cache
def adding_fields(terms: tuple[Term, ...], order: int, dimensions: int) -> Callable:
    """For kernels: ``add_fields(i, b, p, sums, h, time, parameters)`` adds the fields at the end of a step of body i to the
    ``sums`` (9,) over the pairs; p (9, N): see :func:`predicting`."""
    add, end_of_step = fields.field_sums(terms, dimensions), formulas.corrector(order, inner)
    again = fields.passes(terms) > 1

    @inner
    def add_fields(i, b, p, sums, h, time, parameters):
        x, v, d, rows = (p[0, i], p[1, i], p[2, i]), (p[3, i], p[4, i], p[5, i]), fields.STEP * abs(h), b.rows
        pairs = sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7], sums[8]
        add(x, v, b.mass[i], d, time, parameters, sums)
        if again:
            for k in range(3):
                _, sums[k], _, _, _, _ = end_of_step(
                    rows[X + k, i], rows[V + k, i], rows[A + k, i], rows[J + k, i], rows[S + k, i],
                    sums[k], sums[3 + k], sums[6 + k], h,
                )  # fmt: skip
            v = sums[0], sums[1], sums[2]
            for k, value in enumerate(pairs):
                sums[k] = value
            add(x, v, b.mass[i], d, time, parameters, sums)

    return add_fields


@inner
def squared(sums):
    """The square of an acceleration."""
    return sums[0] * sums[0] + sums[1] * sums[1] + sums[2] * sums[2]


@cache
def blocks_for(law_name: str, order: int, terms: tuple[Term, ...] = (), dimensions: int = 3) -> Callable:
    """The kernel ``advance`` for a law, an order, and a sum of external fields."""
    sum_forces, predict_all, correct = sums_of(law_name, order), predicting(order), correcting(order)
    in_fields, add_fields = bool(terms), adding_fields(terms, order, dimensions)
    shorter = fields.shortened(order, inner)

    @inner
    def begin_block(b, parked, scale, memory, end):
        """Predict all bodies to the next time. Returns the number of bodies whose steps end there, 0 if it is beyond
        ``end``."""
        p, active, _ = memory
        rows, last, step = b.rows, b.last, b.step
        number, following = 0, np.int64(1) << 62
        for j in range(last.size):
            following = min(following, last[j] + step[j])
        if following > end:
            return 0
        for j in range(last.size):
            if scale.shared or last[j] + step[j] == following:
                active[number], step[j] = j, following - last[j]
                number += 1
        predict_all(rows, p, last, following, scale.tick)
        for j in parked:
            for k in range(3):
                p[X + k, j], p[V + k, j], p[A + k, j] = rows[X + k, j], 0.0, 0.0
        return number

    @inner
    def end_block(b, number, now, scale, memory):
        """Correct the bodies of a block, and choose their next steps. Returns a body whose step would be shorter than the
        smallest one, or -1, and whether a limit was exceeded."""
        p, active, sums = memory
        failed, exceeded = -1, False
        for k in range(number):
            i = active[k]
            for c in range(sums.shape[1]):  # not an assignment of a row, whose error messages take a second to compile
                sums[k, c] *= scale.G
            factor = 1.0
            if in_fields:
                pairs = squared(sums[k])
                time = scale.begin + now * scale.tick
                add_fields(i, b, p, sums[k], b.step[i] * scale.tick, time, scale.parameters)
                factor = shorter(pairs, squared(sums[k]))
            required = factor * correct(i, b.rows, sums[k], b.step[i] * scale.tick, scale.eta)
            if b.limit[i] > 0.0:
                strongest, quickest = perturbation(i, p, b.mass)
                required = min(required, formulas.APPROACH / np.sqrt(quickest))
                if strongest > b.limit[i]:
                    b.limit[i], exceeded = -b.limit[i], True
            b.required[i], b.last[i] = required, now
            b.step[i] = following_step(required, b.step[i], now, scale.tick, scale.largest)
            if b.step[i] < scale.smallest:
                failed = i
        return failed, exceeded

    @compute.kernel("cpu", parallel=True)
    def advance(b, parked, now, end, steps, scale, memory, waiting):
        """Make up to ``steps`` blocks, or all until the time ``end``, or until the perturbation of a pair is too strong, or
        until other ranks' sums are needed.

        Args:
            b: :class:`.BlockBodies`.
            parked: the second bodies of all pairs, which exert no force.
            now, end: the time reached, and where to stop, in ticks.
            scale: :class:`BlockScale`.
            memory: :class:`BlockArrays`, kept between calls.
            waiting: the bodies of a block whose sums are complete now, 0 for none.

        Returns:
            The number of blocks, the time reached, the steps of single bodies, a body whose step would be shorter than the
            smallest one, or -1, whether a limit was exceeded, and the bodies of a block of which each rank has summed its
            part (then call again, ``waiting``, with all sums), or 0.
        """
        m, count, length2 = b.mass, b.mass.size, scale.length2
        p, active, sums = memory
        rank, size, fewest = scale.ranks
        blocks, single, failed, exceeded = 0, 0, -1, False
        while blocks < steps and failed < 0 and not exceeded:
            number = waiting
            if not waiting:
                number = begin_block(b, parked, scale, memory, end)
                if number == 0:
                    break
                divided = size > 1 and number * count >= fewest
                first_row, last_row = 0, number
                if divided:
                    first_row, last_row = number * rank // size, number * (rank + 1) // size
                if (last_row - first_row) * count < ALONE:
                    for k in range(first_row, last_row):
                        sum_forces(active[k], p, m, length2, sums[k])
                else:
                    for k in prange(first_row, last_row):
                        sum_forces(active[k], p, m, length2, sums[k])
                if divided:
                    return blocks, now, single, -1, False, number
            waiting = 0
            now = b.last[active[0]] + b.step[active[0]]
            failed, exceeded = end_block(b, number, now, scale, memory)
            blocks, single = blocks + 1, single + number
        return blocks, now, single, failed, exceeded, 0

    return advance  # type: ignore[no-any-return]


@cache
def prediction_for(order: int) -> Callable:
    """The function of :func:`predicting` as a kernel."""
    predict_all = predicting(order)

    return compute.kernel("cpu")(lambda rows, p, last, now, tick: predict_all(rows, p, last, now, tick))  # type: ignore[no-any-return]
