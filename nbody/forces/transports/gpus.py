"""Several GPUs in one force evaluation: the first one holds the state, and the others help.

For an evaluation the bodies are copied to the helpers, every device computes its part into its own memory, and the first
one gets the results. One thread launches the work of all: their pieces (:mod:`nbody.forces.direct.gpu_triangle`) in turns.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.state.device import DeviceState
from nbody.state.partition import ForceTransport, Worker


class HelpingGpu(Worker):
    """A further device, with copies of the first device's arrays."""

    def __init__(self, number: int, device: int, state: DeviceState, per_species: bool, direct: bool) -> None:
        self.gpu, self._direct, self._results = compute.Helper(device), direct, (None, None)
        count, dtype = state.count, state.dtype
        with self.current():
            body, acceleration = (cuda.to_device(np.zeros((count, 4), dtype)) for _ in range(2))
            length2 = cuda.to_device(np.zeros(count, dtype)) if per_species else None
        super().__init__(number, self.gpu.stream, body, acceleration, length2)

    def current(self) -> contextlib.AbstractContextManager[None]:
        return self.gpu.current()

    def join(self, stream: Any) -> None:
        self.gpu.join(stream)

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


class GpuTransport(ForceTransport):
    """Several devices of this process: that of a state, and its helpers.

    Attributes:
        direct: the devices have access to each other's memory.
    """

    def __init__(self, devices: Sequence[int], state: DeviceState, per_species: bool) -> None:
        self.size, self.direct = len(devices), compute.connect(devices)
        with compute.out_of_memory(f"the copies of {state.count} particles", state.count * 9 * state.dtype.itemsize):
            self.helpers = [
                HelpingGpu(number, device, state, per_species, self.direct) for number, device in enumerate(devices[1:], 1)
            ]
        self._fork = compute.Fork()

    def _begin(self, first: Worker) -> Sequence[Worker]:
        self._fork.start([helper.gpu for helper in self.helpers], first.stream)
        for helper in self.helpers:
            helper.read(first.body, first.length2)
        return self.helpers

    def _end(self, stream: Any) -> None:
        for helper in self.helpers:
            helper.join(stream)
