"""The kinds of events: each is the zero of a function of the bodies, where that function rises or falls.

A kind is a validated group of keys. :meth:`EventKind.targets` names the pairs of bodies that it looks at, and
:meth:`EventKind.measure` is the function, for each of them.
"""

from abc import abstractmethod
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nbody.diagnostics.structure import centre_of_mass, density_centre, half_mass_radius
from nbody.errors import InputError
from nbody.events.bodies import NONE, Bodies, Rows, dot
from nbody.given import shown
from nbody.particles import Particles, rows_of
from nbody.scenario.escape import CENTRES, DENSEST, HALF_MASS_RADIUS, EscapeLimit
from nbody.scenario.values import Body, Finite, Group, KeyProblem, Length, Written, with_unit

Array = np.ndarray


def _bodies(values: object) -> object:
    return values if isinstance(values, list | tuple) else (values,)


def _two(values: object) -> object:
    if not isinstance(values, list | tuple) or len(values) != 2:
        raise ValueError(f"must be two bodies, as in [0, 1], got {shown(values)}")
    return values


Several = Annotated[tuple[Body, ...], BeforeValidator(_bodies), Field(min_length=1)]


class EventKind(Group):
    """Base class of the kinds of events. Bodies are named by their ids, after :meth:`of`."""

    rises: ClassVar[bool] = True
    """Whether the event is where the function becomes positive."""
    falls: ClassVar[bool] = False
    """Whether the event is where the function becomes negative."""
    of_all: ClassVar[bool] = True
    """Whether it looks at other bodies than those that it names."""
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
        """The function, (K,), of the bodies in rows i relative to those in rows j, or one number for one row each; with
        a first axis at T moments. And its derivative in time, if an extremum between two moments matters, else None. (Only
        their signs count.)"""

    def margin(self, now: Bodies, i: Rows, j: Rows) -> Any:
        """Lengths, as many as :meth:`measure` returns numbers, positive where a zero now is an event; None if each
        is."""
        return None

    def name(self, rising: bool) -> str:
        """What the table of events calls it, at most 16 letters."""
        return type(self).__name__.lower()


class OfTwo(EventKind):
    """Base class of the kinds that look at two bodies.

    Attributes:
        bodies: two bodies.
    """

    of_all = False

    bodies: Annotated[tuple[Body, Body], BeforeValidator(_two)]

    def targets(self, ids: Array) -> list[tuple[int | str, int | str]]:
        return [self.bodies]


class Distance(OfTwo):
    """The distance of two bodies passes a limit, as in ``distance(0, 1) < 0.01``.

    Attributes:
        below, above: the distance becomes less, or more, than this; one of the two is required.
    """

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
    """The distance of two bodies is at a minimum, as in ``closest(0, 1)``.

    Attributes:
        below: only minima below this distance are events.
    """

    below: Length | None = None

    def measure(self, now: Bodies, i: Rows, j: Rows) -> tuple[Array, Array | None]:
        return dot(*now.relative(i, j)), None

    def margin(self, now: Bodies, i: Rows, j: Rows) -> Any:
        d, _ = now.relative(i, j)
        return None if self.below is None else self.below - dot(d, d) ** 0.5


class Escaping(EventKind, EscapeLimit):
    """A body leaves, as in ``escape(radius=10, unbound=true)``: it is far away, unbound, or both. (External fields are left
    out of the energy.)

    Attributes:
        bodies: the bodies that count; by default all.
    """

    threshold = True

    bodies: Several | None = None

    def of(self, bodies: Particles, where: str) -> Self:
        if isinstance(self.radius, str):
            centre = density_centre(bodies) if self.about == DENSEST else centre_of_mass(bodies)
            radius = float(self.radius.removesuffix(HALF_MASS_RADIUS)) * half_mass_radius(bodies, centre)
            if not radius > 0:
                raise InputError(f"{where}the half-mass radius r_h is 0; give a length")
            return self.model_copy(update={"radius": radius}).of(bodies, where)
        if self.about in CENTRES:
            found = self.model_copy(update={"about": None}).of(bodies, where)
            return found.model_copy(update={"about": self.about})
        return super().of(bodies, where)

    def targets(self, ids: Array) -> list[tuple[int | str, int | str]]:
        about = NONE if self.about is None or self.about in CENTRES else self.about
        return [(int(each), about) for each in (ids if self.bodies is None else self.bodies) if each != about]

    def distance(self, now: Bodies, i: Rows, j: Rows) -> Array:
        """The distances of the bodies in rows i from the place, or from the body in row j, about which the radius is."""
        d, _ = now.relative(i, j)
        if self.about is None:
            d = d - _beside(i, (now.known.mass[:, None] * now.position).sum(axis=-2) / now.known.mass.sum())
        elif self.about == DENSEST:
            d = d - _beside(i, now.each(_densest))
        found: Array = dot(d, d) ** 0.5
        return found

    def measure(self, now: Bodies, i: Rows, j: Rows) -> tuple[Array, Array | None]:
        assert not isinstance(self.radius, str)
        beyond = self.distance(now, i, j) - (self.radius or 0.0)
        return (np.minimum(beyond, now.each(partial(self._energy, i=i))) if self.unbound else beyond), None

    def name(self, rising: bool) -> str:
        return "escape"

    def _energy(self, now: Bodies, *, i: Rows) -> Array:
        """Of the bodies in rows i, per unit mass."""
        from nbody.forces.reference import direct_sum

        known, law = now.known, now.gravity
        softening2 = law.squares(known.species, known.species_names) if law.per_species else None
        potential = direct_sum(now.position, known.mass, law, np.atleast_1d(np.asarray(i)), softening2)[1]
        v = now.velocity[i] - known.mass @ now.velocity / known.mass.sum()
        return 0.5 * dot(v, v) + (potential[0] if v.ndim == 1 else potential)


def _beside(i: Rows, centre: Array) -> Array:
    """A centre, (…, D), as it is subtracted from the positions of bodies in rows i."""
    return centre[..., None, :] if isinstance(i, np.ndarray) else centre


def _densest(now: Bodies) -> Array:
    finite = np.isfinite(now.position).all()
    return density_centre(now.particles()) if finite else np.full(now.position.shape[-1], np.nan)


class Transit(EventKind):
    """A body passes in front of another one, as in ``transit(1, axis=x)``: their distance on the sky, as seen from afar, is
    at a minimum.

    Attributes:
        bodies: the bodies that pass.
        about: the body behind, the star.
        axis: from where one looks.
        below: only minima below this distance are events.
    """

    of_all = False

    bodies: Several
    about: Body = 0
    axis: Literal["x", "y", "z", "-x", "-y", "-z"] = "x"
    below: Length | None = None

    def measure(self, now: Bodies, i: Rows, j: Rows) -> tuple[Array, Array | None]:
        d, w = now.relative(i, j)
        along = self.axis_number()
        return dot(d, w) - d[..., along] * w[..., along], None  # on the sky

    def margin(self, now: Bodies, i: Rows, j: Rows) -> Any:
        d, _ = now.relative(i, j)
        along = self.axis_number()
        sky, front = np.delete(d, along, axis=-1), d[..., along] * (-1 if self.axis[0] == "-" else 1)
        return front if self.below is None else np.minimum(front, self.below - dot(sky, sky) ** 0.5)


class Apsis(EventKind):
    """A body is closest to another one, at its pericentre, or farthest from it, at its apocentre, as in ``apsis(1)``.

    Attributes:
        bodies: the bodies that move.
        about: the body at the focus.
        which: of the two is an event.
    """

    of_all = False

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
    """A body crosses a plane, as in ``crossing(1, axis=z)``.

    Attributes:
        bodies: the bodies that cross.
        axis: the plane is perpendicular to it.
        at: the coordinate of the plane on the axis.
        direction: up, where the coordinate grows, down, or both.
        about: the body from which coordinates are measured, instead of the origin.
    """

    of_all = False

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
        return d[..., along] - self.at, w[..., along]


def _function(value: object) -> object:
    if not callable(value):
        raise ValueError(f"must be a function of the particles, got {shown(value)}")
    return getattr(value, "py_func", value)  # Numba compiles none of particles


class Function(EventKind):
    """A zero of a function of the particles. (No file can hold it.)

    Attributes:
        function: returns a number for the particles.
        direction: where it goes up, down, or both.
    """

    function: Annotated[Any, AfterValidator(_function), Written("function in Python")]
    direction: Literal["up", "down", "both"] = "both"

    def directions(self) -> tuple[bool, bool]:
        return self.direction != "down", self.direction != "up"

    def targets(self, ids: Array) -> list[tuple[int | str, int | str]]:
        return [(NONE, NONE)]

    def measure(self, now: Bodies, i: Rows, j: Rows) -> tuple[Array, Array | None]:
        return now.each(self._value), None

    def _value(self, now: Bodies) -> np.float64:
        found = self.function(now.particles())
        if np.ndim(found) or not isinstance(found, int | float | np.number | np.ndarray):
            raise InputError(f"events: the function of an event must return a number, got {shown(found)}")
        return np.float64(found)  # type: ignore[arg-type]
