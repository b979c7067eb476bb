"""Engines on a GPU that compute all pairs: one kernel, or a few, compiled for law, precision and dimensions.

Each engine's file has one function, ``build``, which returns a kernel, and a class that launches it. Most kernels compute
rows and share one signature: :mod:`nbody.forces.direct.gpu_rows`.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from nbody.forces.gpu_engine import GpuEngine, compiled
from nbody.state import Outputs, State
from nbody.state.device import DeviceState


class KernelEngine(GpuEngine):
    """An engine that launches the kernel of its function ``build``."""

    _build: ClassVar[Callable[..., Any]]
    """The function that builds the engine's kernel for a :class:`~nbody.forces.gpu_engine.Shape`."""

    def _tuning(self, count: int) -> tuple:
        """Further arguments of ``build`` for ``count`` particles."""
        return ()

    def _kernel(self, outputs: Outputs, state: DeviceState) -> Any:
        """The kernel for this engine's gravity and precision and for the state's number of particles."""
        return compiled(self._build, self._shape(outputs), *self._tuning(state.count))

    def _rehearse(self, state: State, outputs: Outputs) -> None:
        self._compute(state, outputs)

    def _compute(self, state: State, outputs: Outputs) -> None:
        assert isinstance(state, DeviceState)
        state.moves.flush()
        kernel, real = self._kernel(outputs, state), self._shape().real
        length2 = state.softening2 if self.gravity.per_species else real(self.gravity.length2)
        self._launch(kernel, state, self._dtype.type(self.gravity.G), length2)

    @abstractmethod
    def _launch(self, kernel: Any, state: DeviceState, G: Any, length2: Any) -> None:
        """Launch the kernel on the bodies of a state; ``G`` and ``length2`` (the softening length squared) are numbers.
        In engines with softening per species ``length2`` may be an array on the device, (N,), with the one of each body."""
