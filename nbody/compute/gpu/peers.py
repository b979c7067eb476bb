"""Several devices of one host: which there are, a stream on each, and the order of work between them.

One device is the first: it is current in the threads of a run. The others are helpers, each with its own stream, which
waits for events of the first one's stream and is waited for by it. A CUDA graph that is recorded on the first one's stream
therefore has the work of all. Copies between devices are direct where the devices have access to each other's memory (NVLink
or PCI Express); elsewhere the driver makes them through the host's memory.
"""

import atexit
import contextlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from nbody.compute.gpu.device import SIMULATED, cuda, facts, use_device
from nbody.compute.gpu.failures import HELPING, failure, is_of_driver
from nbody.errors import InputError, counted

Gpus = int | str | Sequence[int] | None
"""What a user asks for: a number of devices, ``all``, the devices' own numbers, or None for one."""


def device_count() -> int:
    """The number of devices that CUDA shows to this process."""
    return 1 if SIMULATED else len(cuda.gpus)


def devices_for(gpus: Gpus, where: str = "") -> tuple[int, ...]:
    """The numbers of the devices that a user asks for, of which the first one holds the run.

    Raises:
        InputError: there are fewer, or they are cards of several kinds, whose bits would differ; begins with ``where``.
    """
    if gpus is None or gpus == 1:
        return (0,)
    there = device_count()
    if isinstance(gpus, int | str):
        wanted = tuple(range(there if gpus == "all" else int(gpus)))
    else:
        wanted = tuple(gpus)
    shown = counted(there, "GPU")
    if isinstance(gpus, int) and gpus > there:
        raise InputError(f"{where}{gpus} GPUs are asked for; this machine has {shown}; write --gpus {there}, or all")
    if missing := [str(number) for number in wanted if number >= there]:
        raise InputError(f"{where}there is no GPU {', '.join(missing)}; this machine has {shown}, counted from 0")
    kinds = {number: _kind(number) for number in wanted}
    other = next((number for number in wanted if kinds[number] != kinds[wanted[0]]), None)
    if other is not None:
        raise InputError(
            f"{where}GPU {wanted[0]} is a {kinds[wanted[0]][0]} and GPU {other} a {kinds[other][0]}; GPUs that compute one "
            "run together must be of one kind (choose some by their numbers: --gpus 0,2)"
        )
    return wanted


@cache
def _kind(number: int) -> tuple[Any, ...]:
    """What decides how work is divided on a device, and so the bits of its results."""
    with on(number):
        card = facts()
    return card.name, card.compute_capability, card.multiprocessors, card.memory_total >> 30


@contextlib.contextmanager
def on(number: int) -> Iterator[None]:
    """Make a device current inside this ``with`` block. Any failure there becomes one line that names the device.

    Raises:
        GpuFailed: the driver reports an error.
    """
    try:
        with contextlib.nullcontext() if SIMULATED else cuda.gpus[number]:
            yield
    except Exception as error:
        if not is_of_driver(error):
            raise
        raise failure(number, error) from error


class Helper:
    """A stream on another device than the first.

    Attributes:
        device: its number.
        stream: belongs to it.
    """

    def __init__(self, device: int) -> None:
        self.device = device
        with self.current():
            self.stream, self._done = cuda.stream(), _event()
        HELPING.add(self)

    def current(self) -> contextlib.AbstractContextManager[None]:
        """Make the device current inside a ``with`` block; see :func:`on`."""
        return on(self.device)

    def join(self, stream: Any) -> None:
        """Let another stream, of any device, wait for all work that is queued on this one."""
        with self.current():
            self._done.record(self.stream)
        self._done.wait(stream)


class Fork:
    """The event of the first device at which its helpers start."""

    def __init__(self) -> None:
        self._event = _event()

    def start(self, helpers: Sequence[Helper], stream: Any) -> None:
        """Let the helpers wait for all work that is queued on ``stream``."""
        self._event.record(stream)
        for helper in helpers:
            self._event.wait(helper.stream)


def _event() -> Any:
    return cuda.event() if SIMULATED else cuda.event(timing=False)


def connect(devices: Sequence[int]) -> bool:
    """Give devices access to each other's memory. Returns False if some have none: their copies go through the host."""
    if SIMULATED:
        return True
    from cuda.bindings import driver

    atexit.register(_unload_once, [cuda.gpus[number].get_primary_context() for number in dict.fromkeys(devices)])
    access = True
    for one in set(devices):
        for other in set(devices) - {one}:
            _, able = driver.cuDeviceCanAccessPeer(driver.CUdevice(one), driver.CUdevice(other))
            _, context = driver.cuDevicePrimaryCtxRetain(driver.CUdevice(other))
            with on(one):
                (enabled,) = driver.cuCtxEnablePeerAccess(context, 0) if able else (None,)
            fine = driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
            access = access and enabled in fine
    return access


def _unload_once(contexts: Sequence[Any]) -> None:
    """Let each library of kernels be unloaded once when the process ends. Numba loads one library for all devices of a kind
    and would unload it for each: the driver aborts with "double free or corruption"."""
    unloaded = set()
    for context in contexts:
        for module in list(context.modules.values()):
            with contextlib.suppress(Exception):  # a later version of Numba: as it was
                library = int(module.object_code.handle)
                if library in unloaded:
                    module._finalizer.detach()
                unloaded.add(library)


def bandwidth(one: int, other: int, size: int = 64 << 20) -> float:
    """Bytes per second of a copy from one device to another, the best of several; measured. The first one is current
    afterwards."""
    import numpy as np

    with on(one):
        source = cuda.to_device(np.zeros(size, np.uint8))
    with on(other):
        copy, stream, times = cuda.device_array(size, np.uint8), cuda.stream(), []
        for _ in range(6):
            begin, end = cuda.event(), cuda.event()
            begin.record(stream)
            copy.copy_to_device(source, stream)
            end.record(stream)
            end.synchronize()
            times.append(1e-3 * cuda.event_elapsed_time(begin, end))
    use_device(one)
    return size / min(times)
