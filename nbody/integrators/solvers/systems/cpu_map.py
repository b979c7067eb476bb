"""Wisdom and Holman's maps of the systems of an ensemble, divided among the cores."""

from typing import NamedTuple

import numpy as np
from numba import njit

from nbody import compute
from nbody.integrators.solvers.systems.chunks import divided
from nbody.integrators.solvers.systems.ias15_kernel import closest_pair, copy, is_finite
from nbody.integrators.solvers.systems.scheme import DONE, ENCOUNTER, NOT_FINITE, by_components
from nbody.integrators.solvers.wisdom_holman import (
    begin,
    constants,
    corrector_kicks,
    drift,
    from_jacobi,
    kick,
    present,
)
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
    """The maps of S systems whose state is on the host.

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
        self._start = mass, dt, corrector
        self._constants = dt, corrector_kicks(corrector), encounter

    def begin(self, x: np.ndarray, v: np.ndarray) -> None:
        """Set the maps' coordinates from positions and velocities (S, 3, n) in the maps' order."""
        self._keep(*coordinates(x, v, *self._start))

    def advance(self, steps: int, made: np.ndarray, status: np.ndarray, closest: np.ndarray) -> None:
        """Make ``steps`` steps of all systems that have not ended; the arrays are the ``ends`` of :func:`maps`."""
        state, (count, n) = self._state, self._mass.shape
        X, V = (
            by_components(rows.reshape(count, n, 3))
            for rows in state.values("map_position", "map_velocity", copy=False)
        )
        x, v = np.empty_like(X), np.empty_like(V)
        divided(maps, count, SystemMaps(x, v, X, V, self._mass), self._constants, steps, (made, status, closest))
        self._keep(X, V)
        for own, found in ((state.position, x), (state.velocity, v)):
            rows = own.reshape(count, n, -1)
            np.put_along_axis(rows, self._order[:, :, None], found.transpose(0, 2, 1)[:, :, : rows.shape[2]], axis=1)

    def _keep(self, X: np.ndarray, V: np.ndarray) -> None:
        columns = self._state.values("map_position", "map_velocity", copy=False)
        for rows, found in zip(columns, (X, V), strict=True):
            rows[...] = found.transpose(0, 2, 1).reshape(-1, 3)


def coordinates(
    x: np.ndarray, v: np.ndarray, mass: np.ndarray, dt: float, corrector: int
) -> tuple[np.ndarray, np.ndarray]:
    """The maps' coordinates of positions and velocities (S, 3, n) and masses (S, n)."""
    X, V = np.empty_like(x), np.empty_like(v)
    none = np.zeros(len(mass), np.int64)
    kicks = corrector_kicks(corrector)
    divided(maps, len(mass), SystemMaps(x, v, X, V, mass), (dt, kicks, 0.0), -1, (none, none, np.zeros(len(mass))))
    return X, V


@njit(error_model="numpy")
def advance_one(x, v, X, V, m, h, kicks, hill, steps, made, closest):
    """Make up to ``steps`` steps of one system. Returns what has ended it, the steps made, and the shortest distance."""
    n = m.size
    inner, near = constants(m, hill)
    distance, at, a = np.empty(n), np.empty((3, n)), np.empty((3, n))
    old_X, old_V, status = np.empty((3, n)), np.empty((3, n)), DONE
    for i in range(1, n):
        distance[i] = np.sqrt(X[0, i] ** 2 + X[1, i] ** 2 + X[2, i] ** 2)
    for _ in range(steps):
        copy(X, old_X)
        copy(V, old_V)
        first, _ = kick(X, V, m, inner, h, distance, near, at, a)
        drift(X, V, inner, h, distance)
        if not (is_finite(X) and is_finite(V)):
            copy(old_X, X)
            copy(old_V, V)
            status = NOT_FINITE
            break
        made += 1
        closest = min(closest, closest_pair(at))
        if first:
            status = ENCOUNTER
            break
    present(X, V, m, h, kicks, x, v)
    if not (is_finite(x) and is_finite(v)):  # a system that has ended: without the last correction
        from_jacobi(X, m, inner, x)
        from_jacobi(V, m, inner, v)
    return status, made, closest


@compute.kernel("cpu")
def maps(first, last, bodies, constants, steps, ends):
    """Make ``steps`` steps of the systems ``first`` … ``last`` - 1; with ``steps`` -1 compute their coordinates.

    Args:
        bodies: :class:`SystemMaps`.
        constants: the time step, the corrector's kicks, and how close planets may come, in Hill radii.
        ends: (S,) each, the steps so far, what has ended the system, and the shortest distance, in the middle of steps.
    """
    x, v, X, V, m = bodies
    h, kicks, hill = constants
    made, status, closest = ends
    for s in range(first, last):
        if steps < 0:
            begin(x[s], v[s], X[s], V[s], m[s], h, kicks)
        else:
            more = steps if status[s] == DONE else 0
            ended, made[s], closest[s] = advance_one(
                x[s], v[s], X[s], V[s], m[s], h, kicks, hill, more, made[s], closest[s]
            )
            if more:
                status[s] = ended
