"""Repeated launches of a compiled kernel with arrays of the same shapes: one driver call each, without Numba's processing
of the arguments."""

import ctypes
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

from nbody.compute.gpu.device import cuda
from nbody.compute.gpu.failures import DriverError
from nbody.errors import DeviceError


class DirectLaunch:
    """A kernel with a fixed grid, for C-contiguous arrays of fixed shapes, on the current device.

    Args:
        kernel: the result of ``cuda.jit``.
        signature: Numba's types of its arguments, all arrays; ``shapes``: their shapes.
        grid, block: blocks and threads.
        dynamic_shared: bytes of dynamic shared memory per block.
    """

    def __init__(
        self,
        kernel: Any,
        signature: tuple,
        shapes: Sequence[tuple[int, ...]],
        grid: tuple[int, ...],
        block: tuple[int, ...],
        dynamic_shared: int = 0,
    ) -> None:
        from cuda.bindings import driver

        self._compiled = allow_shared(kernel, signature, dynamic_shared)  # keeps the code loaded
        values: list[int] = []
        self._places = []  # of the arrays' addresses among the values
        for kind, shape in zip(signature, shapes, strict=True):
            self._places.append(len(values) + 4)
            values += _array_arguments(shape, kind.dtype.bitwidth // 8)
        self._values = (ctypes.c_uint64 * len(values))(*values)
        start = ctypes.addressof(self._values)
        self._pointers = (ctypes.c_void_p * len(values))(*(start + 8 * n for n in range(len(values))))
        function = driver.CUfunction(int(self._compiled._codelibrary.get_cufunc().handle))
        stream = driver.CUstream(int(kernel[grid, block].stream.handle))  # Numba's default stream
        sizes = (*(*grid, 1, 1)[:3], *(*block, 1, 1)[:3])
        self._arguments = (function, *sizes, dynamic_shared, stream, ctypes.addressof(self._pointers), 0)
        self._launch, self._success = driver.cuLaunchKernel, driver.CUresult.CUDA_SUCCESS
        self._lock = threading.Lock()

    def __call__(self, *addresses: int) -> None:
        """Enqueue the kernel on the default stream, with its first arrays at these addresses. Raises DriverError."""
        with self._lock:  # the driver copies the values before it returns
            for place, address in zip(self._places, addresses, strict=False):
                self._values[place] = address
            status = self._launch(*self._arguments)[0]
        if status != self._success:
            raise DriverError(f"CUDA: a kernel could not be launched: {status.name}")

    def fix(self, first: int, arrays: Sequence[Any]) -> None:
        """Set argument ``first`` and those after it to these Numba device arrays for every call."""
        for place, array in zip(self._places[first:], arrays, strict=True):
            self._values[place] = array.device_ctypes_pointer.value


def _array_arguments(shape: tuple[int, ...], itemsize: int) -> list[int]:
    """The 64-bit numbers with which Numba passes a C-contiguous array to a kernel: two zeros, its size, the size of an
    item, the address (set later), the shape, the strides in bytes."""
    size, strides = 1, list[int]()
    for length in reversed(shape):
        strides.insert(0, size * itemsize)
        size *= length
    return [0, 0, size, itemsize, 0, *shape, *strides]


def allow_shared(kernel: Any, signature: tuple, dynamic_shared: int) -> Any:
    """The kernel compiled for Numba's types ``signature`` and the current device, with ``dynamic_shared`` bytes of dynamic
    shared memory per block permitted. Raises DeviceError if the device has less."""
    from cuda.bindings import driver

    cuda.current_context()
    compiled = kernel.compile(signature)
    if dynamic_shared:
        function = compiled._codelibrary.get_cufunc()
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        device = driver.CUdevice(int(cuda.current_context().device.id))
        (status,) = driver.cuKernelSetAttribute(attribute, dynamic_shared, function.handle, device)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise DeviceError(f"CUDA: no {dynamic_shared} bytes of shared memory for a block: {status.name}")
    return compiled


def current_device() -> int | None:
    """The number of the device whose context is current in this thread; None if there is none yet."""
    ask, success = _device_query()
    status, device = ask()
    return int(device) if status == success else None


@cache
def _device_query() -> tuple[Any, Any]:
    from cuda.bindings import driver

    return driver.cuCtxGetDevice, driver.CUresult.CUDA_SUCCESS
