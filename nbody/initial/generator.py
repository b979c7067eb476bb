"""What a generator of initial conditions is: its parameters, and how bodies are made from them."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.fields import Group


class Generator(Group):
    """The fields are the parameters that a scenario may give beside ``generator``, ``particles`` and ``seed``, with
    their kinds and defaults; errors, ``nbody info`` and the recorded scenario follow from them."""

    dimensions: ClassVar[tuple[int, ...]] = (2, 3)
    """The dimensions in which it makes bodies."""

    @abstractmethod
    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        """``count`` bodies in ``gravity.dimensions`` dimensions, with all randomness from ``rng``.

        Use only +, −, ×, ÷ and square roots on random numbers (see :mod:`nbody.initial.sampling`)."""
