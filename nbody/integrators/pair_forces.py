"""Accelerations of a few bodies, for kernels that call them in their own loops: each pair once, in order, in float64."""

import hashlib
from functools import cache
from pathlib import Path

import numpy as np
from numba import njit
from numba.extending import overload

from nbody import law
from nbody.law import pair_law

CONTRACT = {"contract"}
"""The compiler may form fused multiply-adds, and nothing else: compensated sums must stay as they are written."""


def variant_of(law_name: str) -> str:
    """The name under which kernels ask for a law. It changes with the source of the laws, so that kernels on disk do."""
    files = sorted(Path(law.__file__).parent.glob("*.py"))
    made_of = b"".join(file.read_bytes() for file in [*files, Path(__file__)])
    return f"{law_name} {hashlib.sha256(made_of).hexdigest()}"


def accelerate(variant, x, m, G, length2, a):
    """In a kernel: a_i = G Σ_j m_j f d for (3, N) positions ``x`` and masses ``m``; ``variant`` is a constant text of
    :func:`variant_of`, ``length2`` the softening length squared."""
    raise NotImplementedError("for kernels only")


@overload(accelerate, prefer_literal=True)
def _accelerate_in_a_kernel(variant, x, m, G, length2, a):
    compiled = _accelerations(variant.literal_value.split()[0])

    def accelerate(variant, x, m, G, length2, a):
        compiled(x, m, G, length2, a)

    return accelerate


@cache
def _accelerations(law_name):
    @njit
    def rsqrt(x):
        return 1.0 / np.sqrt(x)

    @njit
    def inverse_cube(x):
        return 1.0 / (x * np.sqrt(x))

    pair = pair_law(law_name, 3, rsqrt, njit(error_model="numpy"), inverse_cube)

    @njit(error_model="numpy", fastmath=CONTRACT)
    def accelerations(x, m, G, length2, a):
        a[:] = 0.0
        for i in range(1, m.size):
            ax, ay, az = 0.0, 0.0, 0.0
            for j in range(i):
                dx, dy, dz = x[0, j] - x[0, i], x[1, j] - x[1, i], x[2, j] - x[2, i]
                f, _ = pair(dx, dy, dz, length2)
                of_j, of_i = G * f * m[j], G * f * m[i]
                ax += of_j * dx
                ay += of_j * dy
                az += of_j * dz
                a[0, j] -= of_i * dx
                a[1, j] -= of_i * dy
                a[2, j] -= of_i * dz
            a[0, i] += ax
            a[1, i] += ay
            a[2, i] += az

    return accelerations
