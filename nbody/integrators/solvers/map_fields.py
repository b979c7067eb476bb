"""External fields in the kicks of a map: functions of position, velocity and time, beside the interaction.

A map's error in them is that of its other kicks, of the order of the scheme in the time step and of the first order in the
strength of the field; a corrector removes it as that of the interaction. The time moves with the drifts. A force that
depends on velocities kicks as it is at the middle of its kick, which keeps the order of a map, 2 (the midpoint rule).
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types

from nbody.compute.compiling.cpu_inner import inner, kernel
from nbody.compute.in_kernels.by_address import address_of, calling
from nbody.fields.compiled import adding_fields
from nbody.fields.field import Term
from nbody.forces.layers.fields import fields_of
from nbody.integrators.integrator import Motion


class MapFields(NamedTuple):
    """The fields of a map of n bodies.

    Attributes:
        add: the address of the function that adds them to accelerations.
        moving: they depend on velocities.
        parameters: of the fields.
        mass: (n,) of the bodies in the order of the state.
        order: (n,) the bodies in the order of the map.
        clock: (1,) the time of the positions.
        rows: (3, n, 3) positions, velocities and accelerations in the order of the state.
        work: (8, 3, n) scratch.
    """

    add: int
    moving: bool
    parameters: np.ndarray
    mass: np.ndarray
    order: np.ndarray
    clock: np.ndarray
    rows: np.ndarray
    work: np.ndarray


def map_fields(motion: Motion, order: np.ndarray, mass: np.ndarray) -> MapFields | None:
    """The fields of one map with an order and masses of bodies, or of many, (S, n); None without any."""
    fields, n = fields_of(motion.engine), order.shape[-1]
    if fields is None or not fields.terms:
        return None
    moving = any(term.moving for term in fields.terms)
    return MapFields(
        _adding(fields.terms), moving, fields.parameters, np.ascontiguousarray(mass), order,
        np.zeros(1), np.zeros((3, n, 3)), np.zeros((8, 3, n)),
    )  # fmt: skip


@inner
def fields_of_system(fields, s):
    """Those of the system s, with own scratch: systems are moved by several cores."""
    if fields is None:
        return None
    add, moving, parameters, mass, order, _, rows, work = fields
    return MapFields(add, moving, parameters, mass[s], order[s], np.zeros(1), np.empty(rows.shape), np.empty(work.shape))


ADD = types.none(types.float64[:, :, ::1], types.float64[::1], types.float64, types.float64[:, ::1])
add_at = calling(ADD)


_kept = list[Any]()
"""The kernels whose addresses are in use. (Two threads may make one twice.)"""


@cache
def _adding(terms: tuple[Term, ...]) -> int:
    """The address of a kernel that adds the fields to accelerations. The kernels of the map call it, so they are compiled
    once, for all fields."""
    add_fields = adding_fields(terms)

    @kernel
    def add(rows, mass, time, parameters):
        add_fields(rows[0], rows[1], mass, time, parameters, rows[2])

    _kept.append(add)
    return address_of(add, ADD)


@inner
def accelerate(x, v, a, fields):
    """``a`` become the accelerations of the fields at positions ``x`` and velocities ``v``, (3, n) each, in the order of the
    map."""
    order, rows = fields.order, fields.rows
    for i in range(order.size):
        for c in range(3):
            rows[0, order[i], c], rows[1, order[i], c], rows[2, order[i], c] = x[c, i], v[c, i], 0.0
    add_at(fields.add, (rows, fields.mass, fields.clock[0], fields.parameters))
    for i in range(order.size):
        for c in range(3):
            a[c, i] = rows[2, order[i], c]
