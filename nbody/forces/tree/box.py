"""The root cell of bodies, a cube around them, and the size of their bulk."""

from typing import NamedTuple

import numpy as np
from numba import prange

from nbody import compute

SAMPLE = 4096
"""Bodies from which the size of the bulk is taken."""

OUTSKIRTS = 1024.0
"""The root cell is at most this much larger than the cell that holds 90 % of the sample; bodies beyond are in its border
cells. So one body far away does not take the resolution of the keys from all others."""

CHUNKS = 32
"""Parts of the bodies that threads look through."""


class Box(NamedTuple):
    """The root cell: its lowest corner (3,) and its side."""

    low: np.ndarray
    side: float


def root_box(position: np.ndarray) -> tuple[Box, float]:
    """The root cell of bodies at ``position`` (N, D), a cube around them, without outliers; and the size of their bulk."""
    low, high = bounds(position)
    sample = position[:: max(1, len(position) // SAMPLE)].T.astype(np.float64, order="C")
    centre = _smallest(sample, 0.5)
    bulk = float(_smallest(np.abs(sample - centre[:, None]).max(0), 0.9))
    if bulk > 0:
        low, high = np.maximum(low, centre - OUTSKIRTS * bulk), np.minimum(high, centre + OUTSKIRTS * bulk)
    side = float((high - low).max())
    if not side > 0:
        side = max(1e-30, 1e-6 * float(np.abs(centre).max()))
    corner = np.zeros(3)
    corner[: len(low)] = low - 0.0005 * side
    return Box(corner, 1.001 * side), bulk or side


def _smallest(values: np.ndarray, fraction: float) -> np.ndarray:
    """The number in each row, or in a row, that is greater than this fraction of the others."""
    place = int(fraction * values.shape[-1])
    found: np.ndarray = np.partition(values, place)[..., place]
    return found


def bounds(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest of each coordinate, in float64."""
    extremes = np.zeros((2, CHUNKS, 3), position.dtype)
    find_extremes(position, extremes)
    dimensions = position.shape[1]
    low, high = extremes[0].min(0)[:dimensions], extremes[1].max(0)[:dimensions]
    return low.astype(np.float64), high.astype(np.float64)


def _find_extremes(position, extremes):
    """Those of each chunk. (Three components by name are vectors; a loop over them is not, and takes twice as long.)"""
    count, flat = len(position), position.shape[1] == 2
    size = -(-count // extremes.shape[1])
    for c in prange(extremes.shape[1]):
        first = min(c * size, count - 1)
        x0, y0, z0 = position[first, 0], position[first, 1], position[first, 1 if flat else 2]
        x1, y1, z1 = x0, y0, z0
        for i in range(first, min(first + size, count)):
            x, y, z = position[i, 0], position[i, 1], position[i, 1 if flat else 2]
            x0, x1 = (x if x < x0 else x0), (x if x > x1 else x1)
            y0, y1 = (y if y < y0 else y0), (y if y > y1 else y1)
            z0, z1 = (z if z < z0 else z0), (z if z > z1 else z1)
        extremes[0, c, 0], extremes[0, c, 1], extremes[0, c, 2] = x0, y0, z0
        extremes[1, c, 0], extremes[1, c, 1], extremes[1, c, 2] = x1, y1, z1


find_extremes = compute.kernel("cpu", parallel=True, fastmath={"nnan", "nsz"})(_find_extremes)
