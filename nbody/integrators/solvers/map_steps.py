"""Wisdom and Holman's map on a CPU, of the moves of :mod:`.jacobi_map`: beginning, steps, fields, and the present."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.integrators.solvers.jacobi import (
    from_map,
    part,
    shift_from_jacobi,
    shift_jacobi,
    to_map,
    to_momenta,
    to_velocities,
)
from nbody.integrators.solvers.jacobi_map import drift, kick, kick_at_shifted
from nbody.integrators.solvers.map_bodies import INNER, MASS, STAR, V, X
from nbody.integrators.solvers.map_fields import accelerate

_from_map = part(from_map)
DIFFERENCE = 1e-3
"""The change of bodies in differences of fields, in units of the least of their distances or speeds: errors of 1e-12."""


class MapSteps(NamedTuple):
    """The functions ``move(moves, planets)``, ``begin`` and ``present`` of :func:`moving`, for kernels."""

    move: Callable
    begin: Callable
    present: Callable


@cache
def moving(in_fields: bool) -> MapSteps:
    """The functions of a map, perhaps in external fields."""

    @part
    def by_fields(X_, V_, h, planets, found):
        """The accelerations (3, n) of the map's coordinates by the fields in a kick."""
        fields, m, democratic = planets.fields, planets.rows[MASS, STAR : STAR + planets.bodies], planets.democratic
        middle, x, v = fields.work[0], fields.work[1], fields.work[2]
        _from_map(X_, m, democratic, False, x)
        for stage in range(2 if fields.moving else 1):
            if fields.moving:
                for c in range(3):
                    for i in range(m.size):
                        middle[c, i] = V_[c, i] + (0.5 * h * found[c, i] if stage else 0.0)
                _from_map(middle, m, democratic, True, v)
            accelerate(x, v, found, fields)
            to_map(found, m, democratic, True, found)

    @part
    def kick_by_fields(h, planets, before):
        """Called before and after the planets' kick: forces that depend on velocities act half before and half after."""
        if planets.fields.moving:
            h *= 0.5
        elif before:
            return
        work, n, last = planets.fields.work, planets.bodies, STAR + planets.bodies
        X_, V_ = planets.rows[X : X + 3, STAR:last], planets.rows[V : V + 3, STAR:last]
        by, slope, ahead_X, ahead_V, rate = work[3], work[4], work[5], work[6], work[7]
        by_fields(X_, V_, h, planets, by)
        for k in range(len(planets.tangents) if planets.varied else 0):
            dX, dV = planets.tangents[k, 0, :, STAR:last], planets.tangents[k, 1, :, STAR:last]
            size = max(relative_size(dX, X_), relative_size(dV, V_))
            step = DIFFERENCE / size if size > 0.0 else 1.0
            for q in (-2, -1, 1, 2):  # a central difference of order 4
                weight = 8.0 * q if abs(q) == 1 else -0.5 * q
                for c in range(3):
                    for i in range(n):
                        ahead_X[c, i], ahead_V[c, i] = X_[c, i] + q * step * dX[c, i], V_[c, i] + q * step * dV[c, i]
                by_fields(ahead_X, ahead_V, h, planets, slope)
                for c in range(3):
                    for i in range(n):
                        rate[c, i] = (rate[c, i] if q > -2 else 0.0) + weight * slope[c, i]
            for c in range(3):
                for i in range(n):
                    dV[c, i] += h / (12.0 * step) * rate[c, i]
        for c in range(3):
            for i in range(n):
                V_[c, i] += h * by[c, i]

    @part
    def move(moves, planets):
        """Make moves, (M, 3): each is a kick, perhaps over no time, and the drift after it; and the shift of the kick."""
        for k in range(len(moves)):
            h, way, shift = moves[k]
            if h != 0.0:
                if in_fields:
                    kick_by_fields(h, planets, True)
                if shift != 0.0:
                    kick_at_shifted(h, shift, planets)
                else:
                    kick(h, planets)
                if in_fields:
                    kick_by_fields(h, planets, False)
            drift(way, planets)
            if in_fields:
                planets.fields.clock[0] += way

    @inner
    def begin(x, v, from_present, planets):
        """Put positions x and velocities v, (3, N) each, into the map, with tangent vectors at the present."""
        rows, last, democratic = planets.rows, STAR + planets.bodies, planets.democratic
        m, X_, V_ = rows[MASS, STAR:last], rows[X : X + 3, STAR:last], rows[V : V + 3, STAR:last]
        to_map(x, m, democratic, False, X_)
        to_map(v, m, democratic, True, V_)
        for k in range(len(planets.tangents) if planets.varied else 0):
            for c in range(2):
                one, at, there = planets.tangents[k, c, :, STAR:last], v if c else x, V_ if c else X_
                to_map(one, m, democratic, c == 1, one)
                if k < len(planets.masses):
                    dm, sums = planets.masses[k], rows[INNER, STAR:last]
                    shift_jacobi(at, m, sums, dm, 1.0, one)
                    for d in range(3):
                        for i in range(m.size):
                            one[d, 0] += dm[i] * (at[d, i] - there[d, 0]) / sums[m.size - 1]
        if planets.per_c2 > 0.0:
            to_momenta(X_, V_, rows[INNER, STAR:last], planets.per_c2)
        move(from_present, planets)

    @inner
    def present(to_present, planets, x, v):
        """Positions x and velocities v, (3, N), of planets, which move to the present."""
        rows, last = planets.rows, STAR + planets.bodies
        X_, V_ = rows[X : X + 3, STAR:last], rows[V : V + 3, STAR:last]
        move(to_present, planets)
        if planets.per_c2 > 0.0:
            to_velocities(X_, V_, rows[INNER, STAR:last], planets.per_c2)
        inertial(planets, x, v)

    return MapSteps(move, begin, present)


@inner
def inertial(planets, x, v):
    """Positions x and velocities v, (3, N), of the map's coordinates as they are; of tangent vectors in place."""
    rows, last, democratic = planets.rows, STAR + planets.bodies, planets.democratic
    m = rows[MASS, STAR:last]
    _from_map(rows[X : X + 3, STAR:last], m, democratic, False, x)
    _from_map(rows[V : V + 3, STAR:last], m, democratic, True, v)
    for k in range(len(planets.tangents) if planets.varied else 0):
        for c in range(2):
            one = planets.tangents[k, c, :, STAR:last]
            _from_map(one, m, democratic, c == 1, one)
            if k < len(planets.masses):
                there = rows[V : V + 3, STAR:last] if c else rows[X : X + 3, STAR:last]
                shift_from_jacobi(there, m, rows[INNER, STAR:last], planets.masses[k], planets.sums[k], one)


@part
def relative_size(change, rows):
    """The largest change of a column of (3, n) rows; of the centre of mass in units of the least of the others."""
    largest, least = 0.0, np.inf
    for i in range(rows.shape[1] - 1, -1, -1):
        size2 = change[0, i] ** 2 + change[1, i] ** 2 + change[2, i] ** 2
        if i > 0:
            least = min(least, rows[0, i] ** 2 + rows[1, i] ** 2 + rows[2, i] ** 2)
        largest = max(largest, size2 / least)
    return np.sqrt(largest)
