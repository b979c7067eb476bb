"""The exact motion of two bodies over a time step, in universal variables, for kernels (Stumpff 1962; Rein & Tamayo 2015).

With the separation x, velocity v and μ = G(m₁ + m₂), let r₀ = |x|, η = x·v, β = 2μ/r₀ - v² and ζ = μ - β r₀. The time step h
determines X through r₀ X + η G₂(X) + ζ G₃(X) = h, where G_k = X^k c_k(β X²) with Stumpff's functions c_k. Then

    x' = x (1 - μ G₂/r₀) + v (h - μ G₃),    v' = v (1 - μ G₂/r) - x μ G₁/(r₀ r),    r = r₀ + η G₁ + ζ G₂,

for every conic, forward and backward in time.
"""

import math

import numpy as np
from numba import njit

from nbody.fields.post_newtonian_kernel import STRICT

SMALL = 0.1
"""Stumpff's series is used up to this |z|; its terms up to z⁶ leave an error below 1e-18. Larger arguments are quartered."""

SERIES_2 = tuple((-1.0) ** k / math.factorial(2 * k + 2) for k in range(7))
SERIES_3 = tuple((-1.0) ** k / math.factorial(2 * k + 3) for k in range(7))
"""The coefficients of c₂(z) and c₃(z)."""

MOST_NEWTON, MOST_DOUBLINGS, MOST_HALVINGS, MOST_QUARTERINGS = 12, 60, 1200, 600


@njit(error_model="numpy", fastmath=STRICT, inline="always")
def stumpff(z):
    """c₁, c₂ and c₃ of z."""
    quarterings = 0
    while abs(z) > SMALL and quarterings < MOST_QUARTERINGS:
        z *= 0.25
        quarterings += 1
    c2, c3 = SERIES_2[6], SERIES_3[6]
    c2, c3 = c2 * z + SERIES_2[5], c3 * z + SERIES_3[5]
    c2, c3 = c2 * z + SERIES_2[4], c3 * z + SERIES_3[4]
    c2, c3 = c2 * z + SERIES_2[3], c3 * z + SERIES_3[3]
    c2, c3 = c2 * z + SERIES_2[2], c3 * z + SERIES_3[2]
    c2, c3 = c2 * z + SERIES_2[1], c3 * z + SERIES_3[1]
    c2, c3 = c2 * z + SERIES_2[0], c3 * z + SERIES_3[0]
    c1 = 1.0 - z * c3
    if quarterings:
        c0 = 1.0 - z * c2
        for _ in range(quarterings):
            c3 = 0.25 * (c2 + c0 * c3)
            c2 = 0.5 * c1 * c1
            c1 = c0 * c1
            c0 = 2.0 * c0 * c0 - 1.0
    return c1, c2, c3


@njit(error_model="numpy", fastmath=STRICT)
def time_at(X, r0, eta, zeta, beta):
    """The time that belongs to X; it grows with X, at the rate r."""
    _, c2, c3 = stumpff(beta * X * X)
    return X * (r0 + X * (eta * c2 + zeta * c3 * X))


@njit(error_model="numpy", fastmath=STRICT)
def bisected(h, r0, eta, zeta, beta, reach):
    """The root X on the side of ``reach``, by bisection: for orbits on which Newton's iteration fails."""
    sign = np.copysign(1.0, h)
    for _ in range(MOST_DOUBLINGS):
        if sign * time_at(reach, r0, eta, zeta, beta) >= sign * h:
            break
        reach *= 2.0
    near, far = 0.0, reach
    for _ in range(MOST_HALVINGS):
        middle = 0.5 * (near + far)
        if middle in (near, far):
            return middle
        if sign * time_at(middle, r0, eta, zeta, beta) < sign * h:
            near = middle
        else:
            far = middle
    return middle


@njit(error_model="numpy", fastmath=STRICT)
def kepler_step(i, x, v, mu, h):
    """Move body i of x and v, (3, N), by the time h on its conic about a centre of strength ``mu``. Returns the distance."""
    x0, y0, z0, vx, vy, vz = x[0, i], x[1, i], x[2, i], v[0, i], v[1, i], v[2, i]
    r0 = np.sqrt(x0 * x0 + y0 * y0 + z0 * z0)
    v2 = vx * vx + vy * vy + vz * vz
    eta = x0 * vx + y0 * vy + z0 * vz
    beta = 2.0 * mu / r0 - v2
    zeta = mu - beta * r0
    per_r0 = 1.0 / r0
    rest = h
    reach = rest * per_r0  # of the root X; found by doubling where the orbit is not closed
    if beta > 0.0:  # an ellipse: leave out whole periods
        root = np.sqrt(beta)
        period = 2.0 * np.pi * mu / (beta * root)
        if abs(h) > period:
            rest = h - period * np.floor(h / period)
        reach = np.copysign(2.0 * np.pi / root, rest)
    guess = rest * per_r0
    X = guess * (1.0 - 0.5 * guess * eta * per_r0)
    found = False
    for _ in range(MOST_NEWTON):
        c1, c2, c3 = stumpff(beta * X * X)
        g1, g2, g3 = c1 * X, c2 * X * X, c3 * X * X * X
        bend = eta * g1 + zeta * g2
        new = (X * bend - eta * g2 - zeta * g3 + rest) / (r0 + bend)
        found = abs(new - X) < 1e-9 * abs(new) or new == X  # Newton's next error is the square of this one
        X = new
        if found:
            break
    if not found:
        X = bisected(rest, r0, eta, zeta, beta, reach)
    c1, c2, c3 = stumpff(beta * X * X)
    g1, g2, g3 = c1 * X, c2 * X * X, c3 * X * X * X
    r = r0 + eta * g1 + zeta * g2
    per_r = 1.0 / r
    f, g = -mu * g2 * per_r0, rest - mu * g3
    df, dg = -mu * g1 * per_r0 * per_r, -mu * g2 * per_r
    x[0, i], x[1, i], x[2, i] = x0 + (f * x0 + g * vx), y0 + (f * y0 + g * vy), z0 + (f * z0 + g * vz)
    v[0, i], v[1, i], v[2, i] = vx + (df * x0 + dg * vx), vy + (df * y0 + dg * vy), vz + (df * z0 + dg * vz)
    return r
