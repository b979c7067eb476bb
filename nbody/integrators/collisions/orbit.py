"""When a body on its Kepler orbit about another one first touches it in a step, in closed form.

With r₀, η, β and ζ of :mod:`nbody.integrators.solvers.kepler`, the distance after the universal variable X is
r₀ + η G₁ + ζ G₂. Let u = G₁(X/2)/G₀(X/2), which is tan(√β X/2)/√β on an ellipse, X/2 on a parabola and
tanh(√-β X/2)/√-β on a hyperbola. Then
G₁ = 2u/(1 + β u²) and G₂ = 2u²/(1 + β u²), and the orbit is at the distance R where

    (2μ - β (r₀ + R)) u² + 2η u + r₀ - R = 0.

The first of the two passages is u = (r₀ - R)/(√D - η) with D = η² - (r₀ - R)(2μ - β (r₀ + R)); a negative u on an ellipse
lies beyond the apocentre. If D < 0, the pericentre is farther away than R. Kepler's equation gives the time. (Half-angle
formulas of the universal functions: Stumpff 1962; Battin 1999, chapter 4.)

Lengths of time are in units of the step: velocities are way per step, and μ = G (m₁ + m₂) h² for a step of length h.
"""

import math

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.integrators.solvers.kepler import kepler_step, time_at

NEVER = 2.0
"""The time of a contact that does not happen; times in a step go from 0 to 1."""


@inner
def size2(rows, k):
    """The square of the length of row k of (K, 3)."""
    return rows[k, 0] * rows[k, 0] + rows[k, 1] * rows[k, 1] + rows[k, 2] * rows[k, 2]


@inner
def orbit_contact(relative, radius, begin, mu):
    """The first moment from ``begin`` on at which the distance is not larger than ``radius``; NEVER if there is none.

    Args:
        relative: (4, 3) the relative path as a cubic (:func:`.contact.paths`): its first two control points are the
            position and velocity at the beginning of the step, the last one is the position at its end.
        radius, begin: the sum of the radii, and a time in the step.
        mu: G (m₁ + m₂) h².
    """
    r0 = np.sqrt(size2(relative, 0))
    if r0 <= radius:
        return begin
    eta, v2 = 0.0, 0.0
    for c in range(3):
        v = 3.0 * (relative[1, c] - relative[0, c])
        eta, v2 = eta + relative[0, c] * v, v2 + v * v
    beta, gap = 2.0 * mu / r0 - v2, r0 - radius
    zeta = mu - beta * r0
    D = eta * eta - gap * (2.0 * mu - beta * (r0 + radius))
    if D >= 0.0:
        u, root, X = gap / (np.sqrt(D) - eta), np.sqrt(abs(beta)), np.nan
        if beta > 0.0:
            angle = math.atan(root * u)
            X = 2.0 * (angle if angle > 0.0 else angle + np.pi) / root
        elif 0.0 < root * u < 1.0:
            X = 2.0 * math.atanh(root * u) / root
        elif beta == 0.0 and u > 0.0:
            X = 2.0 * u
        time = time_at(X, r0, eta, zeta, beta)
        if time <= 1.0:
            return max(begin, time)
    return 1.0 if size2(relative, 3) <= radius * radius else NEVER  # other forces have brought it here


@compute.kernel("cpu")
def _drift(x, v, mu, time):
    kepler_step(0, x, v, mu, time)


def orbit_moment(relative: np.ndarray, mu: float, s: float) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity, (3,) each, at the moment s on the orbit of a relative path; see :func:`orbit_contact`."""
    x, v = relative[0].reshape(3, 1).copy(), 3.0 * (relative[1] - relative[0]).reshape(3, 1)
    _drift(x, v, mu, s)
    return x[:, 0], v[:, 0]
