"""The coefficients of the 15th-order Gauss–Radau scheme of :mod:`.radau`, computed exactly and rounded once."""

import math
from fractions import Fraction

import numpy as np

NODES = (
    "0", "0.0562625605369221464656521910318", "0.180240691736892364987579942780", "0.352624717113169637373907769648",
    "0.547153626330555383001448554766", "0.734210177215410531523210605558", "0.885320946839095768090359771030",
    "0.977520613561287501891174488626",
)  # fmt: skip
"""The Radau points τ₀ … τ₇ in [0, 1), to 30 digits (Everhart 1985)."""


def _tables() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The nodes τ (8,); the reciprocals 1/(τₙ − τₘ), (8, 8); and the lower triangular matrices (7, 7) with b = g C, g = b D;
    computed exactly and rounded once."""
    tau = [Fraction(node) for node in NODES]
    to_b = [[Fraction(0)] * 7 for _ in range(7)]
    product = [Fraction(1)]  # the coefficients of (τ − τ₁) … (τ − τⱼ), lowest power first
    for j in range(7):
        to_b[j][: len(product)] = product
        product = [
            low - tau[j + 1] * high for low, high in zip([Fraction(0), *product], [*product, Fraction(0)], strict=True)
        ]
    to_g = [[Fraction(0)] * 7 for _ in range(7)]
    for j in range(7):
        to_g[j][j] = Fraction(1)
        for k in range(j - 1, -1, -1):
            to_g[j][k] = -sum((to_b[j][i] * to_g[i][k] for i in range(k, j)), Fraction(0))
    reciprocal = [[1 / (tau[n] - tau[m]) if n > m else Fraction(0) for m in range(8)] for n in range(8)]
    return tuple(np.array(table, dtype=float) for table in (tau, reciprocal, to_b, to_g))  # type: ignore[return-value]


TAU, RECIPROCAL, TO_B, TO_G = _tables()

BETWEEN = ("1", "0.45")
"""Two more points, at which the polynomial is made to agree with the forces to show the bodies within a step: its error
there falls from some 100 roundings to a few. The added terms vanish at the end of the step, as the points are Radau's."""


def _between() -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of τ, τ², … τ⁹ in the Newton polynomials that belong to these points, (2, 9), divided by their values
    there; and the points."""
    tau = [Fraction(node) for node in (*NODES, *BETWEEN)]
    rows, product = np.zeros((2, 9)), [Fraction(1)]
    for j, node in enumerate(tau):
        if j >= len(NODES):
            value = sum(c * node**k for k, c in enumerate(product))
            rows[j - len(NODES), : len(product) - 1] = [float(c / value) for c in product[1:]]
        product = [low - node * high for low, high in zip([Fraction(0), *product], [*product, Fraction(0)], strict=True)]
    return rows, np.array([float(node) for node in tau[len(NODES) :]])


NEWTON, POINTS = _between()

POSITION = np.array([1.0 / ((k + 2) * (k + 3)) for k in range(9)])
VELOCITY = np.array([1.0 / (k + 2) for k in range(9)])
"""The integrals of the powers of τ: b_k τ^(k+1) adds h² POSITION[k] τ^(k+3) b_k to a position."""


def powers(continued: int) -> list[float]:
    """The coefficients of τ^k in (1 + τ)^j for j = 1 … 7, where k = ``continued`` + 1; zero for j < k."""
    return [float(math.comb(j, continued + 1)) for j in range(1, 8)]


CONTINUED = np.array([powers(k) for k in range(7)])
"""Turns the polynomial of a step into that of the next one, if both are equally long."""
