"""What the GPU engines share: a state on the device, and a kernel compiled for law, precision and dimensions.

Each engine's file has one function, ``build``, which returns a kernel, and a class that says how it is launched. Most
kernels compute rows and share one signature: :mod:`nbody.forces.direct.gpu_rows`. Kernels are built once per process and
shape, by :func:`compiled`.

In ``mixed`` precision the state is float64 and a pair's arithmetic float32: a kernel splits each coordinate into two
float32 numbers when it loads a body, and adds up in float64 what 32 to 1280 pairs gave.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.engine import Engine
from nbody.law import Gravity, pair_law
from nbody.particles import Particles
from nbody.scenario.fields import Group
from nbody.state import SIDES, State, Want, frame_bytes, frames_per_block
from nbody.state.device import DeviceState


class Shape(NamedTuple):
    """What a kernel is compiled for; ``dtype`` is that of a pair's arithmetic, ``wanted`` what it computes beside
    accelerations, and ``mixed`` says that the state and the sums are float64 all the same."""

    softening: str
    dimensions: int
    dtype: np.dtype
    wanted: Want = Want.ACCELERATION
    mixed: bool = False

    @property
    def potential(self) -> bool:
        """True if it computes anything of the potential."""
        return Want.ENERGY in self.wanted

    @property
    def law(self) -> Callable:
        """The pair law as a CUDA device function; see :func:`nbody.law.pair_law`."""
        return pair_law(self.softening, self.dimensions, gpu.rsqrt, gpu.device_function)

    @property
    def real(self) -> type:
        """NumPy's scalar type of the precision, which makes literals of it inside a kernel."""
        return self.dtype.type

    @property
    def flat(self) -> bool:
        """True in 2-D."""
        return self.dimensions == 2


@cache
def compiled(build: Callable[..., Any], shape: Shape, *tuning: Any) -> Any:
    """``build(shape, *tuning)``, kept for the rest of the process."""
    return build(shape, *tuning)


class GpuEngine(Engine):
    """An engine whose particles stay on the GPU."""

    device = "gpu"
    replayable = True
    state_type = DeviceState
    name = "gpu"
    build: ClassVar[Callable[..., Any]]
    """The function that makes the engine's kernel for a :class:`Shape`."""

    interactions_a_root: ClassVar[int] = 1
    """Interactions that one reciprocal square root of its kernel serves: 2 where each pair is computed once."""

    def __init__(self, gravity: Gravity, precision: str = "float32", options: Group | None = None) -> None:
        self.require_device()
        super().__init__(gravity, precision, options)

    @classmethod
    def require_device(cls) -> None:
        """See :meth:`Engine.require_device`."""
        gpu.require(f"engine '{cls.name}'")

    def load(self, particles: Particles) -> DeviceState:
        """See :meth:`Engine.load`."""
        return DeviceState(particles, self.dtype)

    def device_name(self) -> str:
        """See :meth:`Engine.device_name`."""
        return gpu.facts().name

    def driver(self) -> str:
        """See :meth:`Engine.driver`."""
        return gpu.facts().driver

    def shape(self, want: Want = Want.ACCELERATION) -> Shape:
        """What a kernel for this engine's gravity and precision is compiled for."""
        mixed = self.precision == "mixed"
        dtype = np.dtype(np.float32) if mixed else self.dtype
        return Shape(self.gravity.softening, self.gravity.dimensions, dtype, want, mixed)

    def tuning(self, count: int) -> tuple:
        """What a kernel for so many particles is compiled for besides: further arguments of ``build``."""
        return ()

    def kernel(self, want: Want, state: DeviceState) -> Any:
        """The kernel for this engine's gravity and precision, and a state's number of particles."""
        return compiled(self.build, self.shape(want), *self.tuning(state.count))

    def _compute(self, state: State, want: Want) -> None:
        assert isinstance(state, DeviceState)
        state.settle()
        kernel, real = self.kernel(want, state), self.shape().real
        self.launch(kernel, state, self.dtype.type(self.gravity.G), real(self.gravity.length2))

    @abstractmethod
    def launch(self, kernel: Any, state: DeviceState, G: Any, length2: Any) -> None:
        """Start the kernel on the state."""

    @classmethod
    def bytes_needed(cls, particles: int, precision: str) -> int:
        """See :meth:`Engine.bytes_needed`; with the packed frames."""
        frames = SIDES * frames_per_block(particles, precision) * frame_bytes(particles, precision)
        return super().bytes_needed(particles, precision) + frames
