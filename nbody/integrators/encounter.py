"""The error of steps that become too short, with the pair of bodies that makes them so."""

import numpy as np

from nbody.errors import RunFailed
from nbody.integrators.integrator import Motion
from nbody.state import Outputs


def nearest_pair(motion: Motion, i: int | None = None) -> str:
    """Body i (by default the one with the largest acceleration) and its nearest neighbour, as a clause; empty if no
    other body is at a finite distance."""
    state = motion.state
    if i is None:
        motion.evaluate(Outputs.ACCELERATION)
        size = np.linalg.norm(state.values("acceleration")[0].astype(np.float64), axis=1)
        i = int(np.argmax(np.where(np.isfinite(size), size, np.inf)))
    [position] = state.values("position")
    distance = np.linalg.norm(position.astype(np.float64) - position[i], axis=1)
    distance[i] = np.nan
    if not np.isfinite(distance).any():
        return ""
    j = int(np.nanargmin(distance))
    first, second = sorted((i, j))
    return f": particles {first} and {second} (counted from 0) are {distance[j]:g} apart"


def too_short(motion: Motion, h: float, remedy: str) -> RunFailed:
    """The error of a step of the length ``h``, which is lost in the time or not finite; ``remedy``: what to give."""
    clock = motion.state.clock
    where = f"step {clock.step}: a time step of {h:g} at time {clock.time:g} can't be made{nearest_pair(motion)}"
    return RunFailed(f"{where}; give {remedy}")
