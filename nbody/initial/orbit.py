"""Kepler's orbits: from orbital elements to relative positions and velocities (Murray & Dermott 1999, chapter 2)."""

import numpy as np

Array = np.ndarray


def on_orbit(
    mu: Array | float,
    pericentre: Array | float,
    eccentricity: Array | float,
    true_anomaly: Array | float,
    inclination: Array | float = 0.0,
    node: Array | float = 0.0,
    argument: Array | float = 0.0,
) -> tuple[Array, Array]:
    """The position and velocity relative to the other body, for any conic (e < 1, 1 or more).

    Args:
        mu: G·(m₁ + m₂).
        pericentre: the smallest distance, a·(1 − e) for an ellipse.
        true_anomaly: the angle from the pericentre, in radians, as the others.
        inclination: of the orbit to the (x, y) plane.
        node: the longitude of the ascending node, from the x axis.
        argument: of the pericentre, from the node.

    Returns:
        Two arrays (…, 3).
    """
    mu, q, e, f = (np.asarray(each, float) for each in (mu, pericentre, eccentricity, true_anomaly))
    p = q * (1 + e)
    r = p / (1 + e * np.cos(f))
    speed = np.sqrt(mu / p)
    x, y = r * np.cos(f), r * np.sin(f)
    vx, vy = -speed * np.sin(f), speed * (e + np.cos(f))
    cw, sw, co, so = np.cos(argument), np.sin(argument), np.cos(node), np.sin(node)
    ci, si = np.cos(inclination), np.sin(inclination)
    towards = np.stack(np.broadcast_arrays(co * cw - so * sw * ci, so * cw + co * sw * ci, sw * si), axis=-1)
    ahead = np.stack(np.broadcast_arrays(-co * sw - so * cw * ci, -so * sw + co * cw * ci, cw * si), axis=-1)
    return (x[..., None] * towards + y[..., None] * ahead, vx[..., None] * towards + vy[..., None] * ahead)


def true_anomaly(mean_anomaly: Array | float, eccentricity: Array | float, apart: bool = False) -> Array:
    """The true anomaly, from the mean one n t with n = √(μ/|a|³), or √(μ/2q³) for a parabola, at the time t after the
    pericentre. ``apart``: each has the bits that it has alone, if all e < 1; else Newton's method ends for all together."""
    mean, e = np.broadcast_arrays(np.asarray(mean_anomaly, float), np.asarray(eccentricity, float))
    found = np.empty(mean.shape)
    for which, solve in ((e < 1, _on_ellipse), (e == 1, _on_parabola), (e > 1, _on_hyperbola)):
        if which.any():
            found[which] = solve(mean[which], e[which], apart)
    return found


def _on_ellipse(mean: Array, e: Array, apart: bool) -> Array:
    """Kepler's equation E − e sin E = M, solved by Newton's method to rounding."""
    mean = np.remainder(mean + np.pi, 2 * np.pi) - np.pi
    E = mean + np.copysign(0.85, mean) * e  # Danby's start, from which Newton's method converges for every e < 1
    ended = np.zeros(E.shape, bool)
    for _ in range(50):
        step = (E - e * np.sin(E) - mean) / (1 - e * np.cos(E))
        E = np.where(ended, E, E - step) if apart else E - step
        converged = np.abs(step) < 1e-15 * (1 + np.abs(E))
        ended |= converged
        if (ended if apart else converged).all():
            break
    return of_eccentric_anomaly(E, e)


def _on_parabola(mean: Array, e: Array, apart: bool) -> Array:
    """Barker's equation D + D³/3 = M, D = tan(f/2)."""
    return 2 * np.arctan(2 * np.sinh(np.arcsinh(1.5 * mean) / 3))


def _on_hyperbola(mean: Array, e: Array, apart: bool) -> Array:
    """e sinh F − F = M. From this start, which is nearer to the pericentre, the first step goes beyond F, and the others
    back."""
    F = np.arcsinh(mean / e)
    for _ in range(100):
        step = (e * np.sinh(F) - F - mean) / (e * np.cosh(F) - 1)
        F = F - step
        if (np.abs(step) < 1e-15 * (1 + np.abs(F))).all():
            break
    return of_eccentric_anomaly(F, e)


def of_eccentric_anomaly(anomaly: Array | float, eccentricity: Array | float) -> Array:
    """The true anomaly of conics of one kind: of ellipses from E, of parabolas from D = tan(f/2), of hyperbolas from F with
    tan(f/2) = √((e+1)/(e−1)) tanh(F/2)."""
    half, e = np.asarray(anomaly) / 2, np.asarray(eccentricity, float)
    if (e < 1).all():
        return 2 * np.arctan2(np.sqrt(1 + e) * np.sin(half), np.sqrt(1 - e) * np.cos(half))
    return 2 * np.arctan(np.sqrt((e + 1) / (e - 1)) * np.tanh(half) if (e > 1).all() else 2 * half)
