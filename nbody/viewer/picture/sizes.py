"""Sizes of the bodies: for each body a factor of its width and a factor of its light, (N, 2) float32."""

import numpy as np

from nbody.viewer.picture.look import FEW

Array = np.ndarray

SMALLEST = 0.3
"""The width of the lightest body, in units of the heaviest one's: smaller discs could not be seen."""


def automatic(mass: Array) -> Array | None:
    """By mass up to :data:`FEW` bodies, else equal."""
    return by_mass(mass) if len(mass) <= FEW else None


def equal(mass: Array) -> Array | None:
    """None: no body differs."""
    return None


def by_mass(mass: Array) -> Array | None:
    """The radius grows with the cube root of the mass, as that of spheres of one density; the surface is equally bright."""
    width = np.cbrt(_relative(mass)).clip(SMALLEST, 1.0)
    return np.stack([width, width**2 / np.mean(width**2)], axis=1).astype(np.float32)


def by_flux(mass: Array) -> Array | None:
    """Light in proportion to the mass, from discs of one size."""
    relative = _relative(mass)
    return np.stack([np.ones(len(mass)), relative / max(relative.mean(), 1e-30)], axis=1).astype(np.float32)


def _relative(mass: Array) -> Array:
    mass = np.nan_to_num(np.abs(mass), nan=0.0, posinf=0.0)
    return mass / mass.max() if mass.max(initial=0.0) > 0 else np.ones(len(mass))
