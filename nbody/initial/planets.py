"""Planetary systems from orbital elements."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from nbody.errors import did_you_mean
from nbody.initial.generator import FixedGenerator, centred
from nbody.initial.orbit import of_eccentric_anomaly, on_orbit, true_anomaly
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.values import (
    Degrees,
    Finite,
    Group,
    KeyProblem,
    Length,
    LengthOrZero,
    MassOrZero,
    Name,
    NotNegative,
    Time,
    a_list,
    with_unit,
)

Array = np.ndarray


class Body(Group):
    """One body. The first has no orbit; each other one is on a conic about the centre of mass of all bodies before it
    (Jacobi's coordinates), or about the body ``around``. Angles are in degrees. Of ``a, P, q`` and so on give one.

    Attributes:
        m: the mass; 0 for a test particle.
        name: its name, that of its species.
        radius: its radius, for collisions.
        a, P, q: the semi-major axis, negative for a hyperbola; the period of an ellipse; the distance of the pericentre,
            which a parabola needs.
        e: the eccentricity.
        inc: the inclination.
        Omega: the longitude of the ascending node.
        omega, pomega: the argument or the longitude of the pericentre.
        f, M, E, l, T: where the body is: the true, the mean or the eccentric anomaly, the mean longitude, or the time at
            which it passes the pericentre; in the pericentre by default. As in :class:`~nbody.diagnostics.orbits.Elements`.
        around: the name of the body at the focus.
    """

    exclusive = (("a", "P", "q"), ("omega", "pomega"), ("f", "M", "E", "l", "T"))

    m: MassOrZero
    name: Name | None = None
    radius: LengthOrZero | None = None
    a: Annotated[Finite, with_unit("length")] | None = None
    P: Time | None = None
    q: Length | None = None
    e: NotNegative = 0.0
    inc: Degrees = 0.0
    Omega: Degrees = 0.0
    omega: Degrees | None = None
    pomega: Degrees | None = None
    f: Degrees | None = None
    M: Degrees | None = None
    E: Degrees | None = None
    l: Degrees | None = None  # noqa: E741  (the field's letter)
    T: Annotated[Finite, with_unit("time")] | None = None
    around: Name | None = None

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if self.a is not None and self.a * (1 - self.e) <= 0:
            wrong = "an ellipse (e < 1) has a > 0, a hyperbola (e > 1) a < 0, and a parabola none; correct it, or give 'q'"
            raise KeyProblem("a", f"{self.a:g} does not fit e = {self.e:g}: {wrong}")
        if self.P is not None and self.e >= 1:
            raise KeyProblem("P", f"only an ellipse (e < 1) has a period, got e = {self.e:g}; give 'q'")
        if self.f is not None and self.e >= 1 and not 1 + self.e * math.cos(math.radians(self.f)) > 1e-12:
            most = math.degrees(math.acos(-1 / self.e))
            raise KeyProblem("f", f"must be nearer to 0 than {most:g} for e = {self.e:g}, got {self.f:g}")
        return self

    def relative(self, mu: Array | float) -> tuple[Array, Array]:
        """Position and velocity (…, 3) relative to the focus at the time 0; ``mu`` is G times the sum of the masses. The
        elements may be arrays (…), see :meth:`Planets.systems`."""
        e: Any = self.e
        a = _each(_axis_of_period, mu, self.P) if self.P is not None else self.a
        q: Any = self.q if a is None else a * (1 - e)
        sense = _each(_sense, self.inc)  # of longitudes in backward orbits
        omega: Any = _zero(self.omega) if self.pomega is None else sense * (self.pomega - self.Omega)
        if self.f is not None:
            anomaly = np.radians(self.f)
        elif self.E is not None:
            anomaly = of_eccentric_anomaly(np.radians(self.E), e)
        elif self.T is not None:
            anomaly = true_anomaly(_each(_mean_anomaly, self.T, mu, q, e), e, apart=True)
        else:
            mean = _zero(self.M) if self.l is None else sense * (self.l - self.Omega) - omega
            anomaly = true_anomaly(np.radians(mean), e, apart=True)
        return on_orbit(mu, q, e, anomaly, *map(np.radians, (self.inc, self.Omega, omega)))


VARIED = ("m", "a", "P", "q", "e", "inc", "Omega", "omega", "pomega", "f", "M", "E", "l", "T")
"""The numbers of a body that may be arrays."""


def _each(function: Callable, *values: Any) -> Array:
    """A function of numbers, of arrays: with the bits of :mod:`math`."""
    return np.asarray(np.frompyfunc(function, len(values), 1)(*values), float)


def _zero(value: Any) -> Any:
    return 0.0 if value is None else value


def _axis_of_period(mu: float, period: float) -> float:
    return math.cbrt(mu * (period / (2 * math.pi)) ** 2)


def _sense(inclination: float) -> float:
    return -1.0 if abs(math.remainder(inclination, 360)) > 90 else 1.0


def _mean_anomaly(time: float, mu: float, q: float, e: float) -> float:
    return -time * math.sqrt(mu / (2 * q**3 if e == 1 else abs(q / (1 - e)) ** 3))


def radii_of(bodies: Sequence[Body]) -> Array:
    """(N,), 0 for bodies without a radius; empty if none has one."""
    return np.array([body.radius or 0.0 for body in bodies] if any(body.radius for body in bodies) else [])


Bodies = Annotated[
    tuple[Body, ...], BeforeValidator(a_list("a list of bodies, as in [{m: 1}, {m: 3e-6, a: 1}]")), Field(min_length=1)
]


def placed_bodies(bodies: Sequence[Body], G: float, dimensions: int, first: int = 0) -> tuple[Array, Array, Array]:
    """Masses (…, N), positions and velocities (…, N, 3), with the first body at rest in the origin; in errors it has the
    number ``first``. Raises KeyProblem: an orbit without a size, a focus that is not listed before, or an inclination in two
    dimensions."""
    several = np.broadcast_shapes(*(np.shape(getattr(body, key)) for body in bodies for key in VARIED))
    mass = np.empty((*several, len(bodies)))
    position, velocity = np.zeros((2, *mass.shape, 3))
    for k, body in enumerate(bodies):
        mass[..., k] = body.m
    names = [body.name for body in bodies]
    for k, body in enumerate(bodies):
        at = f"bodies.{first + k}"
        if k == 0:
            if given := [key for key in ("a", "P", "q") if getattr(body, key) is not None]:
                raise KeyProblem(f"{at}.{given[0]}", f"the first body is the centre and has no orbit; remove '{given[0]}'")
            continue
        if body.a is None and body.P is None and body.q is None:
            raise KeyProblem(f"{at}.a", "is missing; a body on an orbit needs 'a', 'P' or 'q'")
        if dimensions == 2 and np.any(np.sin(np.radians(body.inc)) != 0):
            raise KeyProblem(f"{at}.inc", "a run in 2 dimensions has no inclinations; remove it")
        if body.around is None:
            inner = mass[..., :k].sum(axis=-1)
            focus, moving = (
                (mass[..., :k, None] * each[..., :k, :]).sum(axis=-2) / np.where(inner, inner, 1)[..., None]
                for each in (position, velocity)
            )
        elif body.around in names[:k]:
            i = names.index(body.around)
            inner, focus, moving = mass[..., i], position[..., i, :], velocity[..., i, :]
        else:
            known = [name for name in names[:k] if name]
            before = f"; the bodies before it are {', '.join(known) or 'without names'}"
            hint = did_you_mean(body.around, known) or before
            raise KeyProblem(f"{at}.around", f"there is no body '{body.around}' before this one{hint}")
        if np.any(inner + body.m == 0):
            raise KeyProblem(f"{at}.m", "an orbit needs a mass; give the body at the focus one")
        x, v = body.relative(G * (inner + body.m))
        position[..., k, :], velocity[..., k, :] = focus + x, moving + v
    return mass, position, velocity


class Planets(FixedGenerator):
    """``bodies: [{m: 1, name: sun}, {m: 3e-6, a: 1, e: 0.0167, name: earth}, {m: 4e-8, a: 0.00257, around: earth}]``, about
    their centre of mass. See :class:`Body` for the elements.

    Attributes:
        bodies: from the inside to the outside; angles in degrees.
    """

    dimensions: ClassVar[tuple[int, ...]] = (3, 2)

    bodies: Bodies

    @property
    def bodies_made(self) -> int:
        return len(self.bodies)

    def systems(self, values: Mapping[tuple[int, str], Array], alone: Particles, G: float) -> Particles | None:
        """The bodies of S systems that differ in numbers of :data:`VARIED`, with the bits that each has alone; None if some
        are on open orbits, or do not exist.

        Args:
            values: (S,) each, by the number of the body and the key.
            alone: one of the systems, which says what else there is of bodies.
        """
        for (_, key), each in values.items():
            good = np.isfinite(each) & (each > 0 if key in ("a", "P", "q") else each >= 0 if key in ("m", "e") else True)
            if not good.all() or (key == "e" and each.max() >= 1):
                return None
        if any(body.e >= 1 for body in self.bodies):
            return None
        bodies = [
            body.model_copy(update={key: each for (i, key), each in values.items() if i == k})
            for k, body in enumerate(self.bodies)
        ]
        mass, *vectors = placed_bodies(bodies, G, D := alone.dimensions)
        made = centred(Particles(mass, vectors[0][..., :D], vectors[1][..., :D]))  # with an axis for the systems
        species, radius = (np.tile(each, len(mass)) for each in (alone.species, alone.radius))
        return Particles(
            mass.ravel(), made.position.reshape(-1, D), made.velocity.reshape(-1, D), species=species,
            species_names=alone.species_names, radius=radius,
        )  # fmt: skip

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        n = gravity.dimensions
        mass, position, velocity = placed_bodies(self.bodies, gravity.G, n)
        if not mass.any():
            raise KeyProblem("bodies.0.m", "every mass is zero; the first body needs one")
        given = [body.name for body in self.bodies if body.name]
        for name in given:
            if given.count(name) > 1:
                raise KeyProblem("bodies", f"two bodies with one name, {name!a}; give each its own name")
        names = [*given, ""] if len(given) < len(self.bodies) else given
        species = np.array([names.index(body.name or "") for body in self.bodies])
        return centred(
            Particles(
                mass, position[:, :n], velocity[:, :n], species=species, species_names=tuple(names),
                radius=radii_of(self.bodies),
            )
        )  # fmt: skip
