"""Wisdom and Holman's maps of the systems of an ensemble, divided among the cores."""

from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.integrators.solvers.jacobi_map import inertial, moving
from nbody.integrators.solvers.map_bodies import FIRST, SITE, STAR, V, X, keep, planets_of, present_of
from nbody.integrators.solvers.megno import add_growth, begin_growth
from nbody.integrators.solvers.splitting import MapMoves, map_moves
from nbody.integrators.solvers.systems.arrays import closest_pair, copy, is_finite
from nbody.integrators.solvers.systems.chunks import divided
from nbody.integrators.solvers.systems.scheme import DONE, ENCOUNTER, NOT_FINITE, by_components
from nbody.integrators.tangents import Tangents, tangent_vectors
from nbody.state.host import HostState

move, begin, present = moving()


class SystemMaps(NamedTuple):
    """Positions and velocities of S systems, (S, 3, n) each, which are computed from the maps' coordinates X and V or become
    these; G times the masses, (S, n); tangent vectors (S, M, 2, 3, n), their numbers (S, M, 5), and ``varied`` of
    :class:`.MapBodies`."""

    x: np.ndarray
    v: np.ndarray
    X: np.ndarray
    V: np.ndarray
    m: np.ndarray
    tangents: np.ndarray
    numbers: np.ndarray
    varied: tuple


class HostMaps:
    """:class:`.wisdom_holman.Maps` of systems whose state is on the host.

    Args:
        state: the bodies; its columns ``map_position`` and ``map_velocity`` are the maps' coordinates.
        mass: (S, n) G times the masses, in the order of the maps.
        order: (S, n) the bodies in that order.
        chosen: the options of :class:`~nbody.integrators.solvers.wisdom_holman.WisdomHolman`.
        tangents: the tangent vectors of each system.
    """

    def __init__(
        self, state: HostState, mass: np.ndarray, order: np.ndarray, dt: float, chosen: Any, tangents: Tangents
    ) -> None:
        self._state, self._mass, self._order, self._tangents = state, mass, order, tangents
        self._moves, self._limits = map_moves(dt, chosen.corrector, chosen.splitting), chosen.limits

    def begin(self, x: np.ndarray, v: np.ndarray) -> None:
        with tangent_vectors(self._state, self._tangents.count, len(x)) as vectors:
            vectors[:] = first_vectors(self._tangents, self._state.dimensions, self._order)
            self._keep(*coordinates(x, v, self._mass, self._moves, vectors, self._tangents, self._limits))

    def advance(self, steps: int, made: np.ndarray, status: np.ndarray, closest: np.ndarray) -> None:
        state, (count, n) = self._state, self._mass.shape
        X, V = (
            by_components(rows.reshape(count, n, 3))
            for rows in state.values("map_position", "map_velocity", copy=False)
        )
        x, v = np.empty_like(X), np.empty_like(V)
        ends, tangents = (made, status, closest), self._tangents
        with tangent_vectors(state, tangents.count, count) as vectors:
            systems = SystemMaps(x, v, X, V, self._mass, vectors, tangents.numbers, tangents.varied)
            divided(maps, count, systems, self._moves, self._limits, steps, ends)
        self._keep(X, V)
        for own, found in ((state.position, x), (state.velocity, v)):
            rows = own.reshape(count, n, -1)
            np.put_along_axis(rows, self._order[:, :, None], found.transpose(0, 2, 1)[:, :, : rows.shape[2]], axis=1)

    def _keep(self, X: np.ndarray, V: np.ndarray) -> None:
        columns = self._state.values("map_position", "map_velocity", copy=False)
        for rows, found in zip(columns, (X, V), strict=True):
            rows[...] = found.transpose(0, 2, 1).reshape(-1, 3)


def first_vectors(tangents: Tangents, dimensions: int, order: np.ndarray) -> np.ndarray:
    """The tangent vectors at the beginning, (S, M, 2, 3, n), of systems with their bodies in an ``order``, (S, n)."""
    return np.ascontiguousarray(np.moveaxis(tangents.first(order.shape[1], dimensions)[..., order], -2, 0))


def coordinates(
    x: np.ndarray, v: np.ndarray, mass: np.ndarray, moves: MapMoves, vectors: np.ndarray, tangents: Tangents,
    limits: tuple[float, bool] = (0.0, False),
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The maps' coordinates of positions and velocities (S, 3, n) and masses (S, n). The tangent ``vectors`` become those of
    these coordinates."""
    X, V = np.empty_like(x), np.empty_like(v)
    none = np.zeros(len(mass), np.int64)
    systems = SystemMaps(x, v, X, V, mass, vectors, tangents.numbers, tangents.varied)
    divided(maps, len(mass), systems, moves, limits, -1, (none, none, np.zeros(len(mass))))
    return X, V


@inner
def advance_one(x, v, numbers, moves, planets, steps, made, closest):
    """Make up to ``steps`` steps of one system. Returns what has ended it, the steps made, and the shortest distance."""
    rows, last, status, dt = planets.rows, STAR + planets.bodies, DONE, moves.step[:, 1].sum()
    moved = rows[X : V + 3, STAR:last]
    old = moved.copy()
    for _ in range(steps):
        copy(moved, old)
        move(moves.step, planets)
        if not is_finite(moved):
            copy(old, moved)
            status = NOT_FINITE
            break
        if planets.varied:
            add_growth(planets.tangents[:, :2], FIRST, dt, numbers)
        made += 1
        closest = min(closest, closest_pair(rows[SITE : SITE + 3, STAR:last]))
        if planets.met[0]:
            status = ENCOUNTER
            break
    shown = present_of(planets)
    present(moves.present, shown, x, v)
    if not (is_finite(x) and is_finite(v)):  # a system that has ended: without the last correction
        inertial(present_of(planets), x, v)
    return status, made, closest


@compute.kernel("cpu")
def maps(first, last, bodies, moves, options, steps, ends):
    """Make ``steps`` steps of the systems ``first`` … ``last`` - 1; with ``steps`` -1 compute their coordinates.

    Args:
        bodies: :class:`SystemMaps`.
        moves: :class:`.MapMoves`.
        options: see :func:`.planets_of`.
        ends: (S,) each, the steps so far, what has ended the system, and the shortest distance, in the middle of steps.
    """
    x, v, map_x, map_v, m, tangents, numbers, varied = bodies
    made, status, closest = ends
    for s in range(first, last):
        if steps < 0:
            planets = planets_of(x[s], v[s], m[s], options, 0.0, None, tangents[s], varied)
            begin(x[s], v[s], moves.begin, planets)
            keep(planets, map_x[s], map_v[s], tangents[s])
            begin_growth(tangents[s], 1, numbers[s])
        else:
            more = steps if status[s] == DONE else 0
            planets = planets_of(map_x[s], map_v[s], m[s], options, 0.0, None, tangents[s], varied)
            ended, made[s], closest[s] = advance_one(x[s], v[s], numbers[s], moves, planets, more, made[s], closest[s])
            keep(planets, map_x[s], map_v[s], tangents[s])
            if more:
                status[s] = ended
