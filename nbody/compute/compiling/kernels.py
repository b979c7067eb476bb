"""The decorator of kernels: functions that are compiled for a processor, once per machine.

A kernel that exists in variants (a law, a precision) is made by a function of these, with ``functools.cache``: what differs
is what the kernel closes over, and the cache on disk sees it (:mod:`nbody.compute.compiling.fingerprint`).
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any


def kernel(device: str, **options: Any) -> Callable[[FunctionType], Any]:
    """A decorator that compiles a function as a kernel for the ``cpu`` or the ``gpu``.

    ``options`` are those of ``numba.njit`` or ``cuda.jit``. A kernel on the CPU runs without Python's lock, and divides by
    zero as NumPy does; one on a GPU may be launched with few blocks without a warning.
    """

    def decorated(function: FunctionType) -> Any:
        if device == "cpu":
            from nbody.compute.compiling.cpu_kernels import cpu_kernel

            return cpu_kernel(function, **options)
        from nbody.compute.compiling.gpu_kernels import gpu_kernel

        return gpu_kernel(function, **options)

    return decorated
