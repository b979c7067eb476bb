"""The kinds of events: each is the zero of a function of the bodies, where that function rises or falls.

A kind is a validated group of keys. :meth:`EventKind.targets` names the pairs of bodies that it looks at, and
:meth:`EventKind.measure` is the function, for each of them.
"""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nbody.errors import InputError
from nbody.events.bodies import NONE, Bodies, Rows, dot
from nbody.given import shown
from nbody.particles import Particles, rows_of
from nbody.scenario.values import Finite, Flag, Group, KeyProblem, Length, short_name, whole_number, with_unit

Array = np.ndarray


def _body(value: object) -> object:
    return short_name(value) if isinstance(value, str) else whole_number(value)


def _bodies(values: object) -> object:
    return values if isinstance(values, list | tuple) else (values,)


def _two(values: object) -> object:
    if not isinstance(values, list | tuple) or len(values) != 2:
        raise ValueError(f"must be two bodies, as in [0, 1], got {shown(values)}")
    return values


Body = Annotated[int | str, BeforeValidator(_body)]
"""The id of a body, or its name."""

Several = Annotated[tuple[Body, ...], BeforeValidator(_bodies), Field(min_length=1)]


class EventKind(Group):
    """Base class of the kinds of events. Bodies are named by their ids, after :meth:`of`."""

    rises: ClassVar[bool] = True
    """Whether the event is where the function becomes positive."""
    falls: ClassVar[bool] = False
    """Whether the event is where the function becomes negative."""
    threshold: ClassVar[bool] = False
    """Whether it is where a condition begins to hold, which may hold at the beginning already."""

    def of(self, bodies: Particles, where: str) -> Self:
        """The same with ids in place of names. Raises InputError, which begins with ``where``: a body is not there, or is
        named twice."""
        found: dict[str, Any] = {}
        for key in ("bodies", "about"):
            if (given := getattr(self, key, None)) is not None:
                ids = bodies.id[rows_of(bodies, given, where)].tolist()
                found[key] = tuple(ids) if key == "bodies" else ids[0]
        ids = [*found.get("bodies", ()), *([found["about"]] if "about" in found else [])]
        if twice := [each for each in ids if ids.count(each) > 1]:
            raise InputError(f"{where}body {twice[0]} is named twice; give different bodies")
        return self.model_copy(update=found)

    def directions(self) -> tuple[bool, bool]:
        """Whether the function's rise, and its fall, through zero are events."""
        return self.rises, self.falls

    def axis_number(self) -> int:
        """The number of its axis; 0 if it has none."""
        return "xyz".index(getattr(self, "axis", "x")[-1])

    def targets(self, ids: Array) -> list[tuple[int | str, int | str]]:
        """The ids of the bodies at which it looks, each with that of the body to which it is relative or :data:`NONE`."""
        bodies, about = getattr(self, "bodies", ()), getattr(self, "about", NONE)
        return [(each, NONE if about is None else about) for each in bodies]

    @abstractmethod
    def measure(self, now: Bodies, i: Rows, j: Rows) -> tuple[Array, Array | None]:
        """The function, (K,), of the bodies in rows i relative to those in rows j, or one number for one row each; and its
        derivative in time, if an extremum between two moments matters, else None. (Only their signs count.)"""

    def counts(self, now: Bodies, i: int | None, j: int | None) -> bool:
        """False if a zero at this moment is no event."""
        return True

    def name(self, rising: bool) -> str:
        """What the table of events calls it, at most 16 letters."""
        return type(self).__name__.lower()


class OfTwo(EventKind):
    """Base class of the kinds that look at two bodies."""

    bodies: Annotated[tuple[Body, Body], BeforeValidator(_two)]

    def targets(self, ids: Array) -> list[tuple[int | str, int | str]]:
        return [self.bodies]


class Distance(OfTwo):
    """The distance of two ``bodies`` becomes less than ``below``, or more than ``above``."""

    exclusive = (("below", "above"),)
    threshold = True

    below: Length | None = None
    above: Length | None = None

    @model_validator(mode="after")
    def _has_a_distance(self) -> Self:
        if self.below is None and self.above is None:
            raise KeyProblem("below", "is missing; give 'below' or 'above', a distance")
        return self

    def directions(self) -> tuple[bool, bool]:
        return self.above is not None, self.below is not None

    def measure(self, now: Bodies, i: Rows, j: Rows) -> tuple[Array, Array | None]:
        d, w = now.relative(i, j)
        return dot(d, d) ** 0.5 - float(self.below or self.above or 0), dot(d, w)  # r times the derivative


class Closest(OfTwo):
    """The distance of two ``bodies`` is at a minimum, at less than ``below`` if that is given."""

    below: Length | None = None

    def measure(self, now: Bodies, i: Rows, j: Rows) -> tuple[Array, Array | None]:
        return dot(*now.relative(i, j)), None

    def counts(self, now: Bodies, i: int | None, j: int | None) -> bool:
        d, _ = now.relative(i, j)
        return self.below is None or bool(dot(d, d) < self.below**2)


class Escaping(EventKind):
    """A body goes beyond ``radius`` from the centre of mass, or from the body ``about``; or, with ``unbound: true``, its
    energy in the field of the others, relative to the centre of mass, becomes positive; with both: it is unbound and
    beyond. Of some ``bodies``, or of all. (External fields are left out of the energy.)"""

    threshold = True

    bodies: Several | None = None
    radius: Length | None = None
    unbound: Flag = False
    about: Body | None = None

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if self.radius is None and not self.unbound:
            raise KeyProblem("radius", "is missing; write 'escape(radius=10)' or 'escape(unbound=true)'")
        return self

    def targets(self, ids: Array) -> list[tuple[int | str, int | str]]:
        about = NONE if self.about is None else self.about
        return [(int(each), about) for each in (ids if self.bodies is None else self.bodies) if each != about]

    def measure(self, now: Bodies, i: Rows, j: Rows) -> tuple[Array, Array | None]:
        mass = now.known.mass
        d, _ = now.relative(i, j)
        if self.about is None:
            d = d - mass @ now.position / mass.sum()
        beyond = dot(d, d) ** 0.5 - (self.radius or 0.0)
        return (np.minimum(beyond, self._energy(now, i)) if self.unbound else beyond), None

    def name(self, rising: bool) -> str:
        return "escape"

    def _energy(self, now: Bodies, i: Rows) -> Array:
        """Of the bodies in rows i, per unit mass."""
        from nbody.forces.reference import direct_sum

        known, law = now.known, now.gravity
        softening2 = law.squares(known.species, known.species_names) if law.per_species else None
        potential = direct_sum(now.position, known.mass, law, np.atleast_1d(np.asarray(i)), softening2)[1]
        v = now.velocity[i] - known.mass @ now.velocity / known.mass.sum()
        return 0.5 * dot(v, v) + (potential[0] if v.ndim == 1 else potential)


class Transit(EventKind):
    """A body passes in front of the body ``about`` (0, the star, by default), as seen from afar on an ``axis``: where their
    distance on the sky is at a minimum, and less than ``below`` if that is given."""

    bodies: Several
    about: Body = 0
    axis: Literal["x", "y", "z", "-x", "-y", "-z"] = "x"
    below: Length | None = None

    def measure(self, now: Bodies, i: Rows, j: Rows) -> tuple[Array, Array | None]:
        d, w = now.relative(i, j)
        along = self.axis_number()
        return dot(d, w) - d.T[along] * w.T[along], None  # on the sky

    def counts(self, now: Bodies, i: int | None, j: int | None) -> bool:
        d, _ = now.relative(i, j)
        sky, front = np.delete(d, self.axis_number()), d[self.axis_number()] * (-1 if self.axis[0] == "-" else 1)
        return bool(front > 0) and (self.below is None or bool(dot(sky, sky) < self.below**2))


class Apsis(EventKind):
    """A body is closest to the body ``about`` (0 by default), at its ``pericentre``, or farthest from it, at its
    ``apocentre``; by default both are events."""

    bodies: Several
    about: Body = 0
    which: Literal["pericentre", "apocentre", "both"] = "both"

    def directions(self) -> tuple[bool, bool]:
        return self.which != "apocentre", self.which != "pericentre"

    def measure(self, now: Bodies, i: Rows, j: Rows) -> tuple[Array, Array | None]:
        return dot(*now.relative(i, j)), None

    def name(self, rising: bool) -> str:
        return "pericentre" if rising else "apocentre"


class PlaneCrossing(EventKind):
    """A body crosses the plane where its coordinate on an ``axis`` is ``at``, relative to the origin or to the body
    ``about``; upwards, where the coordinate grows, downwards, or both."""

    bodies: Several
    axis: Literal["x", "y", "z"] = "z"
    at: Annotated[Finite, with_unit("length")] = 0.0
    direction: Literal["up", "down", "both"] = "both"
    about: Body | None = None

    def directions(self) -> tuple[bool, bool]:
        return self.direction != "down", self.direction != "up"

    def name(self, rising: bool) -> str:
        return "crossing"

    def measure(self, now: Bodies, i: Rows, j: Rows) -> tuple[Array, Array | None]:
        d, w = now.relative(i, j)
        along = self.axis_number()
        return d.T[along] - self.at, w.T[along]


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

    def targets(self, ids: Array) -> list[tuple[int | str, int | str]]:
        return [(NONE, NONE)]

    def measure(self, now: Bodies, i: Rows, j: Rows) -> tuple[Array, Array | None]:
        return np.float64(self.function(now.particles())), None  # type: ignore[return-value]
