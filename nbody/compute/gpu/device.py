"""The properties and limits of the device."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numba import cuda

from nbody.compute.gpu.driver import SIMULATED, available, require
from nbody.errors import DeviceError, NBodyError

if SIMULATED:
    from nbody.compute.simulator.threads import take_turns

    take_turns()

FAST = {"fastmath": True}
"""Compile flags of most kernels: sums and products may be reordered as if they were exact, roots and reciprocals are
approximate, denormals are flushed to zero. Kernels whose rounding matters omit these flags, or use
:func:`nbody.compute.add` and similar functions."""


def bounded(threads: int, resident: int) -> dict[str, Any]:
    """:data:`FAST`, with registers limited so that ``resident`` blocks of ``threads`` threads fit on a multiprocessor."""
    return FAST if SIMULATED else {**FAST, "launch_bounds": (threads, resident)}


@dataclass(frozen=True)
class DeviceProperties:
    """Properties of the current device; clocks in Hz, memory in bytes."""

    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    clock: float
    memory_total: int
    memory_free: int
    driver: str

    @property
    def lanes_float32(self) -> int:
        """Float32 operations that a multiprocessor starts per clock."""
        return lanes(self.compute_capability)[0]

    @property
    def lanes_float64(self) -> int:
        """Float64 operations that a multiprocessor starts per clock."""
        return lanes(self.compute_capability)[1]

    @property
    def peak_float32(self) -> float:
        """Float32 rate in FLOP/s; a multiply-add counts as two."""
        return 2.0 * self.lanes_float32 * self.multiprocessors * self.clock

    @property
    def peak_float64(self) -> float:
        """Float64 rate in FLOP/s, without tensor cores."""
        return 2.0 * self.lanes_float64 * self.multiprocessors * self.clock

    def peak(self, precision: str) -> float:
        """FLOP/s of the arithmetic on pairs in ``float32``, ``mixed`` or ``float64``."""
        return self.peak_float64 if precision == "float64" else self.peak_float32


LANES = {
    (6, 0): (64, 32), (6, 1): (128, 4), (7, 0): (64, 32), (7, 5): (64, 2), (8, 0): (64, 32), (8, 6): (128, 2),
    (8, 9): (128, 2), (9, 0): (128, 64), (10, 0): (128, 64), (12, 0): (128, 2),
}  # fmt: skip
"""Float32 and float64 additions, products or multiply-adds that a multiprocessor starts per clock, by compute capability
(CUDA C++ Programming Guide, throughput of native arithmetic instructions)."""


def lanes(compute_capability: tuple[int, int]) -> tuple[int, int]:
    """The entry of :data:`LANES` for a compute capability, or for the latest earlier one if it is not listed."""
    return LANES[max((known for known in LANES if known <= tuple(compute_capability)), default=min(LANES))]


def facts() -> DeviceProperties:
    """Properties of the current device. Raises DeviceError if there is none."""
    require("this")
    if SIMULATED:
        return DeviceProperties("Numba CUDA simulator", (9, 0), 1, 1e9, 2**31, 2**31, "none")
    device = cuda.get_current_device()
    free, total = cuda.current_context().get_memory_info()
    name = device.name.decode() if isinstance(device.name, bytes) else str(device.name)
    return DeviceProperties(
        name,
        tuple(device.compute_capability),
        device.MULTIPROCESSOR_COUNT,
        device.CLOCK_RATE * 1e3,
        int(total),
        int(free),
        _driver_version(),
    )


def use_device(number: int) -> None:
    """Make a device current in the calling thread, as launches by the driver's own functions need it."""
    if not SIMULATED and cuda.current_context().device.id != number:
        cuda.select_device(number)


def _driver_version() -> str:
    """The driver's version as NVIDIA writes it (580.95.05), or the CUDA version that it supports."""
    with contextlib.suppress(OSError, IndexError), open("/proc/driver/nvidia/version") as file:
        return version_in(file.readline())
    return "CUDA " + ".".join(map(str, cuda.cudadrv.driver.get_version()))


def version_in(line: str) -> str:
    """The driver's version in a line like ``… Kernel Module  580.95.05  …`` or, for the open driver, ``… Open Kernel Module
    for x86_64  580.159.04  …``. Raises IndexError if there is none."""
    return re.findall(r"\b\d+(?:\.\d+)+\b", line)[0]


def resident_blocks(kernel: Any, arguments: tuple, threads: int) -> int:
    """The number of blocks of a kernel, with ``threads`` threads each, that fit on the device at a time."""
    if SIMULATED:
        return 3  # any number works
    signature = tuple(kernel.typeof_pyval(argument) for argument in arguments)
    return kernel.compile(signature).max_cooperative_grid_blocks(threads)


def blocks_at_most(threads: int) -> int:
    """An upper bound on the blocks of ``threads`` threads that fit on the device at a time, for any kernel: 32 per
    multiprocessor, the most of any card, or fewer if their threads do not fit. Without a device: for an H200."""
    if SIMULATED:
        return 3
    if not available():
        return 132 * min(32, 2048 // threads)
    return facts().multiprocessors * min(32, threads_per_multiprocessor() // threads)


@contextlib.contextmanager
def out_of_memory(what: str, needed: int) -> Iterator[None]:
    """Turn the driver's out-of-memory error inside this ``with`` block into one line with ``needed`` and free bytes."""
    try:
        yield
    except Exception as error:
        if isinstance(error, NBodyError) or "MEMORY" not in str(error).upper():
            raise
        raise DeviceError(
            f"{what} needs {needed / 2**30:.2f} GiB of GPU memory and {facts().memory_free / 2**30:.2f} "
            "GiB are free; use fewer particles, or close other programs on the card"
        ) from error


def address(array: Any) -> int:
    """Where an array on the device begins."""
    return int(array._ary.ctypes.data if SIMULATED else array.__cuda_array_interface__["data"][0])


def uuid() -> str:
    """The current device's unique identifier, in the form of NVIDIA's management library."""
    return cuda.get_current_device().uuid


def threads_per_multiprocessor() -> int:
    """The most threads that fit on a multiprocessor of the current device at a time."""
    return cuda.get_current_device().MAX_THREADS_PER_MULTIPROCESSOR


def multiprocessor_limits() -> tuple[int, int, int, int]:
    """Registers, bytes of shared memory, threads and blocks that a multiprocessor of the current device has room for."""
    device = cuda.get_current_device()
    return (
        device.MAX_REGISTERS_PER_MULTIPROCESSOR,
        device.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        device.MAX_THREADS_PER_MULTIPROCESSOR,
        device.MAX_BLOCKS_PER_MULTIPROCESSOR,
    )
