"""cuBLAS, the competitor of the ladder, called in its shared library with ctypes (no CuPy, no compiler).

Any cuBLAS is found: the system's, conda's, or that of a Python package (``pip install nvidia-cublas``).
"""

import ctypes
from functools import cache
from typing import Any

from nbody.bench import card

CUBLAS = ("cublas", "cublas-skinny")
"""The names of its rows: the square product and the skinny one."""

OPERATION_N = 0
"""CUBLAS_OP_N: take the matrix as it is."""


class Cublas:
    """cuBLAS 12 or 13 on the current device; its products are enqueued on the default stream.

    Raises:
        OSError: no library was found, or it does not take this device.
    """

    def __init__(self) -> None:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        from nbody.compute import cuda

        cuda.current_context()  # cuBLAS works in the process's primary context, which Numba has made current
        try:
            path = load_nvidia_dynamic_lib("cublas").abs_path
        except RuntimeError as error:
            raise OSError("no libcublas is found; 'pip install nvidia-cublas' brings one") from error
        self._library = ctypes.CDLL(str(path))
        self._handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        number = ctypes.c_int()
        self._call("cublasGetVersion_v2", self._handle, ctypes.byref(number))
        major, rest = divmod(number.value, 10_000)
        self.version = f"{major}.{rest // 100}.{rest % 100}"

    def multiply(self, a: Any, b: Any, c: Any) -> None:
        """Enqueue c = a·b: row-major device arrays, all float32 or all float64. (cuBLAS counts along columns: what it
        sees are the transposes, and it is asked for bᵀ·aᵀ = cᵀ.) Float32 sums stay float32: no TF32."""
        (m, k), n = a.shape, b.shape[1]
        letter, number = ("S", ctypes.c_float) if a.dtype == "float32" else ("D", ctypes.c_double)
        one, zero = number(1), number(0)
        at = [ctypes.c_void_p(array.__cuda_array_interface__["data"][0]) for array in (b, a, c)]
        self._call(
            f"cublas{letter}gemm_v2", self._handle, OPERATION_N, OPERATION_N, n, m, k,
            ctypes.byref(one), at[0], n, at[1], k, ctypes.byref(zero), at[2], n,
        )  # fmt: skip

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise OSError(f"{name} answers {status}")


@cache
def load() -> tuple[Cublas | None, str]:
    """cuBLAS; or None and the reason why it can't be used."""
    if reason := card.no_gpu():
        return None, reason
    try:
        return Cublas(), ""
    except (ImportError, OSError) as error:
        return None, str(error)
