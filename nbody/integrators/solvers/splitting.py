"""The moves of Wisdom and Holman's maps, as tables: kicks, drifts, and the stages of correctors.

A step is drifts a₁ … a_(n+1) with kicks b₁ … b_n between them, symmetric in time. Its energy error is the sum of terms of
first order in the planets' masses ε, which a corrector can remove to its order, and of higher ones, from ε² dt² on:

| splitting | kicks | error without corrector | source |
|---|---|---|---|
| ``wh`` | 1 | ε dt² + ε² dt² | Wisdom & Holman 1991 |
| ``wh_modified`` | 2 | ε dt² + ε² dt⁴ | Wisdom, Holman & Touma 1996; Rein, Tamayo & Brown 2019 ("lazy") |
| ``saba2`` … ``saba4`` | 2 … 4 | ε dt⁴ … ε dt⁸, + ε² dt² | Laskar & Robutel 2001 |
| ``aba104`` | 7 | ε dt¹⁰ + ε² dt⁴ | Blanes et al. 2013 |
| ``aba864``, ``aba1064`` | 7, 8 | ε dt⁸ (dt¹⁰) + ε² dt⁶ + ε³ dt⁴ | Blanes et al. 2013 |
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

STAGE = math.sqrt(7 / 40)
"""The drift of a corrector's first stage in time steps; the k-th drifts k times as far (Wisdom, Holman & Touma 1996)."""


class Splitting(NamedTuple):
    """A step in units of its length.

    Attributes:
        drifts, kicks: the first halves of a and b, with the middle one if their number is odd.
        length: n.
        shift: the accelerations of a kick are those at positions moved by ``shift`` dt² of them, which is the effect of the
            commutator [B, [A, B]] to the order of the scheme.
    """

    drifts: tuple[float, ...]
    kicks: tuple[float, ...]
    length: int
    shift: float = 0.0


_FAR, _NEAR = math.sqrt(525 + 70 * math.sqrt(30)) / 70, math.sqrt(525 - 70 * math.sqrt(30)) / 70

SPLITTINGS = {
    "wh": Splitting((0.5,), (1.0,), 1),
    "wh_modified": Splitting((0.5,), (1.0,), 1, 1 / 12),
    "saba2": Splitting((0.5 - math.sqrt(3) / 6, math.sqrt(3) / 3), (0.5,), 2),
    "saba3": Splitting((0.5 - math.sqrt(15) / 10, math.sqrt(15) / 10), (5 / 18, 4 / 9), 3),
    "saba4": Splitting((0.5 - _FAR, _FAR - _NEAR, 2 * _NEAR), (0.25 - math.sqrt(30) / 72, 0.25 + math.sqrt(30) / 72), 4),
    "aba104": Splitting(
        (0.04706710064597250613, 0.1847569354170881069, 0.2827060056798362053, -0.01453004174289681838),
        (0.1188819173681970199, 0.2410504605515015657, -0.2732866667053238061, 0.8267085775712504407), 7,
    ),
    "aba864": Splitting(
        (0.07113342649822311778, 0.2411534279566400987, 0.5214117617728147892, -0.3336986162276780057),
        (0.1830836874721972220, 0.3107828598985748695, -0.02656461851195880070, 0.06539614228237341846), 7,
    ),
    "aba1064": Splitting(
        (0.03809449742241219545, 0.1452987161169137493, 0.2076276957255412507, 0.4359097036515261592,
         -0.6538612258327867094),
        (0.09585888083707521061, 0.2044461531429987807, 0.2170703479789911017, -0.01737538195906509301), 8,
    ),
}  # fmt: skip


def mirrored(half: tuple[float, ...], count: int) -> tuple[float, ...]:
    """The symmetric sequence of ``count`` numbers with a first half."""
    return half + half[::-1][2 * len(half) - count :]


@cache
def corrector_kicks(order: int, splitting: str = "wh") -> np.ndarray:
    """The kicks of a corrector's stages, in time steps: b_k of the drifts k·:data:`STAGE`, k = 1 … (order - 1)/2.

    To first order in the planets' masses, kicks b at the times τ from the middle of a step differ from the continuous
    force by a change of coordinates, 1/x - Σ b cosh(τ x)/(2 sinh(x/2)), where x is the time step times the derivative along
    the orbits. The stages make 4 Σ b_k sinh(k STAGE x) of it: the b_k are chosen so that the coefficients of x, x³, … agree.
    """
    stages, own = (order - 1) // 2 if order else 0, SPLITTINGS[splitting]
    times = np.cumsum(mirrored(own.drifts, own.length + 1))[:-1] - 0.5
    kicks, found = np.array(mirrored(own.kicks, own.length)), list[float]()
    for n in range(stages + 1):  # the quotient of two series in x², Σ b cosh(τ x) and 2 sinh(x/2)/x
        known = sum(found[k] / (4.0 ** (n - k) * math.factorial(2 * (n - k) + 1)) for k in range(n))
        found.append(float(kicks @ times ** (2 * n)) / math.factorial(2 * n) - known)
    powers = range(1, 2 * stages, 2)
    matrix = [[4 * (k * STAGE) ** p / math.factorial(p) for k in range(1, stages + 1)] for p in powers]
    return np.linalg.solve(matrix, -np.array(found[1:])) if stages else np.zeros(0)


class MapMoves(NamedTuple):
    """Moves of a map, (M, 3) each: a kick, the drift after it, and the shift of the kick, in the unit of time. ``begin``:
    from the present to the map's coordinates, the first drift ahead; ``step``: a step; ``present``: back to the present."""

    begin: np.ndarray
    step: np.ndarray
    present: np.ndarray


@cache
def map_moves(dt: float, corrector: int, splitting: str = "wh") -> MapMoves:
    """The moves of a map with time steps ``dt`` and a corrector of an order, for either processor."""
    kicks, own = corrector_kicks(corrector, splitting), SPLITTINGS[splitting]

    def stages(sign: float) -> list[tuple[float, float, float]]:
        found = list[tuple[float, float, float]]()
        for k in range(-len(kicks), len(kicks) + 1):
            if k:
                stage, strength = k * STAGE * dt, math.copysign(dt, k * sign * dt) * float(kicks[abs(k) - 1])
                found += [(0.0, stage, 0.0), (-strength, -2.0 * stage, 0.0), (strength, stage, 0.0)]
        return found

    first, *later = mirrored(own.drifts, own.length + 1)
    later[-1] += first
    step = [(b * dt, a * dt, own.shift * dt * dt) for b, a in zip(mirrored(own.kicks, own.length), later, strict=True)]
    moves = [*stages(1.0), (0.0, first * dt, 0.0)], step, [(0.0, -first * dt, 0.0), *stages(-1.0)]
    return MapMoves(*map(np.array, moves))
