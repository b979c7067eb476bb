"""OpenGL buffers that CUDA fills: positions go from device memory to the picture without the host (interop)."""

from collections.abc import Callable, Sequence
from typing import Any

from nbody.compute.gpu.device import cuda
from nbody.compute.gpu.driver import SIMULATED
from nbody.errors import DeviceError


class SharedBuffers:
    """Copies device arrays into buffers of the current OpenGL context.

    The copies are made on a stream of the highest priority, so that a picture does not wait for the forces that are being
    computed. Make and use it on the thread of the OpenGL context.

    Raises:
        DeviceError: CUDA's current device does not draw for this context; the message is the reason.
    """

    def __init__(self) -> None:
        if SIMULATED:
            raise DeviceError("kernels run in a simulator")
        from cuda.bindings import driver

        self._driver = driver
        self._resources: dict[int, Any] = {}
        device = cuda.current_context().device.id  # makes the context current in this thread
        found, *drawing = _answer(driver.cuGLGetDevices, 16, driver.CUGLDeviceList.CU_GL_DEVICE_LIST_ALL)
        if device not in [int(each) for each in drawing[0][:found]]:
            raise DeviceError("another GPU draws")
        _, highest = _answer(driver.cuCtxGetStreamPriorityRange)
        flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        (self._stream,) = _answer(driver.cuStreamCreateWithPriority, int(flags), highest)

    def copy(self, arrays: Sequence[Any], buffers: Sequence[int], after: Any, done: Any) -> None:
        """Copy contiguous device arrays into OpenGL buffers of the same sizes, without waiting.

        Args:
            buffers: their OpenGL names. OpenGL must not delete or resize one afterwards.
            after: the event after which the arrays may be read.
            done: the event that is recorded when they have been read.

        Raises:
            DeviceError: a buffer can't be shared.
        """
        driver, stream = self._driver, self._stream
        _answer(driver.cuStreamWaitEvent, stream, driver.CUevent(int(after.handle)), 0)
        for array, buffer in zip(arrays, buffers, strict=True):
            resource, size = self._resource(buffer), array.nbytes
            _answer(driver.cuGraphicsMapResources, 1, resource, stream)
            try:
                target, room = _answer(driver.cuGraphicsResourceGetMappedPointer, resource)
                if int(room) < size:
                    raise DeviceError(f"an OpenGL buffer has {int(room)} bytes instead of {size}")
                _answer(driver.cuMemcpyDtoDAsync, target, array.device_ctypes_pointer.value, size, stream)
            finally:
                _answer(driver.cuGraphicsUnmapResources, 1, resource, stream)
        _answer(driver.cuEventRecord, driver.CUevent(int(done.handle)), stream)

    def _resource(self, buffer: int) -> Any:
        if buffer not in self._resources:
            flags = self._driver.CUgraphicsRegisterFlags.CU_GRAPHICS_REGISTER_FLAGS_WRITE_DISCARD
            (self._resources[buffer],) = _answer(self._driver.cuGraphicsGLRegisterBuffer, buffer, int(flags))
        return self._resources[buffer]


def _answer(function: Callable, *arguments: Any) -> list[Any]:
    """What a function of the driver returns besides its status."""
    status, *found = function(*arguments)
    if int(status):
        raise DeviceError(f"{function.__name__}: {status.name.removeprefix('CUDA_ERROR_').lower().replace('_', ' ')}")
    return found
