"""Kepler's step of eight bodies at a time, in the lanes of vectors. Formulas: :mod:`.kepler`.

Time is a function of the root X, whose derivatives are known where its value is: r, η G₀ + ζ G₁ and ζ G₀ - β η G₁. The first
guess is the inverse series of order 4 in h, and so is each correction, whose error is of the fourth power. Two evaluations
of Stumpff's functions and three divisions suffice for a tenth of a period; after the last one the functions move to the new
X by their own Taylor series.
"""

from nbody.compute.compiling.cpu_inner import inner
from nbody.compute.in_kernels.cpu_vectors import any_of, choose, fma, root
from nbody.integrators.solvers.kepler import SERIES_2, SERIES_3, SERIES_4, SERIES_5, changed

part = inner(forceinline=True, _nrt=False)

FARTHEST = 1.0
"""The largest β X² for which nine terms of Stumpff's series suffice: a radian of an orbit."""

CONVERGED = 1e-5
"""The relative change of X after which no other evaluation follows; the next one would be of its fourth power."""

MOST = 6

SIXTH_REST = 9.25185853854297e-18
"""1/6 without the float64 1/6. (Without it c₃ has an error of one sign, and an orbit's energy drifts by 3e-18 per step.)"""


@part
def series(z):
    """c₂ and c₃, the even and the odd powers apart: half as many operations wait for each other."""
    w = z * z
    a = fma(w, fma(w, fma(w, fma(w, SERIES_2[8], SERIES_2[6]), SERIES_2[4]), SERIES_2[2]), SERIES_2[0])
    b = fma(w, fma(w, fma(w, SERIES_2[7], SERIES_2[5]), SERIES_2[3]), SERIES_2[1])
    c = fma(w, fma(w, fma(w, fma(w, SERIES_3[8], SERIES_3[6]), SERIES_3[4]), SERIES_3[2]), SIXTH_REST)
    d = fma(w, fma(w, fma(w, SERIES_3[7], SERIES_3[5]), SERIES_3[3]), SERIES_3[1])
    return fma(z, b, a), fma(z, d, c) + SERIES_3[0]


@part
def evaluated(X, h, r0, eta, zeta, beta):
    """β X², G₀ … G₃ at X, and the change of X to the root by the inverse series."""
    X2 = X * X
    z = beta * X2
    c2, c3 = series(z)
    g1, g2, g3 = X * fma(-z, c3, 1.0), X2 * c2, X2 * X * c3
    g0 = fma(-beta, g2, 1.0)
    late = fma(zeta, g3, fma(eta, g2, fma(r0, X, -h)))
    per_r = 1.0 / fma(zeta, g2, fma(eta, g1, r0))
    a, b = fma(zeta, g1, eta * g0) * per_r, fma(-beta * eta, g1, zeta * g0) * per_r
    d = -late * per_r
    change = fma(d * d, fma(d, fma(0.5 * a, a, b * (-1.0 / 6.0)), -0.5 * a), d)
    return z, g0, g1, g2, g3, change


@part
def lane_solution(x, y, z, vx, vy, vz, mu, h):
    """What :func:`lane_moved` and ``changed`` of :class:`.KeplerFunctions` need of a step; and where it is wrong."""
    r0 = root(fma(x, x, fma(y, y, z * z)))
    per_r0 = 1.0 / r0
    beta = fma(2.0 * mu, per_r0, -fma(vx, vx, fma(vy, vy, vz * vz)))
    eta, zeta = fma(x, vx, fma(y, vy, z * vz)), fma(-beta, r0, mu)
    s, a, b = h * per_r0, eta * per_r0, zeta * per_r0
    fourth = a * fma(-0.625 * a, a, fma(5.0 / 12.0, b, beta * (1.0 / 24.0)))
    X = s * fma(s, fma(s, fma(s, fourth, fma(0.5 * a, a, b * (-1.0 / 6.0))), -0.5 * a), 1.0)
    far, g0, g1, g2, g3, change = evaluated(X, h, r0, eta, zeta, beta)
    moving = abs(change) > CONVERGED * abs(X)
    for _ in range(MOST):
        if not any_of(moving):
            break
        X = choose(moving, X + change, X)
        far, g0, g1, g2, g3, change = evaluated(X, h, r0, eta, zeta, beta)
        moving = abs(change) > CONVERGED * abs(X)
    half, third = 0.5 * change, change * (1.0 / 3.0)
    ahead = fma(third, g0, g1)
    bent = beta * g1
    g3 = fma(change, fma(half, ahead, g2), g3)
    g2 = fma(change, fma(half, fma(-third, bent, g0), g1), g2)
    g1 = fma(change, fma(-half * beta, ahead, g0), g1)
    r = fma(zeta, g2, fma(eta, g1, r0))
    wrong = moving | (abs(far) > FARTHEST)
    return (r0, per_r0, eta, zeta, beta, X + change, g1, g2, g3, h, r, 1.0 / r), wrong


@part
def lane_moved(x, y, z, vx, vy, vz, mu, solution):
    """Positions and velocities after a step."""
    _, per_r0, _, _, _, _, g1, g2, g3, h, _, per_r = solution
    f, g = -mu * g2 * per_r0, fma(-mu, g3, h)
    df, dg = -mu * g1 * per_r0 * per_r, -mu * g2 * per_r
    return (
        x + fma(f, x, g * vx), y + fma(f, y, g * vy), z + fma(f, z, g * vz),
        vx + fma(df, x, dg * vx), vy + fma(df, y, dg * vy), vz + fma(df, z, dg * vz),
    )  # fmt: skip


@part
def lane_changed(at, change, mu, rate, solution):
    """The tangent vectors after a step; see :class:`.KeplerFunctions`."""
    beta, X = solution[4], solution[5]
    X2 = X * X
    z = beta * X2
    w = z * z
    a = fma(w, fma(w, fma(w, fma(w, SERIES_4[8], SERIES_4[6]), SERIES_4[4]), SERIES_4[2]), SERIES_4[0])
    b = fma(w, fma(w, fma(w, SERIES_4[7], SERIES_4[5]), SERIES_4[3]), SERIES_4[1])
    c = fma(w, fma(w, fma(w, fma(w, SERIES_5[8], SERIES_5[6]), SERIES_5[4]), SERIES_5[2]), SERIES_5[0])
    d = fma(w, fma(w, fma(w, SERIES_5[7], SERIES_5[5]), SERIES_5[3]), SERIES_5[1])
    g4, g5 = X2 * X2 * fma(z, b, a), X2 * X2 * X * fma(z, d, c)
    return changed(at, change, mu, -0.5 * rate, g4, g5, solution)
