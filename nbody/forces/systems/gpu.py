"""Forces within many small systems, on a GPU: one thread per body, which reads the bodies of its system."""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import cuda
from nbody.forces.gpu_engine import KernelEngine, Shape
from nbody.forces.options import GpuOptions, SystemsOptions
from nbody.forces.problem import Abilities
from nbody.forces.systems.pairs import sum_within
from nbody.state import State
from nbody.state.device import DeviceState

THREADS = 128


@cache
def build(shape: Shape, bodies: int) -> Any:
    """The kernel for systems of ``bodies`` bodies."""

    @compute.exact_function
    def body_of(body, j):
        return body[j, 0], body[j, 1], body[j, 2], body[j, 3]

    sums = sum_within(shape.law, body_of, compute.exact_function)

    @compute.kernel("gpu")
    def within(body, acceleration, G, length2):
        i = cuda.grid(1)
        if i < body.shape[0]:
            first = i - i % bodies
            ax, ay, az, phi = sums(body, i, first, first + bodies, length2)
            acceleration[i, 0], acceleration[i, 1], acceleration[i, 2] = G * ax, G * ay, G * az
            acceleration[i, 3] = G * phi

    return within


class GpuSystemsOptions(SystemsOptions, GpuOptions):
    """Which GPU computes."""


class GpuSystemsEngine(KernelEngine):
    """The accelerations and potentials within each system, in float64."""

    can = Abilities(("float64",), "gpu", systems=True)
    Options = GpuSystemsOptions  # type: ignore[assignment]
    _options: SystemsOptions
    _build = staticmethod(build)

    def _work_per_evaluation(self, state: State) -> int:
        return state.count * self._options.bodies(state.count)

    def _tuning(self, count: int) -> tuple:
        return (self._options.bodies(count),)

    def _launch(self, kernel: Any, state: DeviceState, G: Any, length2: Any) -> None:
        kernel[-(-state.count // THREADS), THREADS, state.stream](state.body, state.acceleration, G, length2)
        state.progress.report(self.work(state))
