"""Several GPUs in one force evaluation: the first one holds the state, and the others help.

For an evaluation the bodies are copied to the helpers, every device computes its part into its own memory, and the first
one gets the results. One thread launches the work of all: their pieces (:mod:`nbody.forces.direct.gpu_pieces`) in turns.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from nbody import gpu
from nbody.gpu import cuda
from nbody.state.device import DeviceState


class Worker:
    """A device in an evaluation, and the arrays that it reads and writes.

    Attributes:
        number: which part of the work it computes.
        stream: where its kernels are launched.
        body, acceleration: (N, 4) each, see :mod:`nbody.state.device`.
        length2: the ε² of all bodies, a number, or of each, (N,).
        part: what else the engine keeps on the device.
    """

    def __init__(self, number: int, stream: Any, body: Any, acceleration: Any, length2: Any, part: Any = None) -> None:
        self.number, self.stream, self.part = number, stream, part
        self.body, self.acceleration, self.length2 = body, acceleration, length2

    def current(self) -> contextlib.AbstractContextManager[None]:
        """Make the device current inside a ``with`` block."""
        return contextlib.nullcontext()

    def send_results(self) -> None:
        """Copy the results to the first device, if they are elsewhere, when :attr:`stream` reaches this point."""

    def send_rows(self, acceleration: Any, rows: slice) -> None:
        """Copy some rows of the accelerations to the first device's, if they are elsewhere."""


class HelpingWorker(Worker):
    """A helper, with copies of the first device's arrays."""

    def __init__(self, number: int, device: int, state: DeviceState, per_species: bool, direct: bool) -> None:
        self.helper, self._direct, self._results = gpu.Helper(device), direct, (None, None)
        count, dtype = state.count, state.dtype
        with self.current():
            body, acceleration = (cuda.to_device(np.zeros((count, 4), dtype)) for _ in range(2))
            length2 = cuda.to_device(np.zeros(count, dtype)) if per_species else None
        super().__init__(number, self.helper.stream, body, acceleration, length2)

    def current(self) -> contextlib.AbstractContextManager[None]:
        return self.helper.current()

    def read(self, body: Any, length2: Any) -> None:
        """Copy what the first device has."""
        with self.current():
            self.body.copy_to_device(body, self.stream)
            if hasattr(length2, "shape") and length2.shape:
                self.length2.copy_to_device(length2, self.stream)
            else:
                self.length2 = length2

    def results(self, array: Any) -> Any:
        """Where this device's kernels write what belongs into an array of the first device: there, if it has access."""
        if self._direct:
            return array
        self._results = array, cuda.device_array(array.shape, array.dtype)
        return self._results[1]

    def send_results(self) -> None:
        array, own = self._results
        if array is not None:
            array.copy_to_device(own, self.stream)

    def send_rows(self, acceleration: Any, rows: slice) -> None:
        acceleration[rows].copy_to_device(self.acceleration[rows], self.stream)


class Helpers:
    """The devices that help the one of a state.

    Attributes:
        size: the number of devices, the first one too.
        workers: those of the helpers.
        direct: the devices have access to each other's memory.
    """

    def __init__(self, devices: Sequence[int], state: DeviceState, per_species: bool) -> None:
        self.size, self.direct = len(devices), gpu.connect(devices)
        with gpu.out_of_memory(f"the copies of {state.count} particles", state.count * 9 * state.dtype.itemsize):
            self.workers = [
                HelpingWorker(number, device, state, per_species, self.direct)
                for number, device in enumerate(devices[1:], 1)
            ]
        self._fork = gpu.Fork()

    def begin(self, body: Any, length2: Any, stream: Any) -> list[HelpingWorker]:
        """Let the helpers copy the bodies when ``stream`` reaches this point."""
        self._fork.start([worker.helper for worker in self.workers], stream)
        for worker in self.workers:
            worker.read(body, length2)
        return self.workers

    def end(self, stream: Any) -> None:
        """Let ``stream`` wait for the helpers."""
        for worker in self.workers:
            worker.helper.join(stream)


def launch_in_turns(workers: Sequence[Worker], pieces: Callable[[Worker], Iterator[int]], state: DeviceState) -> None:
    """Launch the work of all devices, a piece of each in turn. ``pieces(worker)`` launches a piece before each number of
    interactions that it yields."""
    running = [(worker, pieces(worker)) for worker in workers]
    while running:
        interactions = 0
        for worker, launching in list(running):
            with worker.current():
                launched = next(launching, None)
            if launched is None:
                running.remove((worker, launching))
            else:
                interactions += launched
        if interactions:
            state.report(interactions)


def bounds(count: int, parts: int, multiple: int = 1) -> list[int]:
    """The first of ``count`` items of each part, and ``count``; parts are multiples of a number, as equal as possible."""
    groups = -(-count // multiple)
    return [min(count, groups * part // parts * multiple) for part in range(parts + 1)]
