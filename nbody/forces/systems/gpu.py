"""Forces within many small systems, on a GPU: one thread per body, which reads the bodies of its system."""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import cuda
from nbody.forces.gpu_engine import KernelEngine, Shape
from nbody.forces.options import GpuOptions, SystemsOptions
from nbody.forces.problem import Abilities
from nbody.state import State
from nbody.state.device import DeviceState

THREADS = 128


@cache
def build(shape: Shape, bodies: int) -> Any:
    """The kernel for systems of ``bodies`` bodies."""
    law, zero = shape.law, shape.real(0)

    @compute.kernel("gpu")
    def within(body, acceleration, G, length2):
        i = cuda.grid(1)
        if i >= body.shape[0]:
            return
        first = i - i % bodies
        ax = ay = az = phi = zero
        for j in range(first, first + bodies):
            dx, dy, dz = body[j, 0] - body[i, 0], body[j, 1] - body[i, 1], body[j, 2] - body[i, 2]
            # Two bodies in the same place: their system has ended, and the others go on.
            if j != i and dx * dx + dy * dy + dz * dz + length2 > zero:
                f, u = law(dx, dy, dz, length2)
                m = body[j, 3]
                ax += m * f * dx
                ay += m * f * dy
                az += m * f * dz
                phi -= m * u
        acceleration[i, 0], acceleration[i, 1], acceleration[i, 2], acceleration[i, 3] = G * ax, G * ay, G * az, G * phi

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
