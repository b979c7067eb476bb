"""Wisdom and Holman's maps of the systems of an ensemble, divided among the cores."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.integrators.few_bodies import per_c2
from nbody.integrators.solvers.map_bodies import FIRST, SITE, STAR, V, X, keep, planets_of, present_of
from nbody.integrators.solvers.map_fields import MapFields, fields_of_system, map_fields
from nbody.integrators.solvers.map_steps import inertial, moving
from nbody.integrators.solvers.megno import add_growth, begin_growth
from nbody.integrators.solvers.systems.arrays import closest_pair, copy, is_finite
from nbody.integrators.solvers.systems.chunks import divided
from nbody.integrators.solvers.systems.scheme import DONE, ENCOUNTER, NOT_FINITE, MapsAsked, by_components
from nbody.integrators.tangents import tangent_vectors


class SystemMaps(NamedTuple):
    """Positions and velocities of S systems, (S, 3, n) each, which are computed from the maps' coordinates X and V or become
    these; G times the masses, (S, n); tangent vectors (S, M, 2, 3, n), their numbers (S, M, 5), and ``varied`` of
    :class:`.MapBodies`; 1/c² of relativity, the fields, and the time of step 0 with the time step."""

    x: np.ndarray
    v: np.ndarray
    X: np.ndarray
    V: np.ndarray
    m: np.ndarray
    tangents: np.ndarray
    numbers: np.ndarray
    varied: tuple
    per_c2: float
    fields: MapFields | None
    moment: tuple[float, float]


class HostMaps:
    """:class:`.wisdom_holman.Maps` of systems whose state is on the host."""

    def __init__(self, asked: MapsAsked) -> None:
        self._asked, self._moves = asked, asked.chosen.moves(asked.dt, asked.motion)

    def begin(self, x: np.ndarray, v: np.ndarray) -> None:
        asked = self._asked
        with tangent_vectors(asked.motion.host, asked.tangents.count, len(x)) as vectors:
            self._keep(*coordinates(x, v, asked, vectors))

    def advance(self, steps: int, made: np.ndarray, status: np.ndarray, closest: np.ndarray) -> None:
        asked, (count, n) = self._asked, self._asked.mass.shape
        state, tangents = asked.motion.host, asked.tangents
        X, V = (
            by_components(rows.reshape(count, n, 3)) for rows in state.values("map_position", "map_velocity", copy=False)
        )
        x, v = np.empty_like(X), np.empty_like(V)
        with tangent_vectors(state, tangents.count, count) as vectors:
            systems, ends = systems_of(asked, x, v, X, V, vectors), (made, status, closest)
            divided(maps_in(systems.fields is not None), count, systems, self._moves, asked.chosen.limits, steps, ends)
        self._keep(X, V)
        for own, found in ((state.position, x), (state.velocity, v)):
            rows = own.reshape(count, n, -1)
            np.put_along_axis(rows, asked.order[:, :, None], found.transpose(0, 2, 1)[:, :, : rows.shape[2]], axis=1)

    def _keep(self, X: np.ndarray, V: np.ndarray) -> None:
        columns = self._asked.motion.state.values("map_position", "map_velocity", copy=False)
        for rows, found in zip(columns, (X, V), strict=True):
            rows[...] = found.transpose(0, 2, 1).reshape(-1, 3)


def systems_of(
    asked: MapsAsked, x: np.ndarray, v: np.ndarray, X: np.ndarray, V: np.ndarray, vectors: np.ndarray
) -> SystemMaps:
    """The systems of maps with these arrays, in fields if there are any."""
    state, tangents = asked.motion.state, asked.tangents
    mass = state.values("mass")[0].astype(np.float64, copy=False).reshape(asked.order.shape)
    return SystemMaps(
        x, v, X, V, asked.mass, vectors, tangents.numbers, tangents.varied, per_c2(asked.motion),
        map_fields(asked.motion, asked.order, mass), (state.clock.origin, asked.dt),
    )  # fmt: skip


def coordinates(x: np.ndarray, v: np.ndarray, asked: MapsAsked, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The maps' coordinates of positions and velocities (S, 3, n). The tangent ``vectors`` (S, M, 2, 3, n) become the first
    ones in these coordinates."""
    (X, V), count, D = np.empty((2, *x.shape)), len(x), asked.motion.state.dimensions
    vectors[:] = np.moveaxis(asked.tangents.first(x.shape[2], D)[..., asked.order], -2, 0)
    none, moves = np.zeros(count, np.int64), asked.chosen.moves(asked.dt, asked.motion)
    systems = systems_of(asked, x, v, X, V, vectors)
    ends = none, none, np.zeros(count)
    divided(maps_in(systems.fields is not None), count, systems, moves, asked.chosen.limits, -1, ends)
    return X, V


@cache
def maps_in(in_fields: bool) -> Any:
    """The kernel ``maps``, perhaps in external fields."""
    move, begin, present = moving(in_fields)

    @inner
    def set_clock(planets, moment, steps):
        if in_fields:
            planets.fields.clock[0] = moment[0] + steps * moment[1]

    @inner
    def advance_one(x, v, numbers, moves, planets, steps, made, closest, moment):
        """Make up to ``steps`` steps of one system. Returns what has ended it, the steps made, and the shortest distance."""
        rows, last, status, dt = planets.rows, STAR + planets.bodies, DONE, moment[1]
        ahead, moved = -moves.present[0, 1] / dt, rows[X : V + 3, STAR:last]
        old = moved.copy()
        for _ in range(steps):
            copy(moved, old)
            set_clock(planets, moment, made + ahead)
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
        set_clock(planets, moment, made + ahead)
        present(moves.present, present_of(planets), x, v)
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
        x, v, map_x, map_v, m, tangents, numbers, varied, per_c2, fields, moment = bodies
        made, status, closest = ends
        for s in range(first, last):
            begins, more = steps < 0, steps if status[s] == DONE else 0
            X_, V_ = (x[s], v[s]) if begins else (map_x[s], map_v[s])
            none, own = np.zeros((0, m.shape[1])), fields_of_system(fields, s)
            planets = planets_of(X_, V_, m[s], options, per_c2, own, tangents[s], varied, none)
            if begins:
                set_clock(planets, moment, made[s])
                begin(x[s], v[s], moves.begin, planets)
            else:
                ended, made[s], closest[s] = advance_one(
                    x[s], v[s], numbers[s], moves, planets, more, made[s], closest[s], moment
                )
            keep(planets, map_x[s], map_v[s], tangents[s])
            if begins:
                begin_growth(tangents[s], 1, numbers[s])
            elif more:
                status[s] = ended

    return maps
