"""Forces within many small systems, on all cores: each core takes whole systems."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numba import prange

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.forces.engine import Engine
from nbody.forces.options import SystemsOptions
from nbody.forces.problem import Abilities
from nbody.forces.systems.pairs import sum_within
from nbody.law import inverse_root, pair_law
from nbody.state import Outputs, State
from nbody.state.host import HostState


class CpuSystemsEngine(Engine):
    """The accelerations and potentials within each system, in float64."""

    can = Abilities(("float64",), compiled=True, systems=True)
    state_type = HostState
    Options = SystemsOptions  # type: ignore[assignment]
    _options: SystemsOptions

    def _work_per_evaluation(self, state: State) -> int:
        return state.count * self._options.bodies(state.count)

    def _compute(self, state: State, outputs: Outputs) -> None:
        assert isinstance(state, HostState)
        n = self._options.bodies(state.count)
        within_for(self.gravity.softening)(
            state.position, state.mass, self.gravity.G, self.gravity.length2, n, state.acceleration, state.potential
        )
        state.progress.report(state.count * n)


@cache
def within_for(law_name: str) -> Callable:
    """The compiled function ``within(x, m, G, length2, n, a, phi)``: accelerations (N, D) and potentials (N,) of bodies with
    positions ``x`` (N, D) and masses ``m`` by the others of their systems of ``n`` bodies."""

    @inner
    def body(bodies, j):
        x, m = bodies
        return x[j, 0], x[j, 1], 0.0 if x.shape[1] == 2 else x[j, 2], m[j]

    sums = sum_within(pair_law(law_name, 3, inner(inverse_root), inner), body, inner)

    @compute.kernel("cpu", parallel=True)
    def within(x, m, G, length2, n, a, phi):
        for s in prange(m.size // n):
            for i in range(s * n, (s + 1) * n):
                ax, ay, az, w = sums((x, m), i, s * n, (s + 1) * n, length2)
                a[i, 0], a[i, 1], phi[i] = G * ax, G * ay, G * w
                if x.shape[1] == 3:
                    a[i, 2] = G * az

    return within


def energies(
    x: np.ndarray, v: np.ndarray, m: np.ndarray, G: float, length2: float, law_name: str, systems: int
) -> np.ndarray:
    """The total energy of each system, (S,), from positions and velocities (N, D) and masses (N,)."""
    a, phi = np.empty_like(x), np.empty(len(m))
    within_for(law_name)(x, m, G, length2, len(m) // systems, a, phi)
    return (0.5 * m * ((v * v).sum(axis=1) + phi)).reshape(systems, -1).sum(axis=1)
