"""Wisdom and Holman's maps of the systems of an ensemble, divided among the cores."""

from typing import NamedTuple

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.integrators.solvers.jacobi_map import (
    MapMoves,
    begin,
    distances,
    from_jacobi,
    map_moves,
    move,
    planets_of,
    present,
)
from nbody.integrators.solvers.systems.arrays import closest_pair, copy, is_finite
from nbody.integrators.solvers.systems.chunks import divided
from nbody.integrators.solvers.systems.scheme import DONE, ENCOUNTER, NOT_FINITE, by_components
from nbody.state.host import HostState


class SystemMaps(NamedTuple):
    """Positions and velocities of S systems, (S, 3, n) each, which are computed from the maps' coordinates X and V or become
    these; and G times the masses, (S, n)."""

    x: np.ndarray
    v: np.ndarray
    X: np.ndarray
    V: np.ndarray
    m: np.ndarray


class HostMaps:
    """:class:`.wisdom_holman.Maps` of systems whose state is on the host.

    Args:
        state: the bodies; its columns ``map_position`` and ``map_velocity`` are the maps' coordinates.
        mass: (S, n) G times the masses, in the order of the maps.
        order: (S, n) the bodies in that order.
        corrector, encounter: see :class:`~nbody.integrators.solvers.wisdom_holman.WisdomHolman`.
    """

    def __init__(
        self, state: HostState, mass: np.ndarray, order: np.ndarray, dt: float, corrector: int, encounter: float
    ) -> None:
        self._state, self._mass, self._order = state, mass, order
        self._moves, self._encounter = map_moves(dt, corrector), encounter

    def begin(self, x: np.ndarray, v: np.ndarray) -> None:
        self._keep(*coordinates(x, v, self._mass, self._moves))

    def advance(self, steps: int, made: np.ndarray, status: np.ndarray, closest: np.ndarray) -> None:
        state, (count, n) = self._state, self._mass.shape
        X, V = (
            by_components(rows.reshape(count, n, 3))
            for rows in state.values("map_position", "map_velocity", copy=False)
        )
        x, v = np.empty_like(X), np.empty_like(V)
        systems, ends = SystemMaps(x, v, X, V, self._mass), (made, status, closest)
        divided(maps, count, systems, self._moves, self._encounter, steps, ends)
        self._keep(X, V)
        for own, found in ((state.position, x), (state.velocity, v)):
            rows = own.reshape(count, n, -1)
            np.put_along_axis(rows, self._order[:, :, None], found.transpose(0, 2, 1)[:, :, : rows.shape[2]], axis=1)

    def _keep(self, X: np.ndarray, V: np.ndarray) -> None:
        columns = self._state.values("map_position", "map_velocity", copy=False)
        for rows, found in zip(columns, (X, V), strict=True):
            rows[...] = found.transpose(0, 2, 1).reshape(-1, 3)


def coordinates(x: np.ndarray, v: np.ndarray, mass: np.ndarray, moves: MapMoves) -> tuple[np.ndarray, np.ndarray]:
    """The maps' coordinates of positions and velocities (S, 3, n) and masses (S, n)."""
    X, V = np.empty_like(x), np.empty_like(v)
    none = np.zeros(len(mass), np.int64)
    divided(maps, len(mass), SystemMaps(x, v, X, V, mass), moves, 0.0, -1, (none, none, np.zeros(len(mass))))
    return X, V


@inner
def advance_one(x, v, X, V, moves, planets, steps, made, closest):
    """Make up to ``steps`` steps of one system. Returns what has ended it, the steps made, and the shortest distance."""
    old_X, old_V, status = X.copy(), V.copy(), DONE
    distances(X, planets.distance)
    for _ in range(steps):
        copy(X, old_X)
        copy(V, old_V)
        move(X, V, moves.step, planets)
        if not (is_finite(X) and is_finite(V)):
            copy(old_X, X)
            copy(old_V, V)
            status = NOT_FINITE
            break
        made += 1
        closest = min(closest, closest_pair(planets.x))
        if planets.met[0]:
            status = ENCOUNTER
            break
    present(X, V, moves.present, planets, x, v)
    if not (is_finite(x) and is_finite(v)):  # a system that has ended: without the last correction
        from_jacobi(X, planets.m, planets.inner, x)
        from_jacobi(V, planets.m, planets.inner, v)
    return status, made, closest


@compute.kernel("cpu")
def maps(first, last, bodies, moves, hill, steps, ends):
    """Make ``steps`` steps of the systems ``first`` … ``last`` - 1; with ``steps`` -1 compute their coordinates.

    Args:
        bodies: :class:`SystemMaps`.
        moves: :class:`.MapMoves`.
        hill: how close planets may come, in Hill radii.
        ends: (S,) each, the steps so far, what has ended the system, and the shortest distance, in the middle of steps.
    """
    x, v, X, V, m = bodies
    made, status, closest = ends
    for s in range(first, last):
        planets = planets_of(m[s], hill, 0.0)
        if steps < 0:
            begin(x[s], v[s], X[s], V[s], moves.begin, planets)
        else:
            more = steps if status[s] == DONE else 0
            ended, made[s], closest[s] = advance_one(x[s], v[s], X[s], V[s], moves, planets, more, made[s], closest[s])
            if more:
                status[s] = ended
