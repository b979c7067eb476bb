"""Checks whether there is a GPU. Without a CUDA driver this needs no import of ``numba.cuda``, which takes 0.4 s."""

import ctypes
import os
import sys
from functools import cache
from itertools import product

from nbody.errors import DeviceError

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
"""True when kernels run in Numba's simulator on the CPU: for tests of arithmetic at small N only."""


def has_driver() -> bool:
    """True if a CUDA driver library exists, whether it can be loaded or not. (Numba searches the same places.)"""
    if sys.platform == "win32":
        names, folders, load = ("nvcuda.dll",), ("\\windows\\system32",), getattr(ctypes, "WinDLL", ctypes.CDLL)
    else:
        names, folders, load = ("libcuda.so", "libcuda.so.1"), ("/usr/lib", "/usr/lib64"), ctypes.CDLL
    for path in (*names, *(os.path.join(folder, name) for folder, name in product(folders, names))):
        try:
            load(path)
        except OSError:
            if not os.path.isfile(path):
                continue
        return True
    return False


@cache
def why_unavailable() -> str:
    """The reason why no GPU can be used, in one clause; empty if a GPU can be used."""
    if SIMULATED:
        return ""
    if not has_driver():
        return "CUDA driver library cannot be found"
    from numba import cuda

    try:
        cuda.current_context()
    except Exception as error:
        # Numba's message begins with a heading and ends with advice; the sentence between them is the reason.
        text = " ".join(str(error).split()).removeprefix("Error at driver init: ")
        return text.split(". ")[0].strip(" .:")[:200] or type(error).__name__
    return ""


def available() -> bool:
    """True if kernels can run here (on a device, or in the simulator)."""
    return not why_unavailable()


def require(what: str, remedy: str = "use --engine cpu") -> None:
    """Raise a :class:`DeviceError` that says that ``what`` needs a GPU, unless there is one."""
    reason = why_unavailable()
    if reason:
        raise DeviceError(
            f"{what} needs an NVIDIA GPU, and none can be used here ({reason}); {remedy}, or see 'nbody doctor'"
        )
