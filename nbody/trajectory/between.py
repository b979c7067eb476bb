"""The bodies of a recording between two frames: the cubic that has their positions and velocities at both (Hermite)."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nbody.errors import InputError
from nbody.particles import Particles

if TYPE_CHECKING:
    from nbody.trajectory.reader import Trajectory

Array = np.ndarray


def bodies_between(run: "Trajectory", time: float) -> Particles:
    """The bodies at a time; see :meth:`nbody.trajectory.reader.Trajectory.at`."""
    k = _frame_before(run, time)
    found = run.particles(k)
    if found.time == time:
        return found
    h, x0, v0, x1, v1 = _ends(run, k)
    s = (time - found.time) / h
    # With d = x1 - x0 - h v0 and w = h (v1 - v0): x = x0 + h v0 s + (3 d - w) s² + (w - 2 d) s³.
    d, w = x1 - x0 - h * v0, h * (v1 - v0)
    x = x0 + (h * v0 + ((3 * d - w) + (w - 2 * d) * s) * s) * s
    v = v0 + (2 * (3 * d - w) + 3 * (w - 2 * d) * s) * s / h
    alive = run.left(k).alive
    return replace(found, position=x[alive], velocity=v[alive], time=float(time))


def error_between(run: "Trajectory", time: float) -> Array:
    """The error of the positions; see :meth:`nbody.trajectory.reader.Trajectory.error_at`."""
    k = _frame_before(run, time)
    if len(run) < 3:
        raise InputError(f"{run.path}: the error between two frames follows from a third one, and there are {len(run)}")
    alive = run.left(k).alive
    if time == run.time[k]:
        return np.zeros(np.count_nonzero(alive))
    rates = {n: _third_derivative(run, n) for n in (k - 1, k, k + 1) if 0 <= n < len(run) - 1}
    middle = {n: (run.time[n] + run.time[n + 1]) / 2 for n in rates}
    fourth = [(rates[n] - rates[k]) / (middle[n] - middle[k]) for n in rates if n != k]
    h = run.time[k + 1] - run.time[k]
    s = (time - run.time[k]) / h
    size = np.max([np.linalg.norm(each, axis=1) for each in fourth], axis=0)
    found: Array = size[alive] * (h * h * s * (1 - s)) ** 2 / 24
    return found


def _frame_before(run: "Trajectory", time: float) -> int:
    """The last frame not after a time. Raises InputError if there is none, or none after it."""
    if not (math.isfinite(time) and len(run) and run.time[0] <= time <= run.time[-1]):
        span = f"from t = {run.time[0]:g} to {run.time[-1]:g}" if len(run) else "at no time"
        raise InputError(f"{run.path}: at: the recording has frames {span}, got {time:g}")
    return int(np.searchsorted(run.time, time, side="right")) - 1


def _ends(run: "Trajectory", k: int) -> tuple[float, Array, Array, Array, Array]:
    """The time between frames ``k`` and ``k`` + 1, and positions and velocities at both, in float64."""
    rows = (column[n].astype(np.float64) for n in (k, k + 1) for column in (run.position, run.velocity))
    x0, v0, x1, v1 = rows
    return float(run.time[k + 1] - run.time[k]), x0, v0, x1, v1


def _third_derivative(run: "Trajectory", k: int) -> Array:
    """That of the cubic after frame ``k``, (N, D)."""
    h, x0, v0, x1, v1 = _ends(run, k)
    return (12 * (x0 - x1) + 6 * h * (v0 + v1)) / h**3
