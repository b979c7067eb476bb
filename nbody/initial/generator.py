"""The interface of a generator of initial conditions: its parameters, and how it makes bodies."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from nbody.errors import InputError
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.values import Group


class Generator(Group):
    """Base class of the generators. Its fields are the parameters that a scenario may give beside ``generator``,
    ``particles`` and ``seed``; error messages, ``nbody info`` and the recorded scenario are derived from them."""

    dimensions: ClassVar[tuple[int, ...]] = (2, 3)
    """The dimensions in which this generator can make bodies."""

    def count(self, asked: int | None) -> int:
        """The number of bodies that :meth:`generate` makes if the scenario says ``particles: asked``.

        Raises:
            InputError: the number is missing, or this generator makes another one. The caller adds the key.
        """
        if asked is None:
            raise InputError("is missing; add this key")
        return asked

    @abstractmethod
    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        """Make ``count`` bodies in ``gravity.dimensions`` dimensions; all random numbers come from ``rng``. Raises
        KeyProblem: a wrong parameter.

        The bits are the same on every machine if only +, −, ×, ÷ and square roots are used on random numbers (see
        :mod:`nbody.initial.sampling`). A generator that needs other functions says so."""


class FixedGenerator(Generator):
    """A generator whose number of bodies follows from its parameters."""

    @property
    @abstractmethod
    def bodies_made(self) -> int:
        """The number of bodies."""

    def count(self, asked: int | None) -> int:
        if asked not in (None, self.bodies_made):
            raise InputError(f"this generator makes {self.bodies_made} bodies, not {asked}; leave 'particles' out")
        return self.bodies_made


def centred(particles: Particles) -> Particles:
    """Move the centre of mass to the origin, at rest. Changes the particles, and returns them."""
    particles.position -= _mean(particles.mass, particles.position)
    return at_rest(particles)


def at_rest(particles: Particles) -> Particles:
    """Make the total momentum zero. Changes the particles, and returns them.

    For bodies drawn from a density about the origin, which they keep as its centre: a few distant bodies pull the centre of
    mass away from it, in a sphere of 20000 bodies by 0.1 scale radii or more."""
    particles.velocity -= _mean(particles.mass, particles.velocity)
    return particles


def _mean(mass: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    equal = (mass == mass[..., :1]).all(axis=-1)  # then without masses, whose products would round
    if equal.all():
        return vectors.mean(axis=-2, keepdims=True)  # type: ignore[no-any-return]
    weighted = (mass[..., None] * vectors).sum(axis=-2, keepdims=True) / mass.sum(axis=-1)[..., None, None]
    return np.where(equal[..., None, None], vectors.mean(axis=-2, keepdims=True), weighted) if equal.any() else weighted
