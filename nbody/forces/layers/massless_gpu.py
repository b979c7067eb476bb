"""Bodies with mass first, on a GPU."""

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.forces.engine import Targets
from nbody.forces.layers.sorted import Sorted
from nbody.state import Outputs
from nbody.state.device import DeviceState

THREADS = 256


class DeviceSorted(Sorted[DeviceState]):
    """In the memory of a GPU: ``body``, ``acceleration`` and ``softening2`` of :mod:`nbody.state.device`."""

    def __init__(self, state: DeviceState, order: np.ndarray, per_species: bool) -> None:
        super().__init__(state, order)
        self._on_device = cuda.to_device(order.astype(np.int64))
        for name in ("body", "acceleration"):
            setattr(self.state, name, cuda.to_device(np.zeros((state.count, 4), state.dtype)))
        for name in ["softening2"] * per_species:
            setattr(self.state, name, cuda.to_device(state.column(name).copy_to_host()[order]))

    def gather(self, state: DeviceState, outputs: Outputs) -> None:
        gather_rows[-(-state.count // THREADS), THREADS, state.stream](state.body, self._on_device, self.state.body)

    def scatter(self, state: DeviceState, outputs: Outputs, targets: Targets, accelerations: bool) -> None:
        assert targets is None  # of engines on a GPU only the tree computes some, and it sums over all bodies
        first, end = np.int64(0 if accelerations else 3), np.int64(4 if Outputs.ENERGY in outputs else 3)
        blocks = -(-state.count // THREADS)
        scatter_rows[blocks, THREADS, state.stream](self.state.acceleration, self._on_device, state.acceleration, first, end)


@compute.kernel("gpu")
def gather_rows(source, order, destination):
    """destination[q] = source[order[q]], rows of four numbers."""
    q = cuda.grid(1)
    if q < destination.shape[0]:
        for k in range(4):
            destination[q, k] = source[order[q], k]


@compute.kernel("gpu")
def scatter_rows(source, order, destination, first, end):
    """destination[order[q]] = source[q], for the components ``first`` to ``end`` of rows of four numbers."""
    q = cuda.grid(1)
    if q < destination.shape[0]:
        for k in range(first, end):
            destination[order[q], k] = source[q, k]
