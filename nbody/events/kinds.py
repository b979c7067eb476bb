"""The kinds of events: each is the zero of a function of the bodies, where that function rises or falls.

A kind is a validated group of keys. :meth:`EventKind.targets` names the pairs of bodies that it looks at, and
:meth:`EventKind.measure` is the function, for each of them.
"""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nbody.given import shown
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.values import Finite, Flag, Group, KeyProblem, Length, Whole, with_unit

Array = np.ndarray

NONE = -1
"""The id, or the row, of a body that is not there."""


class Bodies(NamedTuple):
    """The bodies at one moment.

    Attributes:
        time: in the scenario's unit.
        position, velocity: (n, D) float64.
        known: their masses and ids, and whatever else does not change within a step.
        gravity: the law between them.
    """

    time: float
    position: Array
    velocity: Array
    known: Particles
    gravity: Gravity

    def relative(self, i: Array, j: Array) -> tuple[Array, Array]:
        """Positions and velocities of bodies i relative to j, (K, D) each; a j of :data:`NONE` is the origin."""
        d, w = self.position.take(i, 0), self.velocity.take(i, 0)
        if len(j) and j[0] != NONE:
            d -= self.position.take(j, 0)
            w -= self.velocity.take(j, 0)
        return d, w

    def particles(self) -> Particles:
        """The bodies with all that is known of them."""
        found = object.__new__(Particles)  # which were checked when they were made
        found.__dict__.update(self.known.__dict__)
        found.position, found.velocity, found.time = self.position, self.velocity, self.time
        return found


def dot(a: Array, b: Array) -> Array:
    """Scalar products of rows, (K,)."""
    found: Array = np.einsum("ij,ij->i", a, b)
    return found


def _bodies(values: object) -> object:
    return values if isinstance(values, list | tuple) else (values,)


Ids = Annotated[tuple[Whole, ...], BeforeValidator(_bodies), Field(min_length=1)]


class EventKind(Group):
    """Base class of the kinds of events. Bodies are named by their ids."""

    rises: ClassVar[bool] = True
    """Whether the event is where the function becomes positive."""
    falls: ClassVar[bool] = False
    """Whether the event is where the function becomes negative."""

    @model_validator(mode="after")
    def _of_different_bodies(self) -> Self:
        ids = self.ids()
        if twice := [each for each in ids if ids.count(each) > 1]:
            raise KeyProblem("bodies", f"body {twice[0]} is named twice; give different bodies")
        return self

    def directions(self) -> tuple[bool, bool]:
        """Whether the function's rise, and its fall, through zero are events."""
        return self.rises, self.falls

    def ids(self) -> tuple[int, ...]:
        """The bodies that it names."""
        about = getattr(self, "about", None)
        return (*(getattr(self, "bodies", None) or ()), *((about,) if isinstance(about, int) else ()))

    def axis_number(self) -> int:
        """The number of its axis; 0 if it has none."""
        return "xyz".index(getattr(self, "axis", "x")[-1])

    def targets(self, ids: Array) -> list[tuple[int, int]]:
        """The ids of the bodies at which it looks, each with that of the body to which it is relative or :data:`NONE`."""
        bodies, about = getattr(self, "bodies", ()), getattr(self, "about", NONE)
        return [(each, NONE if about is None else about) for each in bodies]

    @abstractmethod
    def measure(self, now: Bodies, i: Array, j: Array) -> tuple[Array, Array | None]:
        """The function, (K,), of bodies i relative to j, which are rows; and its derivative in time where an extremum
        between two moments is looked for, else None."""

    def counts(self, now: Bodies, i: Array, j: Array) -> bool:
        """False if a zero at this moment is no event."""
        return True

    def name(self, rising: bool) -> str:
        """What the table of events calls it, at most 16 letters."""
        return type(self).__name__.lower()


class OfTwo(EventKind):
    """Base class of the kinds that look at two bodies."""

    bodies: Annotated[tuple[Whole, Whole], BeforeValidator(_bodies)]

    def targets(self, ids: Array) -> list[tuple[int, int]]:
        return [self.bodies]


class Distance(OfTwo):
    """The distance of two ``bodies`` becomes less than ``below``, or more than ``above``."""

    exclusive = (("below", "above"),)

    below: Length | None = None
    above: Length | None = None

    @model_validator(mode="after")
    def _has_a_distance(self) -> Self:
        if self.below is None and self.above is None:
            raise KeyProblem("below", "is missing; give 'below' or 'above', a distance")
        return self

    def directions(self) -> tuple[bool, bool]:
        return self.above is not None, self.below is not None

    def measure(self, now: Bodies, i: Array, j: Array) -> tuple[Array, Array | None]:
        d, w = now.relative(i, j)
        r = np.sqrt(dot(d, d))
        return r - float(self.below or self.above or 0), dot(d, w)  # r times the derivative: the same sign


class Closest(OfTwo):
    """The distance of two ``bodies`` is at a minimum, at less than ``below`` if that is given."""

    below: Length | None = None

    def measure(self, now: Bodies, i: Array, j: Array) -> tuple[Array, Array | None]:
        return dot(*now.relative(i, j)), None

    def counts(self, now: Bodies, i: Array, j: Array) -> bool:
        d, _ = now.relative(i, j)
        return self.below is None or bool(dot(d, d)[0] < self.below**2)


class Escape(EventKind):
    """A body goes beyond ``radius`` from the centre of mass, or from the body ``about``; or, with ``unbound: true``, its
    energy in the field of the others, relative to the centre of mass, becomes positive; with both: it is unbound and
    beyond. Of some ``bodies``, or of all. (External fields are left out of the energy.)"""

    bodies: Ids | None = None
    radius: Length | None = None
    unbound: Flag = False
    about: Whole | None = None

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if self.radius is None and not self.unbound:
            raise KeyProblem("radius", "is missing; give a 'radius', or 'unbound: true'")
        return self

    def targets(self, ids: Array) -> list[tuple[int, int]]:
        about = NONE if self.about is None else self.about
        return [(int(each), about) for each in (ids if self.bodies is None else self.bodies) if each != about]

    def measure(self, now: Bodies, i: Array, j: Array) -> tuple[Array, Array | None]:
        mass = now.known.mass
        d, w = now.relative(i, j)
        if self.about is None:
            d -= mass @ now.position / mass.sum()
        beyond = None if self.radius is None else np.sqrt(dot(d, d)) - self.radius
        if not self.unbound:
            return beyond if beyond is not None else np.zeros(len(i)), None
        from nbody.forces.reference import direct_sum

        law, known = now.gravity, now.known
        softening2 = law.squares(known.species, known.species_names) if law.per_species else None
        v = now.velocity[i] - mass @ now.velocity / mass.sum()
        energy = 0.5 * dot(v, v) + direct_sum(now.position, mass, law, i, softening2)[1]
        return energy if beyond is None else np.minimum(energy, beyond), None


class Transit(EventKind):
    """A body passes in front of the body ``about`` (0, the star, by default), as seen from far along an ``axis``: where their
    distance on the sky is at a minimum, and less than ``below`` if that is given."""

    bodies: Ids
    about: Whole = 0
    axis: Literal["x", "y", "z", "-x", "-y", "-z"] = "x"
    below: Length | None = None

    def _sky(self, rows: Array) -> Array:
        """The components across the line of sight."""
        return np.delete(rows, self.axis_number(), 1)

    def measure(self, now: Bodies, i: Array, j: Array) -> tuple[Array, Array | None]:
        d, w = now.relative(i, j)
        along = self.axis_number()
        return dot(d, w) - d[:, along] * w[:, along], None

    def counts(self, now: Bodies, i: Array, j: Array) -> bool:
        d, _ = now.relative(i, j)
        sky, front = self._sky(d), d[0, self.axis_number()] * (-1 if self.axis[0] == "-" else 1)
        return bool(front > 0) and (self.below is None or bool(dot(sky, sky)[0] < self.below**2))


class Apsis(EventKind):
    """A body is closest to the body ``about`` (0 by default), at its ``pericentre``, or farthest from it, at its
    ``apocentre``; by default both are events."""

    bodies: Ids
    about: Whole = 0
    which: Literal["pericentre", "apocentre", "both"] = "both"

    def directions(self) -> tuple[bool, bool]:
        return self.which != "apocentre", self.which != "pericentre"

    def measure(self, now: Bodies, i: Array, j: Array) -> tuple[Array, Array | None]:
        return dot(*now.relative(i, j)), None

    def name(self, rising: bool) -> str:
        return "pericentre" if rising else "apocentre"


class Crossing(EventKind):
    """A body crosses the plane where its coordinate on an ``axis`` has the value ``at``, relative to the origin or to the body
    ``about``; upwards, where the coordinate grows, downwards, or both."""

    bodies: Ids
    axis: Literal["x", "y", "z"] = "z"
    at: Annotated[Finite, with_unit("length")] = 0.0
    direction: Literal["up", "down", "both"] = "both"
    about: Whole | None = None

    def directions(self) -> tuple[bool, bool]:
        return self.direction != "down", self.direction != "up"

    def measure(self, now: Bodies, i: Array, j: Array) -> tuple[Array, Array | None]:
        d, w = now.relative(i, j)
        along = self.axis_number()
        return d[:, along] - self.at, w[:, along]


def _function(value: object) -> object:
    if not callable(value):
        raise ValueError(f"must be a function of the particles, got {shown(value)}")
    return value


class Function(EventKind):
    """A zero of a ``function`` of the particles that a Python program gives, where it goes up, down, or both. (No file can
    hold it.)"""

    function: Annotated[Any, AfterValidator(_function)]
    direction: Literal["up", "down", "both"] = "both"

    def directions(self) -> tuple[bool, bool]:
        return self.direction != "down", self.direction != "up"

    def targets(self, ids: Array) -> list[tuple[int, int]]:
        return [(NONE, NONE)]

    def measure(self, now: Bodies, i: Array, j: Array) -> tuple[Array, Array | None]:
        return np.array([float(self.function(now.particles()))]), None

