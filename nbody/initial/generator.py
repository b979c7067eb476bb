"""The interface of a generator of initial conditions: its parameters, and how it makes bodies."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.fields import Group


class Generator(Group):
    """Base class of the generators. Its fields are the parameters that a scenario may give beside ``generator``,
    ``particles`` and ``seed``; error messages, ``nbody info`` and the recorded scenario are derived from them."""

    dimensions: ClassVar[tuple[int, ...]] = (2, 3)
    """The dimensions in which this generator can make bodies."""

    @abstractmethod
    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        """Make ``count`` bodies in ``gravity.dimensions`` dimensions; all random numbers come from ``rng``.

        Use only +, −, ×, ÷ and square roots on random numbers (see :mod:`nbody.initial.sampling`)."""
