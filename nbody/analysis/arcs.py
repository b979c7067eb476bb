"""Paths between frames that are far apart: arcs of Kepler's orbits about a star, where the bodies move on these."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nbody.diagnostics.orbits import elements, relative_motion
from nbody.errors import InputError
from nbody.initial.orbit import on_orbit
from nbody.particles import Particles
from nbody.trajectory import Trajectory

Array = np.ndarray

SPARSE = 0.1
"""Radians between two frames above which an arc replaces the chord, which is up to 0.1 % of the distance away from it."""

DIFFERENCE = 0.1
"""Of two orbits, in units of the distance: up to this the motion between two frames is taken for that on both."""

LATE = 0.3
"""A body may be before or behind its place on the orbit by this fraction of the way between two frames."""

POINTS, MOST = 128, 20_000
"""Points of a turn, and of a path: of longer paths some arcs are left out."""


def kepler_arcs(run: Trajectory, frames: Sequence[int], rows: Sequence[int]) -> dict[int, Array]:
    """Paths seen along z, (n, 2) by row, of those of the bodies ``rows`` that move far between two of the frames on orbits
    about a star or a binary star: the first body, or the first two, with more than half of the mass.

    An arc goes from the orbit at one frame over to that at the next one, so that it meets both positions; it makes one turn
    more if there are one or more between the frames. A straight line remains where these orbits differ by more than
    ``DIFFERENCE``, or the time does not fit the angle.
    """
    moving = np.array([row for row in rows if row > 0], int)
    if not len(moving) or len(frames) < 2 or run.mass[:2].sum() <= run.mass.sum() / 2:
        return {}
    try:
        moments, positions, velocities = [], run.position, run.velocity
        for frame in frames:  # merged bodies have no mass
            bodies = Particles(run.left(frame).mass, positions[frame], velocities[frame])
            moments.append((bodies.in_space()[0][moving], *relative_motion(bodies, moving, "inner")))
    except InputError:  # a damaged velocity: chords need none
        return {}
    position, x, v, mass = map(np.array, zip(*moments, strict=True))
    time = run.time[list(frames)]
    paths = {row: _path(position[:, k], x[:, k], v[:, k], run.G * mass[:, k], time) for k, row in enumerate(moving)}
    return {int(row): path for row, path in paths.items() if len(path) > len(frames)}


@np.errstate(invalid="ignore", divide="ignore")
def _path(position: Array, x: Array, v: Array, mu: Array, time: Array) -> Array:
    """The path (n, 2) through positions (T, 3) of a body that is at ``x`` from its focus, with the velocity ``v``."""
    orbit = elements(x, v, mu)
    f, degrees = np.radians(orbit.f), (orbit.inc, orbit.Omega, orbit.omega)
    shape = mu, orbit.q, orbit.e, *map(np.radians, degrees)

    def at(k: Any, f: Array) -> Array:
        mu, q, e, *angles = (each[k] for each in shape)
        return on_orbit(mu, q, e, f, *angles)[0]

    before, after = slice(None, -1), slice(1, None)
    turned = _angle(x[before], v[before], x[after])
    ellipse = orbit.e < 1
    beta = np.where(ellipse, orbit.e / (1 + np.sqrt(np.maximum(1 - orbit.e**2, 0))), 0.0)
    first, last = (_eccentric(each, beta[before]) for each in (f[before], f[before] + turned))
    mean = last - first - orbit.e[before] * (np.sin(last) - np.sin(first))
    phase = np.radians(orbit.n[before]) * np.diff(time)
    ahead = phase - mean
    turns = np.where(ellipse[before], np.round(ahead / (2 * np.pi)), 0)
    more = 2 * np.pi * np.clip(turns, -1, 1)
    apart = [
        np.linalg.norm(at(k, f[k] + way * turned) - x[to], axis=1) / np.linalg.norm(x[to], axis=1)
        for k, to, way in ((before, after, 1), (after, before, -1))
    ]
    on_time = (np.abs(ahead - 2 * np.pi * turns) < LATE * np.abs(phase)) | ~ellipse[before]
    curved = (np.max(apart, axis=0) < DIFFERENCE) & on_time & (np.abs(turned + more) > SPARSE)
    counts = np.where(curved, np.ceil(np.abs(turned + more) * POINTS / (2 * np.pi)).clip(0, 2 * POINTS), 1).astype(int)
    k = np.repeat(np.arange(len(counts)), counts)
    s = (np.arange(len(k)) - (np.cumsum(counts) - counts)[k]) / counts[k]
    # Equal steps of the eccentric anomaly: those of the true one are far apart at the apocentre.
    anomaly = _true(first[k] + s * (last - first + more)[k], beta[k])
    back = f[k + 1] - (f + np.append(turned + more, 0))[k] + anomaly
    focus = position - x
    path = (1 - s)[:, None] * (at(k, anomaly) + focus[k]) + s[:, None] * (at(k + 1, back) + focus[k + 1])
    path[s == 0] = position[k[s == 0]]
    if (stride := -(-len(path) // MOST)) > 1:
        path[curved[k] & (k % stride > 0)] = np.nan
    return np.concatenate([path, position[-1:]])[:, :2]


def _angle(x: Array, v: Array, to: Array) -> Array:
    """The angle from 0 to 2π, in the sense of the motion, between directions ``x`` and ``to``."""
    h = np.cross(x, v)
    ahead = np.cross(h / np.linalg.norm(h, axis=1, keepdims=True), x)
    return np.arctan2((ahead * to).sum(axis=1), (x * to).sum(axis=1)) % (2 * np.pi)


def _eccentric(f: Array, beta: Array) -> Array:
    """The eccentric anomaly, as many turns as ``f``; β = e/(1 + √(1-e²)) (Broucke & Cefola 1973)."""
    return f - 2 * np.arctan(beta * np.sin(f) / (1 + beta * np.cos(f)))


def _true(E: Array, beta: Array) -> Array:
    """The true anomaly, as many turns as ``E``."""
    return E + 2 * np.arctan(beta * np.sin(E) / (1 - beta * np.cos(E)))
