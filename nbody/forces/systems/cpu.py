"""Forces within many small systems, on all cores: each core takes whole systems."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numba import njit, prange

from nbody import compute
from nbody.forces.engine import Engine
from nbody.forces.options import SystemsOptions
from nbody.forces.problem import Abilities
from nbody.law import pair_law
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

    @njit(error_model="numpy")
    def rsqrt(x):
        return 1.0 / np.sqrt(x)

    pair = pair_law(law_name, 3, rsqrt, njit(error_model="numpy"))

    @njit(error_model="numpy")
    def of_one(i, first, last, x, m, G, length2, a, phi):
        flat = x.shape[1] == 2
        ax, ay, az, w = 0.0, 0.0, 0.0, 0.0
        for j in range(first, last):
            if j != i:
                dx, dy = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1]
                dz = 0.0 if flat else x[j, 2] - x[i, 2]
                if dx * dx + dy * dy + dz * dz + length2 > 0.0:  # else a system that has ended: the others go on
                    f, u = pair(dx, dy, dz, length2)
                    ax += m[j] * f * dx
                    ay += m[j] * f * dy
                    az += m[j] * f * dz
                    w -= m[j] * u
        a[i, 0], a[i, 1] = G * ax, G * ay
        if not flat:
            a[i, 2] = G * az
        phi[i] = G * w

    @compute.kernel("cpu", parallel=True)
    def within(x, m, G, length2, n, a, phi):
        for s in prange(m.size // n):
            for i in range(s * n, (s + 1) * n):
                of_one(i, s * n, (s + 1) * n, x, m, G, length2, a, phi)

    return within


def energies(
    x: np.ndarray, v: np.ndarray, m: np.ndarray, G: float, length2: float, law_name: str, systems: int
) -> np.ndarray:
    """The total energy of each system, (S,), from positions and velocities (N, D) and masses (N,)."""
    a, phi = np.empty_like(x), np.empty(len(m))
    within_for(law_name)(x, m, G, length2, len(m) // systems, a, phi)
    return (0.5 * m * ((v * v).sum(axis=1) + phi)).reshape(systems, -1).sum(axis=1)
