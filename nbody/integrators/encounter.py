"""Names the pair of bodies that makes steps too short, for error messages."""

import numpy as np

from nbody.integrators.integrator import Motion
from nbody.state import Want


def nearest_pair(motion: Motion, i: int | None = None) -> str:
    """Body i (by default the one with the largest acceleration) and its nearest neighbour, as a clause; empty for a single
    body."""
    state = motion.state
    if state.count < 2:
        return ""
    if i is None:
        motion.evaluate(Want.ACCELERATION)
        size = np.linalg.norm(state.forces()[0].astype(np.float64), axis=1)
        i = int(np.argmax(np.where(np.isfinite(size), size, np.inf)))
    arrays = state.arrays()
    position = arrays["body"][:, :3] if "body" in arrays else arrays["position"]
    distance = np.linalg.norm(position.astype(np.float64) - position[i], axis=1)
    distance[i] = np.inf
    j = int(np.argmin(distance))
    first, second = sorted((i, j))
    return f": particles {first} and {second} (counted from 0) are {distance[j]:g} apart"
