"""The forces in a galaxy of softened bodies: a disc with a height, and spheres.

A pair has the potential −G m/√(r² + ε²). (A spline with the same ε is as deep.) A galaxy that is set up with Newton's law
and a razor-thin disc rotates too fast in the middle for these forces, and expands.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import j1

Array = np.ndarray

WAVES = 3000
"""Wave numbers of the disc's integral."""

LEVELS = 48
"""Heights, with the same mass each, that stand for the profile sech²(z/z₀)."""

SHELLS, REACH = 64, 300.0
"""Shells on either side of a radius, outwards up to this many softening lengths."""


def levels(height: float) -> Array:
    """(LEVELS,) heights of a disc sech²(z/z₀) with z₀ = ``height``."""
    return height * np.arctanh((2 * np.arange(LEVELS) + 1) / LEVELS - 1)


def distances(height: float, length: float) -> Array:
    """√((z − z′)² + ε²) of all pairs of levels, (LEVELS, LEVELS)."""
    z = levels(height)
    return np.hypot(z[:, None] - z, length)


def rotation_of_thick_disc(R: Array, height: float, length: float) -> Array:
    """v_c²(R), (K,), of an exponential disc with G = M = R_d = 1, z₀ = ``height``, ε = ``length``; the mean over the height.

    v_c² = R ∫ k J₁(kR) (1 + k²)^(−3/2) W(k) dk (Toomre 1963), where W is the mean of exp(−k √((z − z′)² + ε²)). Without
    height and softening W is 1, and v_c Freeman's."""
    k = np.linspace(0, 20, WAVES) ** 2
    distance, times = np.unique(distances(height, length).round(12), return_counts=True)
    mean = times @ np.exp(-np.outer(distance, k)) / LEVELS**2
    wave = k * (1 + k * k) ** -1.5 * mean
    grid = np.geomspace(R[0], R[-1], 200)
    return np.interp(R, grid, grid * np.trapezoid(wave * j1(np.outer(grid, k)), k, axis=1))


def vertical_pull(height: float, length: float) -> float:
    """<z K_z>/(π G Σ) of a sheet with the surface density Σ, which is σ_z² in equilibrium: z₀ without softening."""
    d = distances(height, length)
    return float((1 - (length / d) ** 2 if length else np.ones_like(d)).ravel() @ d.ravel()) / LEVELS**2


def softened_mass(r: Array, within: Callable[[Array], Array], length: float) -> Array:
    """r² times the attraction of a sphere with the mass ``within(s)`` inside of each radius s, at radii r, (K,). Without
    softening this is the mass within r.

    A shell with the radius s and the mass 1 has the potential −(a − b)/(2rs), a and b = √((r ± s)² + ε²)."""
    if length == 0:
        return within(r)
    step, r = np.linspace(0, 1, SHELLS + 1), r[:, None]
    inner = r - length * np.sinh(step[::-1] * np.arcsinh(r / length))  # from 0 to r, narrow near r
    outer = r + length * np.sinh(step * np.arcsinh(REACH))
    edges = np.maximum(np.concatenate([inner, outer[:, 1:]], axis=1), 1e-12 * length)
    s = (edges[:, 1:] + edges[:, :-1]) / 2
    a, b = np.hypot(r + s, length), np.hypot(r - s, length)
    fraction = ((a - b) - r * ((r + s) / a - (r - s) / b)) / (2 * s)
    return (fraction * np.diff(within(edges), axis=1)).sum(axis=1)
