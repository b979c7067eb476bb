"""External fields of a few bodies, for compiled loops that inline them (:mod:`nbody.integrators.schemes.table_few`):
with the bits of :meth:`nbody.fields.added.AddedFields.add`."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numba import njit

from nbody.fields.compiled import summed


@cache
def adding_fields(functions: tuple[Callable, ...]) -> Callable:
    """For kernels: ``add_fields(x, time, parameters, a)`` adds the fields of ``functions``
    (:attr:`nbody.fields.field.Field.evaluate`) at a time to the accelerations ``a``, (N, D), of positions ``x``."""
    total = summed(functions, njit(error_model="numpy"))

    @njit(error_model="numpy")
    def add_fields(x, time, parameters, a):
        flat = x.shape[1] == 2
        for i in range(len(x)):
            z = 0.0 if flat else np.float64(x[i, x.shape[1] - 1])
            ax, ay, az, _ = total(np.float64(x[i, 0]), np.float64(x[i, 1]), z, time, parameters)
            a[i, 0], a[i, 1] = a[i, 0] + ax, a[i, 1] + ay
            if not flat:
                a[i, x.shape[1] - 1] += az

    return add_fields
