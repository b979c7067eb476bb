"""Wisdom and Holman's map for planetary systems, in Jacobi coordinates, with symplectic correctors.

Each step drifts every planet on its Kepler orbit about the bodies inside it, exactly (:mod:`.kepler`), and kicks it with the
remaining forces, which are small. So a step may be a twentieth of the shortest period, and the energy error stays bounded
(Wisdom & Holman 1991). A symplectic corrector removes the errors of first order in the planets' masses, up to a power of the
step (Wisdom, Holman & Touma 1996).

General relativity's term, per unit of the reduced mass -v⁴/8 - 3 μ v²/(2r) + μ²/(2r²) over c², is 3 K²/2 - v⁴/2 - μ²/r² with
Kepler's energy K = v²/2 - μ/r, where v is the momentum per mass (Saha & Tremaine 1994). The first term stretches the time of
the Kepler drift by 1 + 3 K/c², the second one shifts positions, the third one kicks.

The map is a drift of half a step, then kicks and drifts of whole steps. Its coordinates are columns of their own, half a
step ahead of the state: the positions and velocities of frames are computed from them, and never fed back.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np
from numba import njit

from nbody import compute
from nbody.errors import RunFailed
from nbody.fields.field import POST_NEWTONIAN
from nbody.fields.post_newtonian import STRICT
from nbody.integrators.facts import FLOAT64_ON_CPU, SchemeFacts
from nbody.integrators.few_bodies import components, map_coordinates, per_c2, require_star
from nbody.integrators.integrator import Integrator, Motion
from nbody.integrators.solvers.kepler import kepler_step
from nbody.scenario.values import Group, NotNegative
from nbody.state import Column

STAGE = math.sqrt(7 / 40)
"""The drift of a corrector's first stage in time steps; the k-th drifts k times as far (Wisdom, Holman & Touma 1996)."""


class WisdomHolman(Integrator):
    """Planets on orbits that do not come close to each other. Body 0 must be the star."""

    class Options(Group):
        """``corrector``: the order of the symplectic corrector, 0 for none. ``encounter``: the run stops if two planets come
        closer than so many mutual Hill radii."""

        corrector: Literal[0, 3, 5, 7, 11, 17] = 11
        encounter: NotNegative = 1.0

    _options: Options

    facts = SchemeFacts(
        order=2, source="Wisdom & Holman 1991; Wisdom, Holman & Touma 1996", own_forces=True, star=True,
        precisions=FLOAT64_ON_CPU, fields=(POST_NEWTONIAN,), columns=(Column("map_position", 3), Column("map_velocity", 3)),
    )  # fmt: skip

    def __init__(self, dt: float | None, options: Group | None = None) -> None:
        super().__init__(dt, options)
        self._order = np.zeros(0, np.int64)

    def prepare(self, motion: Motion, contacts: bool = False) -> None:
        super().prepare(motion, contacts)
        self._order = np.arange(motion.state.count)

    def start(self, motion: Motion) -> None:
        # The planets are sorted by their distance from the star.
        require_star(motion)
        state = motion.host
        x, v = components(state.position), components(state.velocity)
        distance = np.linalg.norm(x - x[:, :1], axis=0)
        self._order = np.argsort(distance, kind="stable")
        self._call(motion, _begin, x[:, self._order], v[:, self._order])

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        # ``until`` is ignored, since the run's schedule counts steps.
        state = motion.host
        x, v = (np.zeros((3, state.count)) for _ in range(2))
        done, i, j = self._call(motion, _advance, x, v, steps)
        state.clock.count_steps(done, self.dt)
        order = self._order
        state.position[order], state.velocity[order] = x.T[:, : state.dimensions], v.T[:, : state.dimensions]
        state.invalidate()
        if i:
            i, j = sorted((int(order[i]), int(order[j])))
            raise RunFailed(
                f"step {state.clock.step}: particles {i} and {j} (counted from 0) are closer than "
                f"{self._options.encounter:g} Hill radii, where the map fails (a planet's "
                "moon is no planet of the star); use scheme 'hybrid' or 'ias15'"
            )

    def _call(self, motion: Motion, kernel: Callable, x: np.ndarray, v: np.ndarray, *more: Any) -> Any:
        """Call a kernel with the map's coordinates, and the masses in the map's order."""
        corrector, hill = corrector_kicks(self._options.corrector), self._options.encounter
        mass = motion.engine.gravity.G * motion.host.mass[self._order]
        with map_coordinates(motion.host) as (X, V):
            return kernel(x, v, X, V, mass, self.dt, corrector, hill, per_c2(motion), *more)

    def arrays(self) -> dict[str, np.ndarray]:
        """The bodies in the order of their distances from the star."""
        return {"order": self._order}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._order = permutations(arrays["order"])


def permutations(order: np.ndarray) -> np.ndarray:
    """A copy of the rows (…, N) of a checkpoint. Raises ValueError unless each row is a permutation of 0 … N-1."""
    if (np.sort(order, axis=-1) != np.arange(order.shape[-1])).any():
        raise ValueError("the order of the planets is no permutation")
    return order.copy()


@cache
def corrector_kicks(order: int) -> np.ndarray:
    """The kicks of a corrector's stages, in time steps: b_k of the drifts k·:data:`STAGE`, k = 1 … (order - 1)/2.

    To first order in the planets' masses, kicks in the middle of steps differ from the continuous force by a change of
    coordinates, 1/x - 1/(2 sinh(x/2)), where x is the time step times the derivative along the orbits. The stages make
    4 Σ b_k sinh(k STAGE x) of it: the b_k are chosen so that the coefficients of x, x³, … agree.
    """
    stages = (order - 1) // 2 if order else 0
    powers = range(1, 2 * stages, 2)
    # 1/(2 sinh(x/2)) = 1/x - Σ (1 - 2^(1-2n)) B_2n x^(2n-1)/(2n)!, with Bernoulli's numbers
    bernoulli = {2: 1 / 6, 4: -1 / 30, 6: 1 / 42, 8: -1 / 30, 10: 5 / 66, 12: -691 / 2730, 14: 7 / 6, 16: -3617 / 510}
    coefficients = [(1 - 2.0**-p) * bernoulli[p + 1] / math.factorial(p + 1) for p in powers]
    matrix = [[4 * (k * STAGE) ** p / math.factorial(p) for k in range(1, stages + 1)] for p in powers]
    return np.linalg.solve(matrix, coefficients) if stages else np.zeros(0)


@njit(error_model="numpy", fastmath=STRICT)
def to_jacobi(x, m, X):
    """Jacobi coordinates X of x, (3, N): relative to the centre of mass of the bodies before; column 0 is that of all."""
    for c in range(3):
        total, weighted = m[0], m[0] * x[c, 0]
        for i in range(1, m.size):
            X[c, i] = x[c, i] - weighted / total
            total += m[i]
            weighted += m[i] * x[c, i]
        X[c, 0] = weighted / total


@njit(error_model="numpy", fastmath=STRICT)
def from_jacobi(X, m, inner, x):
    """The inverse of :func:`to_jacobi`; ``inner[i]`` is the sum of the masses 0 … i."""
    for c in range(3):
        centre = X[c, 0]
        for i in range(m.size - 1, 0, -1):
            centre -= m[i] / inner[i] * X[c, i]  # of the bodies before i
            x[c, i] = centre + X[c, i]
        x[c, 0] = centre


@njit(error_model="numpy", fastmath=STRICT)
def drift(X, V, inner, h, distance, per_c2=0.0):
    """Kepler motion of all planets, and the straight motion of the centre of mass."""
    for c in range(3):
        X[c, 0] += h * V[c, 0]
    for i in range(1, inner.size):
        time = h
        if per_c2 > 0.0:
            r, v2, _ = sizes(i, X, V)
            time += h * 3.0 * per_c2 * (0.5 * v2 - inner[i] / r)
        distance[i] = kepler_step(i, X, V, inner[i], time)


@njit(error_model="numpy", fastmath=STRICT)
def sizes(i, X, V):
    """The distance, the square of the speed, and the square of the distance of planet i."""
    r2 = X[0, i] * X[0, i] + X[1, i] * X[1, i] + X[2, i] * X[2, i]
    return np.sqrt(r2), V[0, i] * V[0, i] + V[1, i] * V[1, i] + V[2, i] * V[2, i], r2


@njit(error_model="numpy", fastmath=STRICT)
def shift(X, V, h, per_c2):
    """Relativity's term -v⁴/(2c²)."""
    for i in range(1, X.shape[1]):
        _, v2, _ = sizes(i, X, V)
        for c in range(3):
            X[c, i] -= 2.0 * h * per_c2 * v2 * V[c, i]


@njit(error_model="numpy", fastmath=STRICT)
def to_momenta(X, V, inner, per_c2):
    """Turn velocities into momenta per mass, v (1 + (v²/2 + 3 μ/r)/c²)."""
    for i in range(1, inner.size):
        r, v2, _ = sizes(i, X, V)
        for c in range(3):
            V[c, i] *= 1.0 + per_c2 * (0.5 * v2 + 3.0 * inner[i] / r)


@njit(error_model="numpy", fastmath=STRICT)
def to_velocities(X, V, inner, per_c2):
    """The inverse of :func:`to_momenta`, to rounding."""
    for i in range(1, inner.size):
        r, p2, _ = sizes(i, X, V)
        factor = 1.0
        for _ in range(4):  # each time the error falls by (v/c)²
            factor = 1.0 / (1.0 + per_c2 * (0.5 * p2 * factor * factor + 3.0 * inner[i] / r))
        for c in range(3):
            V[c, i] *= factor


@njit(error_model="numpy", fastmath=STRICT)
def kick(X, V, m, inner, h, distance, near, x, a, per_c2=0.0):
    """Kick with all forces but those of the Kepler motion. Returns two planets that are too close, or (0, 0)."""
    n = m.size
    if per_c2 > 0.0:
        shift(X, V, 0.5 * h, per_c2)
    first, second = 0, 0
    from_jacobi(X, m, inner, x)
    a[:] = 0.0
    for i in range(1, n):
        ax, ay, az = 0.0, 0.0, 0.0
        for j in range(i):
            if i == 1:  # planet 1 and the star: all of it is Kepler motion
                continue
            dx, dy, dz = x[0, j] - x[0, i], x[1, j] - x[1, i], x[2, j] - x[2, i]
            r2 = dx * dx + dy * dy + dz * dz
            f = 1.0 / (r2 * np.sqrt(r2))
            ax += f * m[j] * dx
            ay += f * m[j] * dy
            az += f * m[j] * dz
            a[0, j] -= f * m[i] * dx
            a[1, j] -= f * m[i] * dy
            a[2, j] -= f * m[i] * dz
            if j and r2 < (near[i, j] * (distance[i] + distance[j])) ** 2:
                first, second = i, j
        a[0, i] += ax
        a[1, i] += ay
        a[2, i] += az
    for c in range(3):
        weighted = m[0] * a[c, 0]
        for i in range(1, n):
            V[c, i] += h * (a[c, i] - weighted / inner[i - 1])
            weighted += m[i] * a[c, i]
    for i in range(2, n):
        r2 = X[0, i] ** 2 + X[1, i] ** 2 + X[2, i] ** 2
        f = h * inner[i] / (r2 * np.sqrt(r2))
        for c in range(3):
            V[c, i] += f * X[c, i]
    if per_c2 > 0.0:
        for i in range(1, n):
            _, _, r2 = sizes(i, X, V)
            for c in range(3):
                V[c, i] -= 2.0 * h * per_c2 * (inner[i] / r2) ** 2 * X[c, i]
        shift(X, V, 0.5 * h, per_c2)
    return first, second


@njit(error_model="numpy")
def correct(X, V, m, inner, h, kicks, sign, distance, near, x, a, per_c2=0.0):
    """Apply the corrector (``sign`` 1) or its inverse (-1)."""
    stages = kicks.size
    for k in range(-stages, stages + 1):
        if k:
            move = k * STAGE * h
            strength = sign * kicks[abs(k) - 1] * h * (1.0 if k > 0 else -1.0)
            drift(X, V, inner, move, distance, per_c2)
            kick(X, V, m, inner, -strength, distance, near, x, a, per_c2)
            drift(X, V, inner, -2.0 * move, distance, per_c2)
            kick(X, V, m, inner, strength, distance, near, x, a, per_c2)
            drift(X, V, inner, move, distance, per_c2)


@njit(error_model="numpy")
def constants(m, hill):
    """The sums of masses 0 … i, and what :func:`kick` compares distances with."""
    n = m.size
    near = np.zeros((n, n))
    for i in range(1, n):
        for j in range(1, i):
            near[i, j] = 0.5 * hill * ((m[i] + m[j]) / (3.0 * m[0])) ** (1.0 / 3.0)
    return np.cumsum(m), near


@njit(error_model="numpy")
def begin(x, v, X, V, m, h, kicks, per_c2=0.0):
    """The map's coordinates X, V from positions x and velocities v, (3, N) each; m: G times the masses. ``per_c2`` is
    1/c² of relativity, 0 without it."""
    inner, near = constants(m, 0.0)
    distance, at, a = np.empty(m.size), np.empty((3, m.size)), np.empty((3, m.size))
    to_jacobi(x, m, X)
    to_jacobi(v, m, V)
    if per_c2 > 0.0:
        to_momenta(X, V, inner, per_c2)
    correct(X, V, m, inner, h, kicks, 1.0, distance, near, at, a, per_c2)
    drift(X, V, inner, 0.5 * h, distance, per_c2)


@njit(error_model="numpy")
def present(X, V, m, h, kicks, x, v, per_c2=0.0):
    """Positions x and velocities v, (3, N), of the map's coordinates, which are half a step ahead."""
    inner, near = constants(m, 0.0)
    distance, at, a = np.empty(m.size), np.empty((3, m.size)), np.empty((3, m.size))
    end_X, end_V = X.copy(), V.copy()
    drift(end_X, end_V, inner, -0.5 * h, distance, per_c2)
    correct(end_X, end_V, m, inner, h, kicks, -1.0, distance, near, at, a, per_c2)
    if per_c2 > 0.0:
        to_velocities(end_X, end_V, inner, per_c2)
    from_jacobi(end_X, m, inner, x)
    from_jacobi(end_V, m, inner, v)


@compute.kernel("cpu")
def _begin(x, v, X, V, m, h, kicks, hill, per_c2):
    begin(x, v, X, V, m, h, kicks, per_c2)


@compute.kernel("cpu")
def _advance(x, v, X, V, m, h, kicks, hill, per_c2, steps):
    """Make ``steps`` steps of X, V; x, v become the positions and velocities at their end.

    Returns the number of steps, and two planets that were too close in the last one, or (0, 0)."""
    inner, near = constants(m, hill)
    distance, at, a = np.empty(m.size), np.empty((3, m.size)), np.empty((3, m.size))
    done, first, second = 0, 0, 0
    for i in range(1, m.size):
        distance[i] = np.sqrt(X[0, i] ** 2 + X[1, i] ** 2 + X[2, i] ** 2)
    while done < steps:
        first, second = kick(X, V, m, inner, h, distance, near, at, a, per_c2)
        drift(X, V, inner, h, distance, per_c2)
        done += 1
        if first:
            break
    present(X, V, m, h, kicks, x, v, per_c2)
    return done, first, second
