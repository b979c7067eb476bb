"""King's models of globular clusters, which end at a tidal radius (King 1966)."""

import math
from functools import cache
from typing import Annotated

import numpy as np
from pydantic import Field
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.special import erf

from nbody.initial.eddington import POINTS, Sphere
from nbody.initial.eddington_sphere import EddingtonSphere
from nbody.scenario.fields import Finite

Array = np.ndarray

START = 1e-3
"""In core radii; within it the density is constant."""


class King(EddingtonSphere):
    """f(E) ∝ e^E − 1 in units of σ²: an isothermal sphere without the stars that the tide has taken. With W = Ψ/σ² and
    x = r/r_c, ρ(W) ∝ e^W erf √W − √(4W/π)(1 + 2W/3) and W″ + 2W′/x = −9ρ/ρ₀. The scale radius is the core radius r_c.

    Attributes:
        W0: the depth of the centre; r_t/r_c is 4.70 for 3, 18.0 for 6, 131 for 9.
    """

    W0: Annotated[Finite, Field(ge=0.5, le=14)] = 6.0

    def model(self) -> Sphere:
        return king_model(self.W0)


def density(W: Array) -> Array:
    """ρ(W), up to a factor; 0 for W ≤ 0."""
    W = np.maximum(W, 0)
    series = 8 / (15 * math.sqrt(math.pi)) * W**2.5 * (1 + 2 * W / 7)  # the difference below loses its digits
    return np.where(W < 1e-3, series, np.exp(W) * erf(np.sqrt(W)) - np.sqrt(4 * W / math.pi) * (1 + 2 * W / 3))


@cache
def king_model(W0: float) -> Sphere:
    """The model with G, mass and core radius 1."""
    centre = float(density(np.array(W0)))

    def slope(x: float, y: Array) -> list[float]:
        return [y[1], -9 * float(density(np.array(y[0]))) / centre - 2 * y[1] / x]

    def edge(x: float, y: Array) -> float:
        return float(y[0])

    edge.terminal = True  # type: ignore[attr-defined]
    begin = [W0 - 1.5 * START**2, -3 * START]
    solved = solve_ivp(slope, (START, 1e5), begin, "DOP853", dense_output=True, events=edge, rtol=1e-11, atol=1e-13)
    x = np.geomspace(START, solved.t_events[0][0], POINTS)
    W, gradient = solved.sol(x)
    # −x²W′ is 9/(4πρ₀) times the mass within x: with the total mass 1 and G = 1, σ² = 1/(−x²W′ at the edge).
    within = -x * x * gradient
    mass, sigma2 = within / within[-1], 1 / within[-1]
    W[-1] = 1e-12
    energy = (
        -float(CubicSpline(np.log(x), mass * mass / x).integrate(math.log(x[0]), math.log(x[-1]))) / 2 - 0.5 / x[-1]
    )
    return Sphere(x, mass, sigma2 * W, np.log(np.expm1(W)), energy)
