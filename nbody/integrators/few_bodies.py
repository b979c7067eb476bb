"""What schemes ask of a few bodies, and the forms of their arrays."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from nbody.errors import InputError
from nbody.forces.direct.cpu_few import inlines_sums
from nbody.forces.layers.fields import fields_of
from nbody.integrators.integrator import Motion
from nbody.law import Gravity
from nbody.state.host import HostState


def in_one_call(motion: Motion, in_fields: bool = False) -> bool:
    """True if a compiled loop makes the steps of a scheme: the engine's sums for few bodies can be a part of it.
    ``in_fields``: external fields can, too."""
    (engine, state), fields = motion, fields_of(motion.engine)
    return inlines_sums(engine, state) and (fields is None or (in_fields and fields.velocity_field is None))


def in_one_call_or_fields(motion: Motion) -> bool:
    """The same of a scheme whose loop computes external fields, too."""
    return in_one_call(motion, in_fields=True)


def few(motion: Motion) -> bool:
    """True if a step takes less time than a call from Python."""
    return motion.state.count <= motion.engine.can.few


def few_in_no_fields(motion: Motion) -> bool:
    """True if a step of bodies on which no external fields act takes less time than a call from Python."""
    return few(motion) and fields_of(motion.engine) is None


def per_c2(motion: Motion) -> float:
    """1/c² of the post-Newtonian term; 0 without it. Raises InputError if the bodies can't have it."""
    fields = fields_of(motion.engine)
    if fields is None or fields.velocity_field is None:
        return 0.0
    if not motion.state.values("mass", copy=False)[0].max() > 0:
        raise InputError("fields: post_newtonian needs a body with mass")
    return fields.velocity_field.strength()


@contextmanager
def map_coordinates(state: HostState) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The columns ``map_position`` and ``map_velocity`` as (3, N) arrays, which replace them after a ``with`` block."""
    columns = state.values("map_position", "map_velocity", copy=False)
    X, V = (np.ascontiguousarray(rows.T) for rows in columns)
    yield X, V
    for rows, found in zip(columns, (X, V), strict=True):
        rows[...] = found.T


def components(rows: np.ndarray) -> np.ndarray:
    """(N, D) rows as (3, N) components; in 2-D the third one is zero."""
    found = np.zeros((3, len(rows)))
    found[: rows.shape[1]] = rows.T
    return found


def require_star(mass: np.ndarray) -> None:
    """Raise an InputError unless body 0 is the heaviest: the need of maps, which move planets about a star. A star whose
    planets have all merged with it moves straight."""
    if mass[0] <= mass[1:].max(initial=0.0):
        raise InputError("initial: this scheme moves planets about a star; body 0 must be the heaviest")


def shortest_time(motion: Motion) -> float:
    """The shortest time scale of all pairs; infinity if there is none."""
    x, v, mass = motion.state.values("position", "velocity", "mass", copy=False)
    return float(shortest_times(x[None], v[None], mass[None], motion.engine.gravity)[0])


def shortest_times(x: np.ndarray, v: np.ndarray, m: np.ndarray, gravity: Gravity) -> np.ndarray:
    """The shortest time scale of the pairs of each system, min(r/|v|, √(r³/G(m_i + m_j))), with softened distances r: (S,)
    for (S, n, D) positions and velocities and (S, n) masses; infinity if there is none."""
    shortest = np.full(len(m), math.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(1, m.shape[1]):
            d, w = x[:, :i] - x[:, i : i + 1], v[:, :i] - v[:, i : i + 1]
            r2, mu = (d * d).sum(axis=2) + gravity.length2, gravity.G * (m[:, :i] + m[:, i : i + 1])
            times = np.where(r2 > 0, np.fmin(r2 / (w * w).sum(axis=2), r2**1.5 / mu), np.inf)
            shortest = np.fmin(shortest, np.sqrt(np.fmin.reduce(times, axis=1)))
    return shortest
