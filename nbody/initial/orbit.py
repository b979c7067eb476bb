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
    return (
        x[..., None] * towards + y[..., None] * ahead,
        vx[..., None] * towards + vy[..., None] * ahead,
    )


def true_anomaly(mean_anomaly: Array | float, eccentricity: Array | float) -> Array:
    """The true anomaly of ellipses: Kepler's equation E − e sin E = M, solved by Newton's method to rounding."""
    mean, e = np.broadcast_arrays(np.asarray(mean_anomaly, float), np.asarray(eccentricity, float))
    mean = np.remainder(mean + np.pi, 2 * np.pi) - np.pi
    E = mean + np.copysign(0.85, mean) * e  # Danby's start, from which Newton's method converges for every e < 1
    for _ in range(50):
        step = (E - e * np.sin(E) - mean) / (1 - e * np.cos(E))
        E = E - step
        if (np.abs(step) < 1e-15 * (1 + np.abs(E))).all():
            break
    return 2 * np.arctan2(np.sqrt(1 + e) * np.sin(E / 2), np.sqrt(1 - e) * np.cos(E / 2))
