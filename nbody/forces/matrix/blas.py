"""The library that multiplies NumPy's matrices. Bits depend on its threads, among which it divides its sums."""

import ctypes
import os

import numpy as np

from nbody.machine import cores

BLAS_THREADS = (
    "scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads", "openblas_get_num_threads64_",
    "openblas_get_num_threads", "MKL_Get_Max_Threads", "bli_thread_get_num_threads",
)  # fmt: skip
"""What the libraries call the function that returns their number of threads."""


def name() -> str:
    """The library that multiplies NumPy's matrices, with its version."""
    found = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{found.get('name', 'unknown')} {found.get('version', '')}".strip()


def threads() -> int:
    """The threads of that library, as it says itself; else those that it may use by the environment."""
    library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
    for function in BLAS_THREADS:
        if hasattr(library, function):
            return int(getattr(library, function)())
    return int(os.environ.get("OMP_NUM_THREADS") or cores())
