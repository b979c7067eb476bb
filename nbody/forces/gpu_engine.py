"""What all engines on a GPU share: a state on the device, who computes its parts, and what kernels are compiled for.

The file of an engine for all pairs has a function ``build``, which returns a kernel, and a class that launches it. Most such
kernels compute rows and share one signature: :mod:`nbody.forces.direct.gpu_rows`.

In ``mixed`` precision the state is float64 and the arithmetic of a pair is float32: a kernel splits each coordinate into
two float32 numbers when it loads a body, sums 32 to 1280 pairs in float32, and adds these sums in float64.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nbody import compute
from nbody.forces.engine import Engine, Identity, Memory
from nbody.forces.layers.sorted import acting
from nbody.forces.options import GpuOptions
from nbody.forces.problem import Abilities, Problem
from nbody.forces.resources import require_device
from nbody.forces.transports.gpus import GpuTransport
from nbody.forces.transports.ranks import Ranks, fewest_for_ranks
from nbody.law import Gravity, pair_law, potential_factor
from nbody.parallel import ALONE, Team
from nbody.particles import Particles
from nbody.scenario.values import Group
from nbody.state import Outputs, State, itemsize
from nbody.state.device import DeviceState
from nbody.state.staging import device_bytes


class Shape(NamedTuple):
    """What a kernel is compiled for: ``dtype`` is the type of a pair's arithmetic, ``outputs`` is what it computes besides
    accelerations, ``mixed`` means that the state and the sums are float64 although ``dtype`` is float32, and ``per_species``
    that each body has a softening length."""

    softening: str
    dimensions: int
    dtype: np.dtype
    outputs: Outputs = Outputs.ACCELERATION
    mixed: bool = False
    per_species: bool = False

    @property
    def potential(self) -> bool:
        """True if the kernel computes the potential or the potential energy."""
        return Outputs.ENERGY in self.outputs

    @property
    def law(self) -> Callable:
        """The pair law as a CUDA device function; see :func:`nbody.law.pair_law`."""
        return pair_law(self.softening, self.dimensions, compute.rsqrt, compute.device_function)

    @property
    def potential_factor(self) -> Callable:
        """:func:`nbody.law.potential_factor` as a CUDA device function."""
        return compute.device_function(potential_factor)

    @property
    def real(self) -> type:
        """NumPy's scalar type for ``dtype``; kernels write their literals with it."""
        return self.dtype.type

    @property
    def flat(self) -> bool:
        """True in 2-D."""
        return self.dimensions == 2


class GpuEngine(Engine):
    """An engine whose particles stay on the GPU."""

    Options = GpuOptions  # type: ignore[assignment]
    can = Abilities(device="gpu")
    state_type = DeviceState

    _name: ClassVar[str] = "gpu"
    """Its name in the registry."""

    def __init__(
        self, gravity: Gravity, precision: str = "float32", options: Group | None = None, team: Team = ALONE
    ) -> None:
        require_device(type(self), self._name)
        super().__init__(gravity, precision, options, team)
        self._devices = compute.devices_for(getattr(self._options, "gpus", None))
        compute.use_device(self._devices[0])

    def identity(self, state: State | None = None) -> Identity:
        card, devices = compute.facts(), 1
        if isinstance(state, DeviceState):
            devices += len(state.partition.transport.helpers)
        return Identity(f"{devices} x {card.name}" if devices > 1 else card.name, card.driver)

    @classmethod
    def memory(cls, problem: Problem) -> Memory:
        # The state, with the packed frames; on a helper its bodies and accelerations.
        own, size = super().memory(problem).own, itemsize(problem.precision)
        dtype = np.dtype(np.float32 if problem.precision == "float32" else np.float64)
        return Memory(own + device_bytes(problem.particles, dtype), 9 * problem.particles * size)

    def _prepare(self, state: State, particles: Particles) -> None:
        assert isinstance(state, DeviceState)
        count = acting(particles.mass.astype(self._dtype)) if self.can.massless else state.count
        state.partition.acting = count
        if self.can.gpus and len(self._devices) > 1 and count >= self.can.divided_from:
            state.partition.transport = GpuTransport(self._devices, state, self.gravity.per_species)
        if self.can.ranks and self._team.size > 1 and count >= fewest_for_ranks(self):
            state.partition.transport = Ranks(self._team)

    def _shape(self, outputs: Outputs = Outputs.ACCELERATION) -> Shape:
        """What a kernel for this engine's gravity and precision is compiled for."""
        mixed = self.precision == "mixed"
        dtype = np.dtype(np.float32) if mixed else self._dtype
        return Shape(self.gravity.softening, self.gravity.dimensions, dtype, outputs, mixed, self.gravity.per_species)

    def _work_per_evaluation(self, state: State) -> int:
        assert isinstance(state, DeviceState)
        return state.count * state.partition.acting


class KernelEngine(GpuEngine):
    """An engine that launches the kernel of its function ``build``."""

    _build: ClassVar[Callable[..., Any]]
    """The function that builds the engine's kernel for a :class:`Shape`, once per process."""

    def _tuning(self, count: int) -> tuple:
        """Further arguments of ``build`` for ``count`` particles."""
        return ()

    def _kernel(self, outputs: Outputs, state: DeviceState) -> Any:
        """The kernel for this engine's gravity and precision and for the state's number of particles."""
        return self._build(self._shape(outputs), *self._tuning(state.count))

    def _rehearse(self, state: State, outputs: Outputs) -> None:
        self._compute(state, outputs)

    def _compute(self, state: State, outputs: Outputs) -> None:
        assert isinstance(state, DeviceState)
        kernel, real = self._kernel(outputs, state), self._shape().real
        length2 = state.column("softening2") if self.gravity.per_species else real(self.gravity.length2)
        self._launch(kernel, state, self._dtype.type(self.gravity.G), length2)

    @abstractmethod
    def _launch(self, kernel: Any, state: DeviceState, G: Any, length2: Any) -> None:
        """Launch the kernel on the bodies of a state; ``G`` and ``length2`` (the softening length squared) are numbers.
        In engines with softening per species ``length2`` may be an array on the device, (N,), with the one of each body."""
