"""External fields in the kicks of a map: functions of position and time, which kick all bodies beside the interaction.

A map's error in them is that of its other kicks, of the order of the scheme in the time step and of the first order in the
strength of the field; a corrector removes it as that of the interaction. The time moves with the drifts.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.compiled import adding_fields
from nbody.fields.field import Term
from nbody.forces.layers.fields import fields_of
from nbody.integrators.few_bodies import in_fields
from nbody.integrators.integrator import Motion


class MapFields(NamedTuple):
    """The fields of a map of n bodies.

    Attributes:
        parameters: of the fields.
        mass: (n,) of the bodies in the order of the state.
        order: (n,) the bodies in the order of the map.
        clock: (1,) the time of the positions.
        x, a: (n, 3) positions and accelerations in the order of the state.
    """

    parameters: np.ndarray
    mass: np.ndarray
    order: np.ndarray
    clock: np.ndarray
    x: np.ndarray
    a: np.ndarray


def map_fields(motion: Motion, order: np.ndarray) -> tuple[tuple[Term, ...], MapFields | None]:
    """The terms and the fields of a map with an order of a state; none and None without any."""
    fields, state = fields_of(motion.engine), motion.host
    if fields is None or not in_fields(motion):
        return (), None
    return fields.terms, MapFields(fields.parameters, state.mass, order, np.zeros(1), *np.zeros((2, state.count, 3)))


@cache
def map_accelerations(terms: tuple[Term, ...]) -> Callable:
    """For kernels: ``accelerate(x, a, fields)``; ``a`` become the accelerations of the fields at ``x``, (3, n) each, in the
    order of the map."""
    add_fields = adding_fields(terms)

    @inner
    def accelerate(x, a, fields):
        order, at, found = fields.order, fields.x, fields.a
        for i in range(order.size):
            for c in range(3):
                at[order[i], c], found[order[i], c] = x[c, i], 0.0
        add_fields(at, at, fields.mass, fields.clock[0], fields.parameters, found)  # no field depends on velocities
        for i in range(order.size):
            for c in range(3):
                a[c, i] = found[order[i], c]

    return accelerate
