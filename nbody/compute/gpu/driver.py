"""Checks whether there is a GPU. Without one this needs no import of ``numba.cuda``, which takes 0.3 s."""

import ctypes
import os
import sys
from functools import cache
from importlib.util import find_spec
from itertools import product

from nbody.errors import DeviceError

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
"""True when kernels run in Numba's simulator on the CPU: for tests of arithmetic at small N only."""


def _load_driver() -> tuple[ctypes.CDLL | None, str]:
    """The CUDA driver's library, or why it can't be loaded. (Numba searches the same places.)"""
    if sys.platform == "win32":
        names, folders, load = ("nvcuda.dll",), ("\\windows\\system32",), getattr(ctypes, "WinDLL", ctypes.CDLL)
    else:
        names, folders, load = ("libcuda.so", "libcuda.so.1"), ("/usr/lib", "/usr/lib64"), ctypes.CDLL
    reason = "CUDA driver library cannot be found"
    for path in (*names, *(os.path.join(folder, name) for folder, name in product(folders, names))):
        try:
            return load(path), ""
        except OSError as error:
            if os.path.isfile(path):
                reason = f"CUDA driver library cannot be loaded: {error}"
    return None, reason


@cache
def why_unavailable() -> str:
    """The reason why no GPU can be used, in one clause; empty if a GPU can be used."""
    if SIMULATED:
        return ""
    library, reason = _load_driver()
    if library is None:
        return reason
    if status := library.cuInit(0):
        name = ctypes.c_char_p(b"an unknown error")
        library.cuGetErrorName(status, ctypes.byref(name))
        return f"the driver reports {(name.value or b'').decode()}"
    if find_spec("numba_cuda") is None:
        return "numba-cuda is not installed, which comes with nbody's extras cu13 and cu12"
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
        raise DeviceError(f"{what} needs an NVIDIA GPU; none can be used ({reason}); {remedy}, or see 'nbody doctor'")
