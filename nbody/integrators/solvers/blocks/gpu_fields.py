"""External fields in block steps on a GPU: a warp evaluates them at the points of the differences of one body, see
:mod:`.fields`."""

from functools import cache
from typing import Any

import numpy as np

from nbody import compute
from nbody.fields.field import Term
from nbody.integrators.solvers.blocks.fields import STEP, difference, passes, path_values
from nbody.integrators.solvers.blocks.formulas import A, J, S, V, X, corrector
from nbody.integrators.solvers.blocks.memory import rows_per_body


@compute.exact_function
def pick(k, first, second, third):
    """One of three numbers."""
    return first if k == 0 else second if k == 1 else third


@cache
def lane_sums(terms: tuple[Term, ...], dimensions: int, order: int, mixed: bool) -> Any:
    """For kernels: ``add(i, value, rows, p, m, step, parameters, lane)``: the sum over pairs of body i in a lane
    (acceleration, jerk and snap in the lanes 0 to 8, then again), with that of the fields; ``step``: the length
    of the step and the time at its end. All lanes of a warp call it."""
    at = path_values(terms, dimensions, compute.exact_function)
    derivatives, correct_one = compute.exact_function(difference), corrector(order, compute.exact_function)
    rounds, rows_each, double = passes(terms), rows_per_body(mixed), np.float64

    @compute.exact_function
    def along(value, d):
        """The first and the second derivative of a value that the lanes 0 to 4 have at -2d to 2d."""
        return derivatives(
            compute.shuffle(value, 0),
            compute.shuffle(value, 1),
            compute.shuffle(value, 2),
            compute.shuffle(value, 3),
            compute.shuffle(value, 4),
            d,
        )

    @compute.exact_function
    def place(p, row, k):
        x = double(p[row, k])
        return x + double(p[row + 1, k]) if mixed else x

    @compute.exact_function
    def fields_at(value, x, v, m, step, parameters, lane):
        """The sum that a lane has over pairs, of the fields."""
        h, time = step
        d = STEP * abs(h)
        none = 0.0, 0.0, 0.0
        fx, fy, fz = at(x, v, none, none, m, 0.0, time, parameters)
        a = compute.shuffle(value, 0) + fx, compute.shuffle(value, 1) + fy, compute.shuffle(value, 2) + fz
        jx, jy, jz, sx, sy, sz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for _ in range(rounds):
            j = compute.shuffle(value, 3) + jx, compute.shuffle(value, 4) + jy, compute.shuffle(value, 5) + jz
            gx, gy, gz = at(x, v, a, j, m, (min(lane, 4) - 2) * d, time, parameters)
            jx, sx = along(gx, d)
            jy, sy = along(gy, d)
            jz, sz = along(gz, d)
        k = lane % 3
        return pick(lane % 9 // 3, pick(k, fx, fy, fz), pick(k, jx, jy, jz), pick(k, sx, sy, sz))

    @compute.exact_function
    def add(i, value, rows, p, m, step, parameters, lane):
        row, k = i * rows_each, lane % 3
        x = place(p, row, 0), place(p, row, 1), place(p, row, 2)
        moving = row + rows_each - 2
        v = double(p[moving, 0]), double(p[moving, 1]), double(p[moving, 2])
        total = value + fields_at(value, x, v, m, step, parameters, lane)
        if rounds > 1:
            a1, j1, s1 = compute.shuffle(total, k), compute.shuffle(total, 3 + k), compute.shuffle(total, 6 + k)
            _, v1, _, _, _, _ = correct_one(
                rows[X + k, i], rows[V + k, i], rows[A + k, i], rows[J + k, i], rows[S + k, i], a1, j1, s1, step[0]
            )
            v = compute.shuffle(v1, 0), compute.shuffle(v1, 1), compute.shuffle(v1, 2)
            total = value + fields_at(value, x, v, m, step, parameters, lane)
        return total

    return add
