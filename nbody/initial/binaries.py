"""Primordial binaries: some stars of a cluster are born in pairs."""

import math
from numbers import Real
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BeforeValidator, model_validator

from nbody.given import shown
from nbody.initial.masses import Fraction
from nbody.initial.orbit import on_orbit, true_anomaly
from nbody.particles import Particles
from nbody.scenario.fields import Group, KeyProblem, Time, a_list

Array = np.ndarray


def _eccentricity(value: Any) -> Any:
    """``thermal``, or the eccentricity of an ellipse."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if value != "thermal" and not (number and 0 <= value < 1):
        raise ValueError(f"must be 'thermal', or a number from 0 to less than 1 (an ellipse), got {shown(value)}")
    return value


class Binaries(Group):
    """``binaries: {fraction: 0.3, period: [0.001, 1]}``.

    Attributes:
        fraction: the part of the systems (single stars and pairs) that are pairs.
        period: the shortest and longest period, in the scenario's unit of time; log P is uniform between them.
        eccentricity: one number for all, or ``thermal``, f(e) = 2e (Jeans 1919).
    """

    fraction: Fraction
    period: Annotated[tuple[Time, Time], BeforeValidator(a_list("a list of the shortest and the longest period"))]
    eccentricity: Annotated[float | str, BeforeValidator(_eccentricity)] = "thermal"

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.period[0] > self.period[1]:
            raise KeyProblem("period", f"must be the shortest before the longest, got {list(self.period)}")
        return self

    def pairs(self, stars: int) -> int:
        """The number of pairs among ``stars`` stars."""
        return min(stars // 2, round(stars * self.fraction / (1 + self.fraction)))

    def split(self, systems: Particles, masses: Array, G: float, rng: np.random.Generator) -> Particles:
        """Replace the first systems by pairs of stars around their centres of mass.

        Args:
            systems: pairs first, then single stars.
            masses: (N,) of all stars: the first members of the pairs, the second members, the single stars.
        """
        pairs = len(masses) - systems.count
        first, second = masses[:pairs], masses[pairs : 2 * pairs]
        total = first + second
        shortest, longest = map(math.log, self.period)
        period = np.exp(shortest + (longest - shortest) * rng.random(pairs))
        e = np.sqrt(rng.random(pairs)) if self.eccentricity == "thermal" else np.full(pairs, self.eccentricity)
        mean, node, argument = 2 * math.pi * rng.random((3, pairs))
        inclination = np.arccos(2 * rng.random(pairs) - 1)
        axis = np.cbrt(G * total * (period / (2 * math.pi)) ** 2)
        x, v = on_orbit(G * total, axis * (1 - e), e, true_anomaly(mean, e), inclination, node, argument)
        parts = []
        for relative, centre in ((x, systems.position), (v, systems.velocity)):
            one = centre[:pairs] - (second / total)[:, None] * relative
            other = centre[:pairs] + (first / total)[:, None] * relative
            parts.append(np.concatenate([one, other, centre[pairs:]]))
        return Particles(masses, parts[0], parts[1])
