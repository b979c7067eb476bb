"""The masses of stars: mass functions, and mass segregation."""

from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, model_serializer, model_validator

from nbody.given import KeyProblem
from nbody.scenario.values import Finite, Group, Name, SolarMasses, one_of

Array = np.ndarray

SALPETER = ((0.0, 2.35),)
KROUPA = ((0.0, 0.3), (0.08, 1.3), (0.5, 2.3))

MASS_FUNCTIONS: dict[str, tuple[tuple[float, float], ...]] = {"equal": (), "salpeter": SALPETER, "kroupa": KROUPA}
"""The mass functions (Salpeter 1955; Kroupa 2001), as pieces of a power law: from which mass on, and the exponent
−d ln N/d ln m. Masses are those of stars in solar masses, before they are scaled."""


class Masses(Group):
    """How the masses of a cluster are distributed: ``masses: kroupa``, or ``masses: {function: kroupa, low: 0.1}``.

    Attributes:
        function: equal, salpeter (1955) or kroupa (2001).
        low, high: the smallest and the largest mass of a star, in solar masses. All masses are then scaled to the
            cluster's total.
    """

    function: Annotated[Name, one_of("mass function", MASS_FUNCTIONS)] = "equal"
    low: SolarMasses = 0.1
    high: SolarMasses = 100.0

    @classmethod
    def _of_short(cls, value: object) -> object:
        return {"function": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low < self.high:
            raise KeyProblem("high", f"must be greater than low ({self.low:g}), got {self.high:g}")
        return self

    @model_serializer
    def _written(self) -> Any:
        plain = {"function": self.function, "low": self.low, "high": self.high}
        return "equal" if self.function == "equal" else plain

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """``count`` masses with the sum 1."""
        if self.function == "equal":
            return np.full(count, 1 / count)
        drawn = power_law(rng.random(count), MASS_FUNCTIONS[self.function], self.low, self.high)
        return drawn / drawn.sum()


def power_law(uniform: Array, pieces: tuple[tuple[float, float], ...], low: float, high: float) -> Array:
    """Masses between ``low`` and ``high`` of a broken power law, at values ``uniform`` of its distribution function."""
    edges = [low, *(start for start, _ in pieces if low < start < high), high]
    exponents = [[slope for start, slope in pieces if start <= left][-1] for left in edges[:-1]]
    height, numbers, heights = 1.0, [], []
    for left, right, slope in zip(edges, edges[1:], exponents, strict=False):
        p = 1 - slope
        heights.append(height)  # dN/dm at the left edge; the function is continuous
        numbers.append(height * left**slope * (right**p - left**p) / p)
        height *= (right / left) ** -slope
    ends = np.concatenate([[0], np.cumsum(numbers)])
    number = uniform * ends[-1]
    piece = np.clip(np.searchsorted(ends, number, side="right") - 1, 0, len(numbers) - 1)
    left, slope = np.array(edges)[piece], np.array(exponents)[piece]
    p = 1 - slope
    return (left**p + (number - ends[piece]) * p * left**-slope / np.array(heights)[piece]) ** (1 / p)


Fraction = Annotated[Finite, Field(ge=0, le=1)]


def segregated(rng: np.random.Generator, mass: Array, energy: Array, degree: float) -> Array:
    """Assign orbits to stars so that heavy stars are bound more tightly, and the mass density stays (Baumgardt, De Marchi &
    Kroupa 2008).

    Args:
        mass: (N,).
        energy: (P,), of orbits drawn from the model, P ≥ N.
        degree: 0, masses and orbits are independent, to 1, the heaviest star has the most bound orbit.

    Returns:
        (N,) the orbit of each star, none twice.
    """
    count, pool = len(mass), len(energy)
    rank = np.empty(count)
    rank[np.argsort(-mass, kind="stable")] = np.arange(count)
    order = np.argsort(degree * rank + (1 - degree) * rng.permutation(count), kind="stable")
    end = np.cumsum(mass[order]) / mass.sum()
    nearest = ((end - rng.random(count) * mass[order] / mass.sum()) * pool).astype(int)
    steps = np.arange(count)
    distinct = np.maximum.accumulate(np.maximum(nearest, 0) - steps) + steps
    distinct = np.minimum(distinct, pool - count + steps)
    chosen = np.empty(count, int)
    chosen[order] = np.argsort(energy, kind="stable")[distinct]
    return chosen
