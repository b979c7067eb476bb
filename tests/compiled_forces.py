"""The force kernels as they are compiled for an H200, on any machine; each one once per process."""

from functools import cache

import numpy as np
import pytest

from nbody.forces import ENGINES
from nbody.forces.direct.gpu_triangle import PairTiling
from nbody.state import Outputs


def kernel_of(
    engine: str,
    dimensions: int,
    outputs: Outputs,
    softening: str = "plummer",
    masses: str = "product",
    tiling: PairTiling | None = None,
    mixed: bool = False,
    precision: str = "float32",
):
    """An engine's kernel and the Numba types of its arguments."""
    pytest.importorskip("cuda.core")
    from numba import types

    from nbody.forces import gpu_engine
    from nbody.forces.direct import gpu_pairs

    real = getattr(types, precision)
    wide = types.float64 if mixed else real
    shape = gpu_engine.Shape(softening, dimensions, np.dtype(precision), outputs, mixed)
    if engine == "gpu-symmetric":
        kernel = gpu_pairs.build(shape, tiling, masses)
        return kernel, (wide[:, ::1], wide[:, :, ::1], real[:, :, ::1], real, *[types.int64] * 4, types.uint32)
    kernel = ENGINES.load(engine)._build(shape)
    return kernel, (real[:, ::1], real[:, ::1], types.int64, types.int64, real, real)


@cache
def compiled(*shape, **more):
    """PTX and resources of the kernel of :func:`kernel_of`."""
    return for_h200(*kernel_of(*shape, **more))


def for_h200(kernel, signature):
    """PTX and resources of a kernel for Numba types of its arguments. Skips the test where there is no compiler."""
    pytest.importorskip("cuda.core")
    from nbody import compute

    try:
        code = compute.ptx(kernel, signature)
    except Exception as error:
        if "nvvm" in str(error).lower():
            pytest.skip(f"no NVVM here: {error}")
        raise
    return code, compute.resources(code)
