"""Planetary systems from orbital elements."""

import math
from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from nbody.errors import InputError, did_you_mean
from nbody.initial.few import Eccentricity
from nbody.initial.generator import FixedGenerator, centred
from nbody.initial.orbit import on_orbit, true_anomaly
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.fields import Finite, Group, KeyProblem, Length, LengthOrZero, MassOrZero, Name, a_list

Array = np.ndarray


class Body(Group):
    """One body. The first has no orbit; each other one is on an ellipse about the centre of mass of all bodies before it
    (Jacobi's coordinates), or about the body ``around``. Angles are in degrees.

    Attributes:
        m: the mass; 0 for a test particle.
        name: the name of its species.
        radius: its radius, for collisions.
        a, e: semi-major axis and eccentricity.
        inc: the inclination.
        Omega: the longitude of the ascending node.
        omega: the argument of the pericentre.
        f, M: the true or the mean anomaly (one of them).
        around: the name of the body at the focus.
    """

    m: MassOrZero
    name: Name | None = None
    radius: LengthOrZero | None = None
    a: Length | None = None
    e: Eccentricity = 0.0
    inc: Finite = 0.0
    Omega: Finite = 0.0
    omega: Finite = 0.0
    f: Finite | None = None
    M: Finite | None = None
    around: Name | None = None

    @model_validator(mode="after")
    def _one_anomaly(self) -> Self:
        if self.f is not None and self.M is not None:
            raise KeyProblem("M", "give the true anomaly 'f' or the mean anomaly 'M'; remove one of the two")
        return self

    def relative(self, mu: float) -> tuple[Array, Array]:
        """Position and velocity (3,) relative to the focus; ``mu`` is G times the sum of the masses."""
        assert self.a is not None
        if self.f is None:
            anomaly = true_anomaly(math.radians(self.M or 0.0), self.e)
        else:
            anomaly = np.asarray(math.radians(self.f))
        angles = map(math.radians, (self.inc, self.Omega, self.omega))
        return on_orbit(mu, self.a * (1 - self.e), self.e, anomaly, *angles)


def radii_of(bodies: Sequence[Body]) -> Array:
    """(N,), 0 for bodies without a radius; empty if none has one."""
    return np.array([body.radius or 0.0 for body in bodies] if any(body.radius for body in bodies) else [])


Bodies = Annotated[
    tuple[Body, ...], BeforeValidator(a_list("a list of bodies, as in [{m: 1}, {m: 3e-6, a: 1}]")), Field(min_length=1)
]


def placed_bodies(bodies: Sequence[Body], G: float, dimensions: int) -> tuple[Array, Array, Array]:
    """Masses (N,), positions and velocities (N, 3), with the first body at rest in the origin.

    Raises:
        InputError: an orbit without a, a focus that is not listed before, or an inclination in two dimensions.
    """
    mass = np.array([body.m for body in bodies])
    position, velocity = np.zeros((2, len(bodies), 3))
    names = [body.name for body in bodies]
    for k, body in enumerate(bodies):
        at = f"bodies.{k}"
        if k == 0:
            if body.a is not None:
                raise InputError(f"{at}.a: the first body is the centre and has no orbit; remove 'a'")
            continue
        if body.a is None:
            raise InputError(f"{at}.a: is missing; every body but the first needs the semi-major axis of its orbit")
        if dimensions == 2 and math.sin(math.radians(body.inc)) != 0:
            raise InputError(f"{at}.inc: a run in 2 dimensions has no inclinations; remove it")
        if body.around is None:
            inner = mass[:k].sum()
            focus, moving = ((mass[:k, None] * each[:k]).sum(axis=0) / (inner or 1) for each in (position, velocity))
        elif body.around in names[:k]:
            i = names.index(body.around)
            inner, focus, moving = mass[i], position[i], velocity[i]
        else:
            known = [name for name in names[:k] if name]
            hint = (
                did_you_mean(body.around, known) or f"; the bodies before it are {', '.join(known) or 'without names'}"
            )
            raise InputError(f"{at}.around: there is no body '{body.around}' before this one{hint}")
        if inner + body.m == 0:
            raise InputError(f"{at}.m: an orbit needs a mass; give the body at the focus one")
        x, v = body.relative(G * (inner + body.m))
        position[k], velocity[k] = focus + x, moving + v
    return mass, position, velocity


class Planets(FixedGenerator):
    """``bodies: [{m: 1, name: sun}, {m: 3e-6, a: 1, e: 0.0167, name: earth}, {m: 4e-8, a: 0.00257, around: earth}]``, about
    their centre of mass. See :class:`Body` for the elements.

    Attributes:
        bodies: from the inside to the outside.
    """

    bodies: Bodies

    @property
    def bodies_made(self) -> int:
        return len(self.bodies)

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        n = gravity.dimensions
        mass, position, velocity = placed_bodies(self.bodies, gravity.G, n)
        if not mass.any():
            raise InputError("bodies.0.m: every mass is zero; the first body needs one")
        given = [body.name for body in self.bodies if body.name]
        for name in given:
            if given.count(name) > 1:
                raise InputError(f"bodies: two bodies with one name, {name!a}; give each its own name")
        names = [*given, ""] if len(given) < len(self.bodies) else given
        species = np.array([names.index(body.name or "") for body in self.bodies])
        return centred(
            Particles(
                mass, position[:, :n], velocity[:, :n], species=species, species_names=tuple(names),
                radius=radii_of(self.bodies),
            )
        )  # fmt: skip
