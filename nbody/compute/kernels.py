"""The decorator that makes a kernel for a processor."""

from collections.abc import Callable
from typing import Any


def kernel(device: str, **options: Any) -> Callable[[Callable], Any]:
    """Compile a function as a kernel for the ``cpu`` or the ``gpu``, once per machine: it is cached on disk.

    ``options`` are those of ``numba.njit`` or ``cuda.jit``. A kernel on the CPU runs without Python's lock, and divides by
    zero as NumPy does; one on a GPU may be launched with few blocks without a warning.
    """

    def decorated(function: Callable) -> Any:
        if device == "cpu":
            from nbody.compute.cpu_kernels import cpu_kernel

            return cpu_kernel(function, **options)
        from nbody.compute.gpu_kernels import gpu_kernel

        return gpu_kernel(function, **options)

    return decorated
