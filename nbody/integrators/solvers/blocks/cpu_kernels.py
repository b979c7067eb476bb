"""The kernels of block time steps on the CPU: one compiled loop over blocks, in float64.

A block is all bodies whose steps end at the next time. Everything is predicted to that time, the forces of all bodies on the
block's are summed, and these bodies are corrected and get new steps. Arrays have a row per component, so that the sums over
all bodies are vectorized; large blocks are divided among the cores. The order of each sum is fixed.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numba.extending import overload

from nbody import compute, law
from nbody.forces.direct.cpu_roots import FAST, compile_for_vectors
from nbody.integrators.solvers.blocks import formulas
from nbody.integrators.solvers.blocks.formulas import APPROACH, FOREVER, corrector, pair_weights, predictor, step_length
from nbody.integrators.solvers.kepler import kepler_step
from nbody.law import pair_law, pair_slopes

ALONE = 1 << 18
"""Fewer pairs than this in a block are left to one core: waking the others costs as much."""

DERIVATIVES = 6
"""Rows of three components per body: position, velocity, and acceleration to crackle."""


def variant_of(law_name: str, order: int) -> str:
    """The constant text that names a law and an order in kernels; it changes with their source code."""
    files = [*sorted(Path(str(law.__file__)).parent.glob("*.py")), Path(str(formulas.__file__)), Path(__file__)]
    made_of = b"".join(file.read_bytes() for file in files)
    return f"{law_name} {order} {hashlib.sha256(made_of).hexdigest()}"


def sum_forces(variant, i, p, m, length2, sums):
    """In a kernel: the nine sums (a, j, s)/G of all other bodies on body i; p (9, N): predicted x, v, a."""
    raise NotImplementedError("for kernels only")


def predict_all(variant, rows, p, last, now, tick):
    """In a kernel: p (9, N) of all bodies at the time ``now`` from their derivatives ``rows`` (18, N)."""
    raise NotImplementedError("for kernels only")


def correct(variant, i, rows, sums, h, eta):
    """In a kernel: correct body i at the end of a step of length h. Returns the length of its next step."""
    raise NotImplementedError("for kernels only")


@overload(sum_forces, prefer_literal=True)
def _sum_forces(variant, i, p, m, length2, sums):
    compiled = _forces(variant.literal_value)
    return lambda variant, i, p, m, length2, sums: compiled(i, p, m, length2, sums)


@overload(predict_all, prefer_literal=True)
def _predict_all(variant, rows, p, last, now, tick):
    compiled = _prediction(variant.literal_value)
    return lambda variant, rows, p, last, now, tick: compiled(rows, p, last, now, tick)


@overload(correct, prefer_literal=True)
def _correct(variant, i, rows, sums, h, eta):
    compiled = _correction(variant.literal_value)
    return lambda variant, i, rows, sums, h, eta: compiled(i, rows, sums, h, eta)


@cache
def _forces(variant: str) -> Callable:
    law_name, order, _ = variant.split()

    @njit(fastmath=FAST)
    def rsqrt(x):
        return 1.0 / np.sqrt(x)

    made = law_name, 3, rsqrt, njit(fastmath=FAST)
    weights = pair_weights(int(order), pair_law(*made), njit(fastmath=FAST), pair_slopes(*made))
    snap = int(order) == 6

    @njit(fastmath=FAST, error_model="numpy")
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

    @njit(error_model="numpy")
    def forces(i, p, m, length2, sums):
        sums[:] = 0.0
        part(i, 0, i, p, m, length2, sums)
        part(i, i + 1, m.size, p, m, length2, sums)

    return forces


@cache
def _prediction(variant: str) -> Callable:
    predict = predictor(int(variant.split()[1]), njit(fastmath=FAST))

    @njit(fastmath=FAST, error_model="numpy")
    def prediction(rows, p, last, now, tick):
        compile_for_vectors()
        for k in range(3):
            for j in range(last.size):
                h = (now - last[j]) * tick
                x, v, a = predict(
                    rows[k, j], rows[3 + k, j], rows[6 + k, j], rows[9 + k, j], rows[12 + k, j], rows[15 + k, j], h
                )
                p[k, j], p[3 + k, j], p[6 + k, j] = x, v, a

    return prediction


@cache
def _correction(variant: str) -> Callable:
    order = int(variant.split()[1])
    end_of_step = corrector(order, njit)
    length = step_length(order, njit(lambda x: np.sqrt(x)), njit(error_model="numpy"))

    @njit(error_model="numpy")
    def correction(i, rows, sums, h, eta):
        a, j, s, c, d, e = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(3):
            a1, j1, s1 = sums[k], sums[3 + k], sums[6 + k]
            x, v, snap, crackle, fourth, fifth = end_of_step(
                rows[k, i], rows[3 + k, i], rows[6 + k, i], rows[9 + k, i], rows[12 + k, i], a1, j1, s1, h
            )
            rows[k, i], rows[3 + k, i], rows[6 + k, i] = x, v, a1
            rows[9 + k, i], rows[12 + k, i], rows[15 + k, i] = j1, snap, crackle
            a, j, s = a + a1 * a1, j + j1 * j1, s + snap * snap
            c, d, e = c + crackle * crackle, d + fourth * fourth, e + fifth * fifth
        if a + j + s == 0.0:  # no force acts on it
            return FOREVER
        return min(length(a, j, s, c, d, e, eta), FOREVER)

    return correction


@njit(fastmath=FAST, error_model="numpy")
def perturbation(i, p, m):
    """How strongly and how soon the others perturb the pair whose centre of mass is body i: the largest max(M, 2 m) / r³,
    and the largest (v/r)², of a body of mass m at the distance r that moves at the relative speed v; p (9, N): see
    :func:`predict_all`."""
    strongest, quickest, heavy = 0.0, 0.0, m[i]
    for j in range(m.size):
        if j != i:
            dx, dy, dz = p[0, j] - p[0, i], p[1, j] - p[1, i], p[2, j] - p[2, i]
            vx, vy, vz = p[3, j] - p[3, i], p[4, j] - p[4, i], p[5, j] - p[5, i]
            per_r2 = 1.0 / (dx * dx + dy * dy + dz * dz)
            strongest = max(strongest, max(heavy, 2.0 * m[j]) * per_r2 * np.sqrt(per_r2))
            quickest = max(quickest, (vx * vx + vy * vy + vz * vz) * per_r2)
    return strongest, quickest


@njit
def in_ticks(h, tick, most):
    """The largest power of two of ticks that is at most h and ``most``; 0 if h is shorter than a tick or not a number."""
    found = most
    while found > 0 and not found * tick <= h:
        found >>= 1
    return found


@cache
def start_for(law_name: str) -> Callable:
    """The compiled function ``start(first, last, p, m, length2, G, sums)``, which fills ``sums`` (N, 9) with acceleration,
    jerk and snap of the bodies ``first`` to ``last`` (not included); p (9, N): see :func:`predict_all`."""
    variant = variant_of(law_name, 6)

    def start(first, last, p, m, length2, G, sums):
        for i in prange(first, last):
            sum_forces(variant, i, p, m, length2, sums[i])
            for k in range(9):
                sums[i, k] *= G

    return compute.kernel("cpu", parallel=True)(start)


@cache
def forces_for(law_name: str) -> Callable:
    """The compiled function ``forces(p, m, i, length2, G, sums)``, which fills ``sums`` (9,) with the acceleration, jerk and
    snap of body i; p (9, N): see :func:`predict_all`."""
    variant = variant_of(law_name, 6)

    def forces(p, m, i, length2, G, sums):
        sum_forces(variant, i, p, m, length2, sums)
        sums *= G

    return compute.kernel("cpu")(forces)


@cache
def kepler_motion() -> Callable:
    """The compiled function ``move(x, v, mu, h)``: moves n separations x and velocities v, (3, n), by the times h on Kepler
    orbits of strength mu."""

    def move(x, v, mu, h):
        for k in range(mu.size):
            kepler_step(k, x, v, mu[k], h[k])

    return compute.kernel("cpu")(move)


@cache
def perturbation_now() -> Callable:
    """:func:`perturbation`, compiled for callers on the host."""

    def strongest(i, p, m):
        return perturbation(i, p, m)

    return compute.kernel("cpu")(strongest)


class BlockArrays(NamedTuple):
    """Working memory: p (9, N), see :func:`predict_all`; the bodies of a block (N,); and their sums (N, 9)."""

    p: np.ndarray
    active: np.ndarray
    sums: np.ndarray


@cache
def blocks_for(law_name: str, order: int) -> Callable:
    """The compiled function ``advance``; see its text below."""
    variant = variant_of(law_name, order)

    def advance(
        rows, m, last, step, wanted, limit, parked, now, end, tick, steps, largest, smallest, shared, eta, length2, G,
        ranks, memory, waiting,
    ):  # fmt: skip
        """Make up to ``steps`` blocks, or all until the time ``end``, or until the perturbation of a pair is too strong, or
        until other ranks' sums are needed.

        Args:
            rows: (18, N) position, velocity, acceleration, jerk, snap and crackle of each body at the end of its last step.
            m: (N,) masses.
            last, step: (N,) int64, the end of each body's last step and the length of its next one, in ticks.
            wanted: (N,) the length that accuracy asks for, in units of time.
            limit: (N,) the strongest :func:`perturbation` of the pair whose centre of mass a body is, 0 for other bodies.
                It becomes negative if the limit is exceeded.
            parked: the second bodies of all pairs, which exert no force.
            now, end: the time reached, and where to stop, in ticks of ``tick`` units of time.
            largest, smallest: limits of a step in ticks.
            shared: all bodies make the shortest step.
            ranks: this rank, their number, and the fewest pairs of a block that they divide.
            memory: see :class:`BlockArrays`; kept between calls.
            waiting: the bodies of a block whose sums are complete now, 0 for none.

        Returns:
            The number of blocks, the time reached, the steps of single bodies, a body whose step would be shorter than the
            smallest one, or -1, whether a limit was exceeded, and the bodies of a block of which each rank has summed its
            part (then call again, ``waiting``, with all sums), or 0.
        """
        count = m.size
        p, active, sums = memory
        rank, size, fewest = ranks
        blocks, single, exceeded = 0, 0, False
        while blocks < steps and not exceeded:
            number = waiting
            if not waiting:
                following = np.int64(1) << 62
                for j in range(count):
                    following = min(following, last[j] + step[j])
                if following > end:
                    break
                for j in range(count):
                    if shared or last[j] + step[j] == following:
                        active[number], step[j] = j, following - last[j]
                        number += 1
                predict_all(variant, rows, p, last, following, tick)
                for j in parked:
                    for k in range(3):
                        p[k, j], p[3 + k, j], p[6 + k, j] = rows[k, j], 0.0, 0.0
                divided = size > 1 and number * count >= fewest
                first_row, last_row = 0, number
                if divided:
                    first_row, last_row = number * rank // size, number * (rank + 1) // size
                if (last_row - first_row) * count < ALONE:
                    for k in range(first_row, last_row):
                        sum_forces(variant, active[k], p, m, length2, sums[k])
                else:
                    for k in prange(first_row, last_row):
                        sum_forces(variant, active[k], p, m, length2, sums[k])
                if divided:
                    return blocks, now, single, -1, False, number
            waiting = 0
            now = last[active[0]] + step[active[0]]
            failed = -1
            for k in range(number):
                i = active[k]
                sums[k] *= G
                wanted[i] = correct(variant, i, rows, sums[k], step[i] * tick, eta)
                if limit[i] > 0.0:
                    strongest, quickest = perturbation(i, p, m)
                    wanted[i] = min(wanted[i], APPROACH / np.sqrt(quickest))
                    if strongest > limit[i]:
                        limit[i], exceeded = -limit[i], True
                most = max(1, min(2 * step[i], largest))  # a body that is shown at an earlier time makes a step back
                while now % most:  # a longer step begins at its own multiples only
                    most >>= 1
                last[i], step[i] = now, in_ticks(wanted[i], tick, most)
                if step[i] < smallest:
                    failed = i
            blocks, single = blocks + 1, single + number
            if failed >= 0:
                return blocks, now, single, failed, exceeded, 0
        return blocks, now, single, -1, exceeded, 0

    return compute.kernel("cpu", parallel=True)(advance)


@cache
def prediction_for(order: int) -> Callable:
    """The compiled function ``prediction(rows, p, last, now, tick)``; see :func:`predict_all`."""
    variant = variant_of("none", order)

    def prediction(rows, p, last, now, tick):
        predict_all(variant, rows, p, last, now, tick)

    return compute.kernel("cpu")(prediction)
