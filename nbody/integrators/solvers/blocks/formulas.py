"""The formulas of Hermite's schemes of order 4 and 6, for one pair and for one component of one body.

Order 4 evaluates the acceleration a and the jerk j (Makino & Aarseth 1992), order 6 also the snap s (Nitadori & Makino
2008). A body's derivatives at the end of its last step, up to the crackle c, predict where it is later. Each function here
makes a Python function that :func:`.cpu_inner.inner` or ``cuda.jit(device=True)`` compiles, given as ``compile``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SIXTH = 1.0 / 6.0
ETA = {4: 0.01, 6: 0.5}
"""The default accuracy of each order."""

TICKS = 1 << 50
"""A stretch in ticks: the time between two moments at which the steps are chosen anew."""

ROWS = 18
"""The numbers of a body, (18, N): position, velocity, acceleration, jerk, snap and crackle at the end of its last step."""

X, V, A, J, S, C = range(0, ROWS, 3)
"""The first of the three rows of each, for kernels."""

POSITION, VELOCITY, ACCELERATION, JERK, SNAP, CRACKLE = (slice(k, k + 3) for k in (X, V, A, J, S, C))
PHASE = slice(POSITION.start, VELOCITY.stop)
"""Position and velocity."""

FORCES = slice(ACCELERATION.start, SNAP.stop)
"""The derivatives that sums over pairs give: acceleration, jerk and snap."""

SEPARATION, RELATIVE_VELOCITY, FIRST = JERK, SNAP, CRACKLE.start
"""Rows of a parked body: separation and relative velocity of its pair, and the number of the pair's first body."""

FOREVER = 1e300
"""The step that accuracy asks for where no force acts; finite, like all numbers of a checkpoint."""

START = 0.1
"""The first steps as a fraction of what the first derivatives suggest: later ones know more derivatives."""

CANCELLED = 1e-20
"""a s/j² below which the forces on a body cancel at first: it begins with the shortest step of the others."""

APPROACH = 0.25
"""The longest step of a pair's centre of mass, as a fraction of the time in which another body could arrive."""


def first_steps(order: int, eta: float, rows: np.ndarray) -> np.ndarray:
    """The steps that accuracy asks for without derivatives beyond the snap, (N,); ``rows`` (18, N): position, velocity,
    acceleration, jerk, snap, crackle."""
    a, j, s = (np.linalg.norm(rows[k], axis=0) for k in (ACCELERATION, JERK, SNAP))
    with np.errstate(divide="ignore", invalid="ignore"):
        required = START * eta ** (0.5 if order == 4 else 1.0) * np.fmin(a / j, np.sqrt(a / s))
    cancelled = a * s < CANCELLED * j**2
    required[cancelled] = np.nanmin(required[~cancelled], initial=FOREVER)
    return np.fmin(required, FOREVER)


def pair_weights(
    order: int, law: Any, compile: Callable, slopes: Callable | None = None, real: Callable[[int], Any] = float
) -> Any:
    """``weights(dx, dy, dz, vx, vy, vz, ax, ay, az, m, length2) -> (w, p, q, r)``: what body j adds to the sums of body i,

        a += w d,   j += w v - p d,   s += w a - q v + r d,

    with the differences d, v, a of positions, velocities and accelerations. With f = 1/r³ and u = 1/r of the softened
    distance, w = m f, α = (d·v) u² and β = (v² + d·a) u² + α²: p = 3 α w, q = 6 α w, r = (18 α² - 3 β) w.

    With the ``slopes`` g and k of a law that is not cubic (:func:`~nbody.law.pair_slopes`): p = -m g (d·v), q = 2 p,
    r = m (g (v² + d·a) + k (d·v)²). ``real`` makes the constants.
    """
    snap, three, five = order == 6, real(3), real(5)
    if slopes is not None:
        return compile(_weights_from(slopes, law, snap))

    def weights(dx, dy, dz, vx, vy, vz, ax, ay, az, m, length2):
        f, u = law(dx, dy, dz, length2)
        w, u2 = f * m, u * u
        alpha = (dx * vx + dy * vy + dz * vz) * u2
        w3 = three * w
        p = alpha * w3
        if not snap:
            return w, p, p, p
        beta = (vx * vx + vy * vy + vz * vz + dx * ax + dy * ay + dz * az) * u2  # without α²
        return w, p, p + p, (five * (alpha * alpha) - beta) * w3

    return compile(weights)


def _weights_from(slopes: Callable, law: Callable, snap: bool) -> Callable:
    def weights(dx, dy, dz, vx, vy, vz, ax, ay, az, m, length2):
        f, _ = law(dx, dy, dz, length2)
        g, k = slopes(dx, dy, dz, length2)
        along = dx * vx + dy * vy + dz * vz
        p = -m * g * along
        if not snap:
            return f * m, p, p, p
        beta = vx * vx + vy * vy + vz * vz + dx * ax + dy * ay + dz * az
        return f * m, p, p + p, m * (g * beta + k * along * along)

    return weights


def predictor(order: int, compile: Callable) -> Any:
    """``predict(x, v, a, j, s, c, h)``: position, velocity and acceleration at the time h after the last step."""
    sixth_order = order == 6

    def predict(x, v, a, j, s, c, h):
        if sixth_order:
            ap = a + h * (j + h * (0.5 * s + h * SIXTH * c))
            vp = v + h * (a + h * (0.5 * j + h * (SIXTH * s + h * c / 24.0)))
            xp = x + h * (v + h * (0.5 * a + h * (SIXTH * j + h * (s / 24.0 + h * c / 120.0))))
        else:
            ap = a
            vp = v + h * (a + h * 0.5 * j)
            xp = x + h * (v + h * (0.5 * a + h * SIXTH * j))
        return xp, vp, ap

    return compile(predict)


def corrector(order: int, compile: Callable) -> Any:
    """``correct(x, v, a, j, s, a1, j1, s1, h)``: position and velocity at the end of a step of length h, and the derivatives
    s, c, d, e of the acceleration there, of order 2 to 5 (order 4: d = e = 0)."""
    sixth_order = order == 6

    def correct(x, v, a, j, s, a1, j1, s1, h):
        if sixth_order:  # a quintic through a, j, s at both ends, in τ from -1 to 1
            g = 0.5 * h
            difference, jp, jm = a1 - a, g * (j1 + j), g * (j1 - j)
            sp, sm = g * g * (s1 + s), g * g * (s1 - s)
            c4, c5 = (sp - jm) * 0.0625, (sm - 3.0 * (jp - difference)) * 0.0625
            c3 = 0.25 * (jp - difference) - 2.0 * c5
            per_g = 1.0 / g
            per_g3 = per_g * per_g * per_g
            c = (6.0 * c3 + 24.0 * c4 + 60.0 * c5) * per_g3
            d = (24.0 * c4 + 120.0 * c5) * per_g3 * per_g
            e = 120.0 * c5 * per_g3 * per_g * per_g
            v1 = v + g * (a1 + a) - 0.1 * h * h * (j1 - j) + h * h * h / 120.0 * (s1 + s)
            x1 = x + g * (v1 + v) - 0.1 * h * h * difference + h * h * h / 120.0 * (j1 + j)
            return x1, v1, s1, c, d, e
        c = (12.0 * (a - a1) + 6.0 * h * (j + j1)) / (h * h * h)
        start = (-6.0 * (a - a1) - h * (4.0 * j + 2.0 * j1)) / (h * h)  # the snap at the step's start
        vp = v + h * (a + h * 0.5 * j)
        xp = x + h * (v + h * (0.5 * a + h * SIXTH * j))
        v1 = vp + h * h * h * (SIXTH * start + h * c / 24.0)
        x1 = xp + h * h * h * h * (start / 24.0 + h * c / 120.0)
        return x1, v1, start + h * c, c, 0.0 * c, 0.0 * c

    return compile(correct)


def step_length(order: int, root: Callable, compile: Callable) -> Any:
    """``length(a, j, s, c, d, e, eta)`` from the squared sizes of the acceleration and its derivatives; :data:`FOREVER` if
    no force acts.

    Order 4: √(η (a s + j²)/(j c + s²)) (Aarseth 1985); order 6: η ((a s + j²)/(c e + d²))^(1/6) (Nitadori & Makino 2008).
    """
    sixth_order = order == 6

    def length(a, j, s, c, d, e, eta):
        if a + j + s == 0.0:
            return FOREVER
        above = root(a * s) + j
        if sixth_order:
            return min(eta * (above / (root(c * e) + d)) ** SIXTH, FOREVER)
        return min(root(eta * above / (root(j * c) + s)), FOREVER)

    return compile(length)


class StepChoice(NamedTuple):
    """How steps become powers of two of ticks.

    Attributes:
        in_ticks: ``(h, tick, most)``: the largest power of two of ticks that is at most h and ``most``; 0 if h is shorter
            than a tick or not a number.
        following: ``(required, step, now, tick, largest)``: the next step of a body whose step ends now.
    """

    in_ticks: Any
    following: Any


def step_choice(compile: Callable) -> StepChoice:
    """The functions of a :class:`StepChoice`."""

    @compile
    def in_ticks(h, tick, most):
        found = most
        while found > 0 and not found * tick <= h:
            found >>= 1
        return found

    @compile
    def following(required, step, now, tick, largest):
        most = max(1, min(2 * step, largest))  # a body that is shown at an earlier time makes a step back
        while now & (most - 1):  # a longer step begins at its own multiples only
            most >>= 1
        return in_ticks(required, tick, most)

    return StepChoice(in_ticks, following)


def pair_perturbation(root: Callable, compile: Callable) -> Any:
    """``perturbs(d2, v2, heavy, m)``: how strongly and how soon a body of mass m, at the squared distance d2 with the
    squared speed v2, perturbs a pair of mass ``heavy``: max(M, 2 m)/r³ and (v/r)²."""

    def perturbs(d2, v2, heavy, m):
        per_r2 = 1.0 / d2
        return max(heavy, 2.0 * m) * per_r2 * root(per_r2), v2 * per_r2

    return compile(perturbs)
