"""The interfaces of fields: external ones, functions of the body and the time; forces about a body; general relativity's."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import BeforeValidator

from nbody.scenario.values import Finite, Group, short_name, whole_number, with_unit

Array = np.ndarray

BodyChoice = int | str
"""A body by its id or its name, or a species by its name."""


def _body(value: object) -> BodyChoice:
    """Check that a value is an id or a name."""
    return short_name(value) if isinstance(value, str) else whole_number(value)


def _body_or_several(value: object) -> object:
    return tuple(map(_body, value)) if isinstance(value, list | tuple) else None if value is None else _body(value)


Coordinate = Annotated[Finite, with_unit("length")]

ARGUMENTS = "x, y, z, vx, vy, vz, m, M, t, p"
"""What a field may depend on, all float64: a position relative to its centre, the velocity and the mass m of the body, the
time, and the parameters p. Of a force about a body: position and velocity relative to that body, whose mass is M."""

ABOUT, FIRST, LAST, HEADER = 3, 4, 5, 6
"""A row of parameters has a centre, the row of the body about which it acts (-1: none), the first row that it acts on and
one past the last one; then the parameters of the term."""

POSITIONS, VELOCITIES, POST_NEWTONIAN, MUTUAL = (
    "positions",
    "velocities",
    "post_newtonian",
    "post_newtonian of all bodies",
)
"""The kinds of fields that schemes tell apart."""


class Term(NamedTuple):
    """A function that is compiled as a part of a sum of fields (:func:`nbody.fields.compiled.summed`).

    Attributes:
        function: returns ``(ax, ay, az, phi)``, acceleration and potential per unit mass, or the first ``returns`` of them.
        takes: what it is called with, in the words of :data:`ARGUMENTS`.
        returns: 4, 3, or 2 for ``(ax, ay)``.
        potential: returns phi, if ``function`` does not; None if the force has no potential.
        potential_takes: what it is called with.
        about: position and velocity are relative to a body, whose mass is M.
        reaction: that body gets -m/M times the acceleration.
        identity: what tells it from a term of the same function that refers to other values (which Numba makes constants).
    """

    function: Callable[..., Any]
    takes: str = "x, y, z, t, p"
    returns: int = 4
    potential: Callable[..., Any] | None = None
    potential_takes: str = ""
    identity: str = ""
    about: bool = False
    reaction: bool = False

    @property
    def moving(self) -> bool:
        """True if it depends on the velocity."""
        return not {"vx", "vy", "vz"}.isdisjoint(self.takes.split(", "))


class Field(Group):
    """Base class of the fields. Its pydantic fields are the parameters that a scenario may give beside ``field``. A field
    has an ``evaluate`` with :meth:`parameters` and :meth:`size`, or it is the sum of its :meth:`parts`.

    Attributes:
        centre: its centre in the scenario's coordinates; z = 0 in 2-D.
    """

    time_dependent: ClassVar[bool] = False
    """True if the field changes with time."""

    takes: ClassVar[str] = "x, y, z, t, p"
    """The arguments of :attr:`evaluate`, some of :data:`ARGUMENTS`."""

    centre: tuple[Coordinate, Coordinate, Coordinate] = (0.0, 0.0, 0.0)

    evaluate: ClassVar[Callable[..., Any]]
    """``evaluate(x, y, z, t, p) -> (ax, ay, az, phi)``: acceleration and potential per unit mass at a point relative to the
    centre, at time t, with p of :meth:`parameters`; all float64. A static method that Numba compiles for the CPU and for
    the GPU: it may use arithmetic, ``if`` and :mod:`math`, and other functions only if they are compiled for both."""

    def term(self) -> Term:
        """What is compiled."""
        return Term(type(self).evaluate, self.takes)

    def parameters(self, G: float) -> tuple[float, ...]:
        """The numbers p for :attr:`evaluate`: by default G M, and the others as they are declared."""
        mass, *others = (getattr(self, name) for name in type(self).model_fields if name != "centre")
        return G * mass, *others

    def size(self) -> float | None:
        """The smallest length over which the field changes near its centre; 0 for a point mass, None if it is not known."""
        raise NotImplementedError

    def parts(self) -> "list[Field]":
        """The fields of which it is the sum: itself, or its components."""
        return [self]

    def doubt(self, bodies: Sequence[Sequence[float]], time: float) -> str:
        """What is wrong with its potential at the (x, y, z, m) of some bodies, in a line; nothing for nbody's own."""
        return ""

    @property
    def bodies(self) -> tuple[BodyChoice, BodyChoice | None] | None:
        """The body about which it acts, and the body or the species that it acts on (None: all others); None if its centre
        is fixed."""
        return None

    @property
    def title(self) -> str:
        """Its name in messages."""
        return type(self).__name__

    @property
    def kind(self) -> str:
        """What a scheme must be able to do: evaluate it at :data:`POSITIONS`, or know the :data:`VELOCITIES` there too."""
        return VELOCITIES if any(each.term().moving for each in self.parts()) else POSITIONS

    @property
    def has_potential(self) -> bool:
        """True if the energies of a run include it."""
        return True


class BodyField(Field):
    """Base class of forces of a body on others: functions of positions and velocities relative to it, and of both masses.

    Attributes:
        about: the body that exerts it, by its id or name.
        on: the bodies that it acts on, by id or name, one or several, or a species; all others by default.
    """

    centre: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 0.0)  # type: ignore[misc]

    reaction: ClassVar[bool] = False
    """True if the body ``about`` gets the reaction, so that momentum is conserved."""

    about: Annotated[BodyChoice, BeforeValidator(_body)] = 0
    on: Annotated[BodyChoice | tuple[BodyChoice, ...] | None, BeforeValidator(_body_or_several)] = None

    def term(self) -> Term:
        return Term(type(self).evaluate, self.takes, about=True, reaction=self.reaction)

    def size(self) -> None:
        return None

    def parts(self) -> list[Field]:
        if not isinstance(self.on, tuple):
            return [self]
        return [self.model_copy(update={"on": each}) for each in self.on]

    @property
    def bodies(self) -> tuple[BodyChoice, BodyChoice | None]:
        assert not isinstance(self.on, tuple)
        return self.about, self.on


class VelocityField(Group):
    """Base class of forces between the bodies that depend on their velocities, such as those of general relativity.

    A scheme that only kicks at given positions gets them wrong, so a scheme must say that it computes them
    (:class:`nbody.integrators.facts.SchemeFacts`); it gets :meth:`strength`. The engine adds the same
    forces and energies to what it computes for recorded frames.
    """

    @property
    def kind(self) -> str:
        """What a scheme must be able to do."""
        return POST_NEWTONIAN

    @abstractmethod
    def strength(self) -> float:
        """The number that the scheme's kernels get."""

    @abstractmethod
    def add(
        self, position: Array, velocity: Array, mass: Array, G: float, systems: int = 1, *,
        acceleration: Array | None = None, potential: Array | None = None, factor: float = 1.0,
    ) -> None:  # fmt: skip
        """Add the force per mass to accelerations (N, D), which hold those of Newton, or ``factor`` times the energy per
        mass to ``potential`` (N,), of the bodies of some systems."""
