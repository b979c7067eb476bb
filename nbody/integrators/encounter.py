"""Names the pair of bodies that makes steps too short, for error messages."""

from typing import Any

import numpy as np


def nearest_pair(state: Any) -> str:
    """The body with the largest acceleration and its nearest neighbour, as a clause; empty for a single body."""
    if state.count < 2:
        return ""
    size = np.linalg.norm(state.acceleration.astype(np.float64), axis=1)
    i = int(np.argmax(np.where(np.isfinite(size), size, np.inf)))
    distance = np.linalg.norm((state.position - state.position[i]).astype(np.float64), axis=1)
    distance[i] = np.inf
    j = int(np.argmin(distance))
    first, second = sorted((i, j))
    return f": particles {first} and {second} (counted from 0) are {distance[j]:g} apart"
