"""The moves of Wisdom and Holman's maps, as tables: kicks, drifts, and the stages of correctors. Sources: :mod:`.wisdom_holman`."""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

STAGE = math.sqrt(7 / 40)
"""The drift of a corrector's first stage in time steps; the k-th drifts k times as far (Wisdom, Holman & Touma 1996)."""


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


class MapMoves(NamedTuple):
    """Moves of a map, (M, 2) each: a kick and the drift after it, in the unit of time. ``begin``: from the present to the
    map's coordinates, half a step ahead; ``step``: a step; ``present``: back to the present."""

    begin: np.ndarray
    step: np.ndarray
    present: np.ndarray


@cache
def map_moves(dt: float, corrector: int) -> MapMoves:
    """The moves of a map with time steps ``dt`` and a corrector of an order, for either processor."""
    kicks = corrector_kicks(corrector)

    def stages(sign: float) -> list[tuple[float, float]]:
        found = list[tuple[float, float]]()
        for k in range(-len(kicks), len(kicks) + 1):
            if k:
                stage, strength = k * STAGE * dt, math.copysign(dt, k * sign * dt) * float(kicks[abs(k) - 1])
                found += [(0.0, stage), (-strength, -2.0 * stage), (strength, stage)]
        return found

    half = 0.5 * dt
    moves = [*stages(1.0), (0.0, half)], [(dt, dt)], [(0.0, -half), *stages(-1.0)]
    return MapMoves(*map(np.array, moves))
