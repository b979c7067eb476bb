"""Block time steps on the CPU: one compiled loop over blocks, in float64.

A block is all bodies whose steps end at the next time. Everything is predicted to that time, the forces of all bodies on the
block's are summed, and these bodies are corrected and get new steps. Arrays have a row per component, so that the sums over
all bodies are vectorized; large blocks are divided among the cores. The order of each sum is fixed.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit, prange
from numba.extending import overload

from nbody import law
from nbody.forces.direct.cpu_cache import disk_cached
from nbody.forces.direct.cpu_roots import FAST, compile_for_vectors
from nbody.integrators.blocks import formulas
from nbody.integrators.blocks.formulas import corrector, pair_weights, predictor, step_length
from nbody.integrators.integrator import Motion
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
            return np.inf
        return length(a, j, s, c, d, e, eta)

    return correction


@njit
def in_ticks(h, tick, most):
    """The largest power of two of ticks that is at most h and ``most``; 0 if h is shorter than a tick or not a number."""
    found = most
    while found > 0 and not found * tick <= h:
        found >>= 1
    return found


@cache
def start_for(law_name: str) -> Callable:
    """The compiled function ``start(rows, m, length2, G)``, which fills accelerations, jerks and snaps of ``rows`` (18, N)
    from positions and velocities, in two passes over all pairs."""
    variant = variant_of(law_name, 6)

    def start(rows, m, length2, G):
        p = np.zeros((9, m.size))
        p[:6] = rows[:6]
        for _ in range(2):  # the second one knows the accelerations
            for i in prange(m.size):
                sums = np.empty(9)
                sum_forces(variant, i, p, m, length2, sums)
                for k in range(9):
                    rows[6 + k, i] = G * sums[k]
            p[6:] = rows[6:9]

    return disk_cached(start, parallel=True)


@cache
def blocks_for(law_name: str, order: int) -> Callable:
    """The compiled function ``advance``; see its text below."""
    variant = variant_of(law_name, order)

    def advance(rows, m, last, step, wanted, now, end, tick, steps, largest, smallest, shared, eta, length2, G):
        """Make up to ``steps`` blocks, or all until the time ``end``.

        Args:
            rows: (18, N) position, velocity, acceleration, jerk, snap and crackle of each body at the end of its last step.
            m: (N,) masses.
            last, step: (N,) int64, the end of each body's last step and the length of its next one, in ticks.
            wanted: (N,) the length that accuracy asks for, in units of time.
            now, end: the time reached, and where to stop, in ticks of ``tick`` units of time.
            largest, smallest: limits of a step in ticks.
            shared: all bodies make the shortest step.

        Returns:
            The number of blocks, the time reached, the steps of single bodies, and a body whose step would be shorter than
            the smallest one, or -1.
        """
        count = m.size
        p, active, sums = np.empty((9, count)), np.empty(count, np.int64), np.empty((count, 9))
        blocks, single = 0, 0
        while blocks < steps:
            following = np.int64(1) << 62
            for j in range(count):
                following = min(following, last[j] + step[j])
            if following > end:
                break
            now = following
            number = 0
            for j in range(count):
                if shared or last[j] + step[j] == now:
                    active[number], step[j] = j, now - last[j]
                    number += 1
            predict_all(variant, rows, p, last, now, tick)
            if number * count < ALONE:
                for k in range(number):
                    sum_forces(variant, active[k], p, m, length2, sums[k])
            else:
                for k in prange(number):
                    sum_forces(variant, active[k], p, m, length2, sums[k])
            failed = -1
            for k in range(number):
                i = active[k]
                sums[k] *= G
                wanted[i] = correct(variant, i, rows, sums[k], step[i] * tick, eta)
                most = min(2 * step[i], largest)
                while now % most:  # a longer step begins at its own multiples only
                    most >>= 1
                last[i], step[i] = now, in_ticks(wanted[i], tick, most)
                if step[i] < smallest:
                    failed = i
            blocks, single = blocks + 1, single + number
            if failed >= 0:
                return blocks, now, single, failed
        return blocks, now, single, -1

    return disk_cached(advance, parallel=True)


@cache
def prediction_for(order: int) -> Callable:
    """The compiled function ``prediction(rows, p, last, now, tick)``; see :func:`predict_all`."""
    variant = variant_of("none", order)

    def prediction(rows, p, last, now, tick):
        predict_all(variant, rows, p, last, now, tick)

    return disk_cached(prediction)


class Blocks:
    """The loop over blocks of one state in host memory."""

    def __init__(self, motion: Motion, order: int, eta: float, shared: bool = False) -> None:
        state: Any = motion.state
        self._state, count = state, state.count
        self._gravity, self._order, self._eta, self._shared = motion.engine.gravity, order, eta, shared
        self._rows = state.derivatives.reshape(3 * DERIVATIVES, count)
        self._last, self._step = state.ticks.reshape(2, count)
        self._now = -1  # the time reached in ticks; -1 after a restore

    def first_derivatives(self) -> np.ndarray:
        """Evaluate acceleration, jerk and snap of all bodies, in two passes over the pairs. Returns all, (18, N)."""
        state, D, gravity = self._state, self._state.dimensions, self._gravity
        self._rows[:] = 0.0
        self._rows[:D], self._rows[3 : 3 + D] = state.position.T, state.velocity.T
        start_for(gravity.softening)(self._rows, state.mass, gravity.length2, gravity.G)
        return self._rows

    def set_wanted(self, wanted: np.ndarray) -> None:
        """Set the steps that accuracy asks for, (N,)."""
        self._state.wanted_step[...] = wanted

    def shortest_wanted(self) -> float:
        """The shortest step that accuracy asks for."""
        return float(self._state.wanted_step.min())

    def new_stretch(self, tick: float, unit: int, smallest: int) -> int:
        """All bodies are at the same time, 0 ticks from now on. Returns a body whose step is too short, or -1."""
        self._last[:] = self._now = 0
        for i, wanted in enumerate(self._state.wanted_step):
            self._step[i] = in_ticks(wanted, tick, unit)
        short = np.flatnonzero(self._step < smallest)
        return int(short[0]) if len(short) else -1

    def advance(self, tick: float, end: int, unit: int, smallest: int, steps: int) -> tuple[int, int, int, int]:
        """Make up to ``steps`` blocks, or all until ``end``. Returns the number of blocks, the time reached in ticks, the
        steps of single bodies, and a body whose step would be too short, or -1."""
        if self._now < 0:
            self._now = int(self._last.max())
        gravity = self._gravity
        blocks, self._now, single, failed = blocks_for(gravity.softening, self._order)(
            self._rows, self._state.mass, self._last, self._step, self._state.wanted_step, self._now, end, tick, steps, unit,
            smallest, self._shared, self._eta, gravity.length2, gravity.G,
        )  # fmt: skip
        return blocks, self._now, single, failed

    def step_to(self, end: int) -> None:
        """Let the next steps of all bodies end at the time ``end``, in ticks."""
        self._step[:] = np.where(self._last < end, end - self._last, self._step)

    def present(self, now: int, tick: float) -> None:
        """Predict all bodies to one time, into the state's positions and velocities."""
        state = self._state
        p = np.empty((9, state.count))
        prediction_for(self._order)(self._rows, p, self._last, now, tick)
        state.position[...], state.velocity[...] = p[: state.dimensions].T, p[3 : 3 + state.dimensions].T
