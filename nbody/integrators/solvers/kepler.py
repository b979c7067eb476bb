"""The exact motion of two bodies over a time step, in universal variables, for kernels (Stumpff 1962; Rein & Tamayo 2015).

With the separation x, velocity v and μ = G(m₁ + m₂), let r₀ = |x|, η = x·v, β = 2μ/r₀ - v² and ζ = μ - β r₀. The time step h
determines X through r₀ X + η G₂(X) + ζ G₃(X) = h, where G_k = X^k c_k(β X²) with Stumpff's functions c_k. Then

    x' = x (1 - μ G₂/r₀) + v (h - μ G₃),    v' = v (1 - μ G₂/r) - x μ G₁/(r₀ r),    r = r₀ + η G₁ + ζ G₂,

for every conic, forward and backward in time. The tangent map is the
derivative of these formulas, with ∂G_k/∂X = G_(k-1) and ∂G_k/∂β = (k G_(k+2) - X G_(k+1))/2. One text for both processors:
:func:`kepler_functions`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.post_newtonian import STRICT

TERMS = 9
"""Eight of Stumpff's series leave an error below 1e-18 up to |z| = 0.5, nine up to 1."""

SERIES_2 = tuple((-1.0) ** k / math.factorial(2 * k + 2) for k in range(TERMS))
SERIES_3 = tuple((-1.0) ** k / math.factorial(2 * k + 3) for k in range(TERMS))
SERIES_4 = tuple((-1.0) ** k / math.factorial(2 * k + 4) for k in range(TERMS))
SERIES_5 = tuple((-1.0) ** k / math.factorial(2 * k + 5) for k in range(TERMS))
"""The coefficients of c₂(z) … c₅(z)."""

MOST_NEWTON, MOST_DOUBLINGS, MOST_HALVINGS = 12, 60, 1200


class KeplerFunctions(NamedTuple):
    """Functions for kernels.

    Attributes:
        stumpff: ``(z)``, c₁, c₂ and c₃.
        time_at: ``(X, r0, eta, zeta, beta)``, the time that belongs to X, which grows with X at the rate r.
        step: ``(x, y, z, vx, vy, vz, mu, h)``, position and velocity after the time h on a conic, and the distance.
        solve: the same arguments; what ``moved`` and ``tangent`` need of the step.
        moved: ``(x, y, z, vx, vy, vz, mu, solution)``, the result of ``step``.
        tangent: ``(at, change, mu, h, rate, solution)``, the tangent vector after the step for the ``change`` before,
            if h grows with Kepler's energy at a ``rate`` (Mikkola & Innanen 1999); six numbers each, as ``at``.
        changed: ``(at, change, mu, stretch, g4, g5, solution)``, the same from G₄ and G₅, if h grows with β at a rate
            ``stretch``; numbers or vectors.
    """

    stumpff: Any
    time_at: Any
    step: Any
    solve: Any
    moved: Any
    tangent: Any
    changed: Any


def kepler_functions(
    compiled: Callable, roots: Callable, inverse: Callable, small: float, converged: float
) -> KeplerFunctions:
    """Kepler's step for a processor.

    Args:
        compiled: the decorator of its functions.
        roots: x → √x and 1/√x.
        inverse: x → 1/x.
        small: Stumpff's series is used up to this |z|, at most 0.5; larger arguments are quartered.
        converged: the relative change of the root X at which Newton's iteration ends: the next error is about its square.
    """

    @compiled
    def series(z):
        """c₂ and c₃."""
        c2, c3 = SERIES_2[7], SERIES_3[7]
        c2, c3 = c2 * z + SERIES_2[6], c3 * z + SERIES_3[6]
        c2, c3 = c2 * z + SERIES_2[5], c3 * z + SERIES_3[5]
        c2, c3 = c2 * z + SERIES_2[4], c3 * z + SERIES_3[4]
        c2, c3 = c2 * z + SERIES_2[3], c3 * z + SERIES_3[3]
        c2, c3 = c2 * z + SERIES_2[2], c3 * z + SERIES_3[2]
        c2, c3 = c2 * z + SERIES_2[1], c3 * z + SERIES_3[1]
        return c2 * z + SERIES_2[0], c3 * z + SERIES_3[0]

    @compiled
    def quadrupled(c0, c1, c2, c3):
        """c₀ … c₃ of 4 z."""
        return 2.0 * c0 * c0 - 1.0, c0 * c1, 0.5 * c1 * c1, 0.25 * (c2 + c0 * c3)

    @compiled
    def stumpff(z):
        quarterings = 0
        while small < abs(z) < math.inf:  # (a bound on their number is unrolled on a GPU: 600 times)
            z *= 0.25
            quarterings += 1
        c2, c3 = series(z)
        c1 = 1.0 - z * c3
        if quarterings:
            c0 = 1.0 - z * c2
            for _ in range(quarterings):
                c0, c1, c2, c3 = quadrupled(c0, c1, c2, c3)
        return c1, c2, c3

    @compiled
    def time_at(X, r0, eta, zeta, beta):
        _, c2, c3 = stumpff(beta * X * X)
        return X * (r0 + X * (eta * c2 + zeta * c3 * X))

    @compiled
    def bisected(h, r0, eta, zeta, beta, reach):
        """The root X on the side of ``reach``, by bisection: for orbits on which Newton's iteration fails."""
        sign = 1.0 if h >= 0.0 else -1.0
        near, far = 0.0, reach
        for _ in range(MOST_DOUBLINGS):
            if sign * time_at(far, r0, eta, zeta, beta) >= sign * h:
                break
            far *= 2.0
        middle = far
        for _ in range(MOST_HALVINGS):
            middle = 0.5 * (near + far)
            if near == middle or far == middle:
                break
            if sign * time_at(middle, r0, eta, zeta, beta) < sign * h:
                near = middle
            else:
                far = middle
        return middle

    @compiled
    def conic(x, y, z, vx, vy, vz, mu):
        r0, per_r0 = roots(x * x + y * y + z * z)
        beta = 2.0 * mu * per_r0 - (vx * vx + vy * vy + vz * vz)
        return r0, per_r0, x * vx + y * vy + z * vz, mu - beta * r0, beta

    @compiled
    def guessed(rest, per_r0, eta):
        guess = rest * per_r0
        return guess * (1.0 - 0.5 * guess * eta * per_r0)

    @compiled
    def improved(X, rest, r0, eta, zeta, c1, c2, c3):
        """The next X, by Newton's iteration, and True if it is the root."""
        g1, g2 = c1 * X, c2 * X * X
        bend = eta * g1 + zeta * g2
        per_r = inverse(r0 + bend)
        new = (X * bend - eta * g2 - zeta * (c3 * X * X * X) + rest) * per_r
        return new, abs(new - X) <= converged * abs(new)

    @compiled
    def solution(r0, per_r0, eta, zeta, beta, X, rest, c1, c2, c3):
        g1, g2, g3 = c1 * X, c2 * X * X, c3 * X * X * X
        r = r0 + (eta * g1 + zeta * g2)
        return r0, per_r0, eta, zeta, beta, X, g1, g2, g3, rest, r, inverse(r)

    @compiled
    def solve(x, y, z, vx, vy, vz, mu, h):
        r0, per_r0, eta, zeta, beta = conic(x, y, z, vx, vy, vz, mu)
        rest = h
        if beta > 0.0:  # an ellipse: leave out whole periods
            cubed = beta * beta * roots(beta)[1]
            if abs(h) * cubed > 2.0 * math.pi * mu:
                period = 2.0 * math.pi * mu / cubed
                rest = h - period * math.floor(h / period)
        X, found = guessed(rest, per_r0, eta), False
        for _ in range(MOST_NEWTON):
            c1, c2, c3 = stumpff(beta * X * X)
            X, found = improved(X, rest, r0, eta, zeta, c1, c2, c3)
            if found:
                break
        if not found:
            # Where the orbit is not closed, doubling finds how far the root may be.
            reach = math.copysign(2.0 * math.pi / math.sqrt(beta), rest) if beta > 0.0 else rest * per_r0
            X = bisected(rest, r0, eta, zeta, beta, reach)
        c1, c2, c3 = stumpff(beta * X * X)
        return solution(r0, per_r0, eta, zeta, beta, X, rest, c1, c2, c3)

    @compiled
    def moved(x, y, z, vx, vy, vz, mu, solution):
        _, per_r0, _, _, _, _, g1, g2, g3, rest, r, per_r = solution
        f, g = -mu * g2 * per_r0, rest - mu * g3
        df, dg = -mu * g1 * per_r0 * per_r, -mu * g2 * per_r
        return (
            x + (f * x + g * vx), y + (f * y + g * vy), z + (f * z + g * vz),
            vx + (df * x + dg * vx), vy + (df * y + dg * vy), vz + (df * z + dg * vz), r,
        )  # fmt: skip

    @compiled
    def step(x, y, z, vx, vy, vz, mu, h):
        return moved(x, y, z, vx, vy, vz, mu, solve(x, y, z, vx, vy, vz, mu, h))

    @compiled
    def further(X, beta, g2, g3):
        """G₄ and G₅."""
        X2 = X * X
        z = beta * X2
        if abs(z) > 0.5:  # the digits that the differences lose are few
            return (0.5 * X2 - g2) / beta, (SERIES_3[0] * X2 * X - g3) / beta
        c4, c5 = SERIES_4[7], SERIES_5[7]
        c4, c5 = c4 * z + SERIES_4[6], c5 * z + SERIES_5[6]
        c4, c5 = c4 * z + SERIES_4[5], c5 * z + SERIES_5[5]
        c4, c5 = c4 * z + SERIES_4[4], c5 * z + SERIES_5[4]
        c4, c5 = c4 * z + SERIES_4[3], c5 * z + SERIES_5[3]
        c4, c5 = c4 * z + SERIES_4[2], c5 * z + SERIES_5[2]
        c4, c5 = c4 * z + SERIES_4[1], c5 * z + SERIES_5[1]
        c4, c5 = c4 * z + SERIES_4[0], c5 * z + SERIES_5[0]
        return X2 * X2 * c4, X2 * X2 * X * c5

    @compiled
    def tangent(at, change, mu, h, rate, solution):
        X, g2, g3, rest = solution[5], solution[7], solution[8], solution[9]
        beta, stretch = solution[4], -0.5 * rate
        if h != rest:  # the whole periods that are left out
            stretch += 1.5 * (h - rest) / beta
        g4, g5 = further(X, beta, g2, g3)
        return changed(at, change, mu, stretch, g4, g5, solution)

    @compiled
    def changed(at, change, mu, stretch, g4, g5, solution):
        (x, y, z, vx, vy, vz), (dx, dy, dz, dvx, dvy, dvz) = at, change
        r0, per_r0, eta, zeta, beta, X, g1, g2, g3, rest, _, per_r = solution
        dr0 = (x * dx + y * dy + z * dz) * per_r0
        deta = dx * vx + dy * vy + dz * vz + x * dvx + y * dvy + z * dvz
        dbeta = -2.0 * (mu * per_r0 * per_r0 * dr0 + vx * dvx + vy * dvy + vz * dvz)
        dzeta = -beta * dr0 - r0 * dbeta
        b1, b2, b3 = 0.5 * (g3 - X * g2), g4 - 0.5 * X * g3, 0.5 * (3.0 * g5 - X * g4)
        time = stretch * dbeta
        dX = (time - X * dr0 - g2 * deta - g3 * dzeta - (eta * b2 + zeta * b3) * dbeta) * per_r
        dg1 = (1.0 - beta * g2) * dX + b1 * dbeta
        dg2, dg3 = g1 * dX + b2 * dbeta, g2 * dX + b3 * dbeta
        dr = dr0 + g1 * deta + eta * dg1 + g2 * dzeta + zeta * dg2
        f, g = -mu * g2 * per_r0, rest - mu * g3
        df, dg = -mu * g1 * per_r0 * per_r, -mu * g2 * per_r
        f_, g_ = -(f * dr0 + mu * dg2) * per_r0, time - mu * dg3
        df_ = -df * (dr0 * per_r0 + dr * per_r) - mu * dg1 * per_r0 * per_r
        dg_ = -(dg * dr + mu * dg2) * per_r
        return (
            dx + (f * dx + g * dvx) + (f_ * x + g_ * vx), dy + (f * dy + g * dvy) + (f_ * y + g_ * vy),
            dz + (f * dz + g * dvz) + (f_ * z + g_ * vz), dvx + (df * dx + dg * dvx) + (df_ * x + dg_ * vx),
            dvy + (df * dy + dg * dvy) + (df_ * y + dg_ * vy), dvz + (df * dz + dg * dvz) + (df_ * z + dg_ * vz),
        )  # fmt: skip

    return KeplerFunctions(stumpff, time_at, step, solve, moved, tangent, changed)


def _compiled(function: Callable) -> Any:
    return inner(function, fastmath=STRICT)


@_compiled
def _roots(x):
    root = math.sqrt(x)
    return root, 1.0 / root


@_compiled
def _inverse(x):
    return 1.0 / x


SMALL, CONVERGED = 0.1, 1e-9
"""Of the CPU. (With a ``small`` of 0.5 rounded coefficients change the energy of an orbit by 3e-18 in each of 10⁶ steps of
a twelfth of its period, always in the same direction; with 0.1 that is a random walk to 1e-13.)"""

_on_cpu = kepler_functions(_compiled, _roots, _inverse, SMALL, CONVERGED)
time_at, _step, _solve, _moved, _tangent, changed = _on_cpu[1:]


@_compiled
def kepler_step(i, x, v, mu, h):
    """Move body i of x and v, (3, N), by the time h on its conic about a centre of strength ``mu``. Returns the distance."""
    x[0, i], x[1, i], x[2, i], v[0, i], v[1, i], v[2, i], r = _step(
        x[0, i], x[1, i], x[2, i], v[0, i], v[1, i], v[2, i], mu, h
    )
    return r


@_compiled
def kepler_tangents(i, x, v, mu, h, rate, tangents):
    """As :func:`kepler_step`, and move the rows i of the tangent vectors, (M, 2, 3, N), by the linear map of the step; h
    grows with Kepler's energy at a ``rate``."""
    at = x[0, i], x[1, i], x[2, i], v[0, i], v[1, i], v[2, i]
    solution = _solve(*at, mu, h)
    for k in range(len(tangents)):
        dx, dv = tangents[k, 0], tangents[k, 1]
        dx[0, i], dx[1, i], dx[2, i], dv[0, i], dv[1, i], dv[2, i] = _tangent(
            at, (dx[0, i], dx[1, i], dx[2, i], dv[0, i], dv[1, i], dv[2, i]), mu, h, rate, solution
        )
    x[0, i], x[1, i], x[2, i], v[0, i], v[1, i], v[2, i], r = _moved(*at, mu, solution)
    return r
