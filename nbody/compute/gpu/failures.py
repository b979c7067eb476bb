"""GPUs that fail in the middle of their work: which of several it is."""

from collections.abc import Iterable
from typing import Any
from weakref import WeakSet

from nbody.compute.gpu.device import SIMULATED, cuda
from nbody.errors import DeviceError, RunFailed

FOREIGN = ("numba.cuda.cudadrv.driver", "numba.cuda.cudadrv.error", "cuda.core._utils.cuda_utils")
"""The modules whose errors are the driver's."""

HELPING: WeakSet[Any] = WeakSet()
"""The helpers (:class:`~nbody.compute.Helper`) of the runs in this process."""


class DriverError(DeviceError):
    """The driver reports an error."""

    exit_code = 1


class GpuFailed(RunFailed):
    """A GPU has failed; ``number`` is its number."""

    number = -1


def failure(number: int, reason: object) -> GpuFailed:
    """The error that says which GPU has failed."""
    made = GpuFailed(f"GPU {number} has failed: {' '.join(str(reason).split())[:200]}")
    made.number = number
    return made


def is_of_driver(error: BaseException) -> bool:
    """True if the driver has reported an error, other than one of too little memory."""
    return (isinstance(error, DriverError) or type(error).__module__ in FOREIGN) and "OUT_OF_MEMORY" not in str(error)


def check(numbers: Iterable[int]) -> None:
    """Raise GpuFailed if a device reports an error: after one, it answers every call with it."""
    for number in numbers:
        if reason := status(number):
            raise failure(number, reason)


def check_helpers() -> None:
    """:func:`check` the helpers. Call this in a long wait: the first device may wait for one that has failed."""
    check(sorted({helper.device for helper in HELPING}))


def status(number: int) -> str:
    """The error that a device reports; nothing if there is none."""
    if SIMULATED:
        return ""
    from cuda.bindings import driver

    try:
        with cuda.gpus[number]:
            code, *_ = driver.cuMemGetInfo()  # like any call; and, unlike one about streams, while a graph is recorded
    except Exception as error:
        if not is_of_driver(error):
            raise
        return str(error)
    return "" if code == driver.CUresult.CUDA_SUCCESS else str(code.name)
