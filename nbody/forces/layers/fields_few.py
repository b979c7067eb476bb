"""External fields of a few bodies, for compiled loops that inline them (:mod:`nbody.integrators.table_few`): with the bits
of :meth:`nbody.fields.added.AddedFields.add`."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import njit
from numba.extending import overload

from nbody.compute.cpu_kernels import sources
from nbody.fields import compiled
from nbody.fields.compiled import summed

_FUNCTIONS: dict[str, tuple[Callable, ...]] = {}
"""The functions of each variant."""


def variant_of(functions: tuple[Callable, ...]) -> str:
    """The text by which a kernel asks for a sum of functions (:attr:`nbody.fields.field.Field.evaluate`); empty for none. It
    changes with their sources, so that kernels on disk do."""
    if not functions:
        return ""
    made_of = [Path(__file__).read_bytes(), Path(compiled.__file__).read_bytes()]
    names = [f"{each.__module__}.{each.__qualname__} {sources(each)}" for each in functions]
    text = hashlib.sha256(b"".join([*made_of, *map(str.encode, names)])).hexdigest()
    _FUNCTIONS[text] = functions
    return text


def add_fields(variant, x, time, parameters, a):
    """In a kernel: add the fields at a time to the accelerations ``a``, (N, D), of positions ``x``. ``variant`` is a
    constant text of :func:`variant_of`."""
    raise NotImplementedError("for kernels only")


@overload(add_fields, prefer_literal=True)
def _add_fields_in_a_kernel(variant, x, time, parameters, a):
    compile = njit(error_model="numpy")
    total = summed(_FUNCTIONS.get(variant.literal_value, ()), compile)

    def add_fields(variant, x, time, parameters, a):
        flat = x.shape[1] == 2
        for i in range(len(x)):
            z = 0.0 if flat else np.float64(x[i, x.shape[1] - 1])
            ax, ay, az, _ = total(np.float64(x[i, 0]), np.float64(x[i, 1]), z, time, parameters)
            a[i, 0], a[i, 1] = a[i, 0] + ax, a[i, 1] + ay
            if not flat:
                a[i, x.shape[1] - 1] += az

    return add_fields
