"""What the GPU engines share: a state on the device, and a kernel compiled for law, precision and dimensions.

Each engine's file has one function, ``build``, which returns a kernel, and a class that launches it. Most kernels compute
rows and share one signature: :mod:`nbody.forces.direct.gpu_rows`. :func:`compiled` builds a kernel once per process and
shape.

In ``mixed`` precision the state is float64 and the arithmetic of a pair is float32: a kernel splits each coordinate into
two float32 numbers when it loads a body, sums 32 to 1280 pairs in float32, and adds these sums in float64.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.direct.gpu_helpers import Helpers
from nbody.forces.direct.gpu_massless import Division
from nbody.forces.direct.gpu_options import GpuOptions
from nbody.forces.direct.gpu_ranks import FEWEST, Ranks
from nbody.forces.direct.gpu_triangle import SHARES_FROM
from nbody.forces.engine import Engine
from nbody.law import Gravity, pair_law
from nbody.parallel import launch
from nbody.particles import Particles
from nbody.scenario.fields import Group
from nbody.state import State, Want, itemsize
from nbody.state.device import DeviceState
from nbody.state.staging import device_bytes


class Shape(NamedTuple):
    """What a kernel is compiled for: ``dtype`` is the type of a pair's arithmetic, ``wanted`` is what it computes besides
    accelerations, ``mixed`` means that the state and the sums are float64 although ``dtype`` is float32, and ``per_species``
    that each body has a softening length."""

    softening: str
    dimensions: int
    dtype: np.dtype
    wanted: Want = Want.ACCELERATION
    mixed: bool = False
    per_species: bool = False

    @property
    def potential(self) -> bool:
        """True if the kernel computes the potential or the potential energy."""
        return Want.ENERGY in self.wanted

    @property
    def law(self) -> Callable:
        """The pair law as a CUDA device function; see :func:`nbody.law.pair_law`."""
        return pair_law(self.softening, self.dimensions, gpu.rsqrt, gpu.device_function)

    @property
    def real(self) -> type:
        """NumPy's scalar type for ``dtype``; kernels write their literals with it."""
        return self.dtype.type

    @property
    def flat(self) -> bool:
        """True in 2-D."""
        return self.dimensions == 2


@cache
def compiled(build: Callable[..., Any], shape: Shape, *tuning: Any) -> Any:
    """``build(shape, *tuning)``, cached for the rest of the process."""
    return build(shape, *tuning)


class Bodies(NamedTuple):
    """The arrays of a launch, (N, 4) each, see :mod:`nbody.state.device`; the first ``acting`` bodies exert forces."""

    body: Any
    acceleration: Any
    acting: int


class GpuEngine(Engine):
    """An engine whose particles stay on the GPU."""

    Options = GpuOptions  # type: ignore[assignment]
    device = "gpu"
    state_type = DeviceState
    name = "gpu"
    build: ClassVar[Callable[..., Any]]
    """The function that builds the engine's kernel for a :class:`Shape`."""

    divided_from: ClassVar[int] = SHARES_FROM
    """The fewest bodies with mass whose forces several GPUs, or ranks, divide."""

    _skips_massless: ClassVar[bool] = False
    """True if its launches leave out bodies without mass, if there are many: ``load`` then makes a ``state.division``."""

    interactions_per_root: ClassVar[int] = 1
    """Interactions per reciprocal square root of the kernel: 2 if each pair is computed once, else 1."""

    def __init__(self, gravity: Gravity, precision: str = "float32", options: Group | None = None) -> None:
        self.require_device()
        super().__init__(gravity, precision, options)
        self.devices = gpu.devices_for(getattr(self.options, "gpus", None))
        """The numbers of the GPUs, of which the first one holds the state."""
        gpu.use_device(self.devices[0])

    @classmethod
    def require_device(cls) -> None:
        remedy = "start as many ranks per host as it has GPUs, or " if launch() else ""
        gpu.require(f"engine '{cls.name}'", f"{remedy}use --engine cpu")

    @property
    def divided_by_ranks_from(self) -> int:
        """The fewest acting bodies whose forces ranks divide."""
        return max(self.divided_from, FEWEST[self.precision])

    def load(self, particles: Particles) -> DeviceState:
        state = DeviceState(particles, self.dtype)
        self.soften(state, particles)
        if self._skips_massless and Division.useful(particles.mass.astype(self.dtype)):
            gravity, softening2 = self.gravity, None
            if gravity.per_species:
                softening2 = gravity.squares(particles.species, particles.species_names)
            state.division = Division(particles.mass.astype(self.dtype), self.dtype, softening2)
        if self.can.gpus and len(self.devices) > 1 and self.acting(state) >= self.divided_from:
            state.helpers = Helpers(self.devices, state, self.gravity.per_species)
        if self.can.ranks and self.team.size > 1 and self.acting(state) >= self.divided_by_ranks_from:
            state.ranks = Ranks(self.team)
        return state

    def acting(self, state: State) -> int:
        assert isinstance(state, DeviceState)
        return state.division.count if state.division else state.count

    def device_name(self) -> str:
        return gpu.facts().name

    def devices_name(self, state: State) -> str:
        assert isinstance(state, DeviceState)
        return f"{state.helpers.size} x {self.device_name()}" if state.helpers else self.device_name()

    def driver(self) -> str:
        return gpu.facts().driver

    def shape(self, want: Want = Want.ACCELERATION) -> Shape:
        """What a kernel for this engine's gravity and precision is compiled for."""
        mixed = self.precision == "mixed"
        dtype = np.dtype(np.float32) if mixed else self.dtype
        return Shape(self.gravity.softening, self.gravity.dimensions, dtype, want, mixed, self.gravity.per_species)

    def tuning(self, count: int) -> tuple:
        """Further arguments of ``build`` for ``count`` particles."""
        return ()

    def kernel(self, want: Want, state: DeviceState) -> Any:
        """The kernel for this engine's gravity and precision and for the state's number of particles."""
        return compiled(self.build, self.shape(want), *self.tuning(state.count))

    def _compute(self, state: State, want: Want) -> None:
        assert isinstance(state, DeviceState)
        state.settle()
        kernel, real = self.kernel(want, state), self.shape().real
        divided, G = state.division, self.dtype.type(self.gravity.G)
        length2 = state.softening2 if self.gravity.per_species else real(self.gravity.length2)
        if divided is None:
            self.launch(kernel, state, Bodies(state.body, state.acceleration, state.count), G, length2)
            return
        divided.gather(state.body, state.stream)
        bodies = Bodies(divided.body, divided.acceleration, divided.count)
        self.launch(kernel, state, bodies, G, length2 if divided.length2 is None else divided.length2)
        divided.scatter(state.acceleration, 4 if Want.ENERGY in want else 3, state.stream)

    @abstractmethod
    def launch(self, kernel: Any, state: DeviceState, bodies: Bodies, G: Any, length2: Any) -> None:
        """Launch the kernel on the bodies of a state; ``G`` and ``length2`` (the softening length squared) are numbers.
        In engines with softening per species ``length2`` may be an array on the device, (N,), with the one of each body."""

    @classmethod
    def bytes_to_help(cls, particles: int, precision: str) -> int:
        return 9 * particles * itemsize(precision)

    @classmethod
    def bytes_needed(cls, particles: int, precision: str) -> int:
        # Includes the packed frames.
        dtype = np.dtype(np.float32 if precision == "float32" else np.float64)
        return super().bytes_needed(particles, precision) + device_bytes(particles, dtype)
