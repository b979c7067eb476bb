"""The referee: every pair in float64 NumPy, in blocks that bound the memory, simple enough to check by reading.

The formulas are repeated here on purpose instead of imported from :mod:`nbody.law`: with the kernels' law the referee would
have the kernels' mistakes. (A law of another package has no second formula.)
"""

from functools import cache
from typing import Any

import numpy as np

from nbody.forces.engine import Engine, Memory
from nbody.forces.problem import Abilities, Problem
from nbody.law import Gravity, inverse_root, pair_law, pair_slopes
from nbody.state import Outputs, State
from nbody.state.host import HostState

BLOCK_PAIRS = 1 << 15
"""Pairs per block: its arrays of 0.25 MB each stay in the cache."""

SLAB_BLOCKS = 256
"""Blocks between two calls of :meth:`ForceProgress.report`: about 0.1 s."""


def direct_sum(
    position: np.ndarray,
    mass: np.ndarray,
    gravity: Gravity,
    targets: np.ndarray | None = None,
    softening2: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations (T, D) and potential per unit mass (T,) of the targets by summing over all N bodies, in float64.

    a_i = G Σ_j m_j (x_j - x_i) f(r_ij),  φ_i = -G Σ_{j≠i} m_j u(r_ij), with f and u as in the table of
    :mod:`nbody.law`.

    Args:
        position: (N, D), any float dtype.
        mass: (N,).
        targets: (T,) the particles i; None for all N.
        softening2: (N,) the softening length squared of each body, of which the larger one counts for a pair; None for that
            of ``gravity``.
    """
    x = np.ascontiguousarray(np.asarray(position, np.float64).T)  # (D, N): long contiguous rows
    m = np.asarray(mass, np.float64)
    dimensions, count = x.shape
    targets = np.arange(count) if targets is None else np.asarray(targets)
    acceleration, potential = np.empty((len(targets), dimensions)), np.empty(len(targets))
    rows = max(1, BLOCK_PAIRS // count)
    for first in range(0, len(targets), rows):
        block = slice(first, first + rows)
        i = targets[block]
        d = [x[k] - x[k, i, None] for k in range(dimensions)]  # each (rows, N): x_j - x_i
        f, u = pair_factors(sum(dk * dk for dk in d), gravity, _of_pairs(softening2, i, gravity))
        u[:, m == 0] = 0.0  # a body without mass does not act: u may be infinite
        f[np.arange(len(i)), i] = 0.0  # a particle never acts on itself
        u[np.arange(len(i)), i] = 0.0
        f *= m
        for k in range(dimensions):
            acceleration[block, k] = gravity.G * (f * d[k]).sum(axis=1)
        potential[block] = -gravity.G * (u * m).sum(axis=1)
    return acceleration, potential


def direct_jerk(
    position: np.ndarray,
    velocity: np.ndarray,
    mass: np.ndarray,
    gravity: Gravity,
    targets: np.ndarray,
    softening2: np.ndarray | None = None,
) -> np.ndarray:
    """Jerks (T, D) of the targets by summing over all N bodies, in float64: the time derivative of the acceleration,

    jerk_i = G Σ_j m_j f (v - 3 (d·v) u² d) with d = x_j - x_i, v = v_j - v_i, and f = u³ outside a cutoff, 0 within;
    of a spline (1/r) df/dr instead of -3 f u².

    Args:
        position, velocity: (N, D).
        mass: (N,).
        targets: (T,) the particles i.
        softening2: as in :func:`direct_sum`.
    """
    jerk = np.empty((len(targets), position.shape[1]))
    for k, i in enumerate(targets):
        d, v = position - position[i], velocity - velocity[i]
        r2, length2 = (d * d).sum(axis=1), _of_pairs(softening2, i, gravity)
        f, u = pair_factors(r2, gravity, length2)
        f[i] = 0.0
        u[f == 0] = 0.0  # nor bodies within a cutoff, or in the same place
        change = _slope(f, u, r2, gravity, length2)
        change[i] = 0.0
        change *= (d * v).sum(axis=1)
        jerk[k] = gravity.G * (mass[:, None] * (f[:, None] * v + change[:, None] * d)).sum(axis=0)
    return jerk


def direct_tide(
    position: np.ndarray,
    mass: np.ndarray,
    gravity: Gravity,
    targets: np.ndarray,
    softening2: np.ndarray | None = None,
) -> np.ndarray:
    """Tidal tensors (T, D, D) at the targets by summing over all N bodies, in float64: the gradient of the acceleration,

    T_kl = ∂a_k/∂x_l = -G Σ_j m_j (f δ_kl + (1/r) df/dr d_k d_l) with d = x_j - x_i; of Newton's law
    G Σ_j m_j (3 d_k d_l/r⁵ - δ_kl/r³), without a trace.

    Args:
        position, mass, targets, softening2: as in :func:`direct_sum`.
    """
    x, dimensions = np.ascontiguousarray(np.asarray(position, np.float64).T), position.shape[1]
    tide = np.empty((len(targets), dimensions, dimensions))
    rows = max(1, BLOCK_PAIRS // len(mass))
    for first in range(0, len(targets), rows):
        block = slice(first, first + rows)
        i = targets[block]
        d = [x[k] - x[k, i, None] for k in range(dimensions)]
        r2, length2 = sum(dk * dk for dk in d), _of_pairs(softening2, i, gravity)
        f, u = pair_factors(r2, gravity, length2)
        f[np.arange(len(i)), i] = 0.0
        f[~np.isfinite(f)] = 0.0  # a body in the same place exerts no force without softening
        u[f == 0] = 0.0
        slope = _slope(f, u, r2, gravity, length2)
        slope[np.arange(len(i)), i] = 0.0
        for k, dk in enumerate(d):
            for n, dn in enumerate(d[: k + 1]):
                tide[block, k, n] = tide[block, n, k] = -gravity.G * (slope * dk * dn + f * (k == n)) @ mass
    return tide


def _slope(f: np.ndarray, u: np.ndarray, r2: np.ndarray, gravity: Gravity, length2: Any) -> np.ndarray:
    """(1/r) df/dr of every pair, from its f and u, which is 0 where no force acts: -3 f u² of a cubic law."""
    if gravity.softening in ("plummer", "cutoff", "none"):
        return -3 * f * u * u
    if gravity.softening == "spline":
        return _spline_slope(f, r2, 2.8 * np.sqrt(length2))
    return _factors_of_package(r2, gravity.softening, length2)[2]


def _of_pairs(softening2: np.ndarray | None, i: Any, gravity: Gravity) -> np.ndarray:
    """ε² of the pairs of the bodies i with all bodies j: one number, or max(ε_i, ε_j)²."""
    if softening2 is not None:
        return np.maximum(softening2[i, None], softening2)
    if gravity.per_species:
        raise ValueError("the lengths of the bodies are needed: Gravity.squares")
    return np.array(gravity.length2)


def pair_factors(r2: np.ndarray, gravity: Gravity, length2: Any) -> tuple[np.ndarray, np.ndarray]:
    """f and u of every pair at distance √r2: the force is m_j f (x_j - x_i), the potential -m_j u. ``length2``: the
    softening length squared of each pair, or of all."""
    with np.errstate(divide="ignore", invalid="ignore"):  # r = 0: the pair of a particle with itself
        if gravity.softening == "plummer":
            u = 1.0 / np.sqrt(r2 + length2)
            return u * u * u, u
        if gravity.softening == "spline":
            return _spline_factors(r2, 2.8 * np.sqrt(length2))
        if gravity.softening not in ("cutoff", "none"):
            return _factors_of_package(r2, gravity.softening, length2)[:2]
        r = np.sqrt(r2)
        r_min = np.sqrt(length2)
        u = 1.0 / r
        # 'r <= r_min' instead of 'r > r_min', so that a NaN is not treated as a close pair
        return np.where(r <= r_min, 0.0, u * u * u), 1.0 / np.maximum(r, r_min)


def _spline_factors(r2: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f = M/r³ and u = -Φ of a body with the density 8/(π h³) (1 - 6 s² + 6 s³) for s = r/h < 1/2 and 16/(π h³) (1 - s)³ for
    s < 1: the mass M within r is 4π ∫ ρ r² dr, and u = 1/h + ∫ M/r² dr from r to h."""
    s = np.sqrt(r2) / h
    inner, outer = np.minimum(s, 0.5), np.clip(s, 0.5, 1.0)

    def within_half(s: Any) -> Any:  # the integral of 32 (s³/3 - 6 s⁵/5 + s⁶)/s²
        return 32 * (s**2 / 6 - 3 * s**4 / 10 + s**5 / 5)

    def beyond_half(s: Any) -> Any:  # the integral of (64 (s³/3 - 3 s⁴/4 + 3 s⁵/5 - s⁶/6) - 1/15)/s²
        return 64 * (s**2 / 6 - s**3 / 4 + 3 * s**4 / 20 - s**5 / 30) + 1 / (15 * s)

    f = 32 * (1 / 3 - 6 * inner**2 / 5 + inner**3)
    mass = 64 * (outer**3 / 3 - 3 * outer**4 / 4 + 3 * outer**5 / 5 - outer**6 / 6) - 1 / 15
    f = np.where(s < 0.5, f, mass / outer**3)
    u = 1 + beyond_half(1.0) - beyond_half(outer) + within_half(0.5) - within_half(inner)
    return np.where(s < 1, f / h**3, 1 / (s * h) ** 3), np.where(s < 1, u / h, 1 / (s * h))


def _spline_slope(f: np.ndarray, r2: np.ndarray, h: Any) -> np.ndarray:
    """(1/r) df/dr = (4π ρ - 3 f)/r² of f = M/r³, with the density ρ of :func:`_spline_factors`; 0 where r is."""
    s = np.sqrt(r2) / h
    density = np.where(s < 0.5, 32 * (1 - 6 * s**2 + 6 * s**3), 64 * np.clip(1 - s, 0, None) ** 3) / h**3
    return np.where(r2 > 0, (density - 3 * f) / np.where(r2 > 0, r2, 1), 0.0)


def _factors_of_package(r2: np.ndarray, softening: str, length2: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """f, u and (1/r) df/dr of a law of another package, by its own functions: there is no second formula to judge them."""
    evaluate = _evaluator(softening)
    found: tuple = evaluate(np.sqrt(r2), np.broadcast_to(np.asarray(length2, np.float64), r2.shape))
    return found


@cache
def _evaluator(softening: str) -> Any:
    from nbody import compute
    from nbody.compute.compiling.cpu_inner import inner

    rsqrt = inner(inverse_root)
    law, slopes = pair_law(softening, 3, rsqrt, inner), pair_slopes(softening, 3, rsqrt, inner)
    cubic, slopes = slopes is None, slopes or law  # an unused function must be one, too

    @compute.kernel("cpu")
    def evaluate(r, length2):
        f, u, g = np.empty_like(r), np.empty_like(r), np.empty_like(r)
        for k in np.ndindex(r.shape):
            f[k], u[k] = law(r[k], 0.0, 0.0, length2[k])
            g[k] = -3.0 * f[k] * u[k] * u[k] if cubic else slopes(r[k], 0.0, 0.0, length2[k])[0]
        return f, u, g

    return evaluate


class ReferenceEngine(Engine):
    """:func:`direct_sum` as an engine."""

    can = Abilities(("float64",), outputs=Outputs.POTENTIAL | Outputs.JERK, targets=True, species=True, systems=True)
    state_type = HostState

    def _compute(self, state: State, outputs: Outputs) -> None:
        self._compute_targets(state, outputs, np.arange(state.count))

    def _compute_targets(self, state: State, outputs: Outputs, targets: np.ndarray) -> None:
        assert isinstance(state, HostState)
        rows = SLAB_BLOCKS * max(1, BLOCK_PAIRS // state.count)
        softening2 = state.column("softening2") if self.gravity.per_species else None
        for first in range(0, len(targets), rows):
            some = targets[first : first + rows]
            state.acceleration[some], state.potential[some] = direct_sum(
                state.position, state.mass, self.gravity, some, softening2
            )
            if Outputs.JERK in outputs:
                state.values("jerk", copy=False)[0][some] = direct_jerk(
                    state.position, state.velocity, state.mass, self.gravity, some, softening2
                )
            state.progress.report(len(some) * state.count)

    @classmethod
    def memory(cls, problem: Problem) -> Memory:
        # The bodies' components, and eight blocks of pairs.
        count = problem.particles
        return Memory(super().memory(problem).own + 8 * (3 * count + 8 * max(BLOCK_PAIRS, count)))
