"""The interfaces of fields: external ones, a function of position and time; and forces that depend on velocities."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from nbody.scenario.values import Finite, Group, with_unit
from nbody.state.host import HostState

Coordinate = Annotated[Finite, with_unit("length")]

MOST = 7
"""The most numbers of :meth:`Field.parameters`."""


class Field(Group):
    """Base class of the fields. Its pydantic fields are the parameters that a scenario may give beside ``field``. A field
    has an ``evaluate`` with :meth:`parameters` and :meth:`size`, or it is the sum of its :meth:`parts`.

    Attributes:
        centre: its centre in the scenario's coordinates; z = 0 in 2-D.
    """

    time_dependent: ClassVar[bool] = False
    """True if the field changes with time."""

    centre: tuple[Coordinate, Coordinate, Coordinate] = (0.0, 0.0, 0.0)

    evaluate: ClassVar[Callable[..., Any]]
    """``evaluate(x, y, z, t, p) -> (ax, ay, az, phi)``: acceleration and potential per unit mass at a point relative to the
    centre, at time t, with p of :meth:`parameters`; all float64. A static method that Numba compiles for the CPU and for
    the GPU: it may use arithmetic, ``if`` and :mod:`math`, and other functions only if they are compiled for both."""

    def parameters(self, G: float) -> tuple[float, ...]:
        """The numbers p for :attr:`evaluate`, at most :data:`MOST`: by default G M, and the others as they are declared."""
        mass, *others = (getattr(self, name) for name in type(self).model_fields if name != "centre")
        return G * mass, *others

    def size(self) -> float:
        """The smallest length over which the field changes near its centre; 0 for a point mass."""
        raise NotImplementedError

    def parts(self) -> "list[Field]":
        """The fields of which it is the sum: itself, or its components."""
        return [self]


class VelocityField(Group):
    """Base class of forces between the bodies that depend on their velocities, such as those of general relativity.

    A scheme that only kicks at given positions gets them wrong, so a scheme must say that it computes them
    (:class:`nbody.integrators.facts.SchemeFacts`); it gets :meth:`strength`. The engine adds the same
    forces and energies to what it computes for recorded frames.
    """

    @abstractmethod
    def strength(self) -> float:
        """The number that the scheme's kernels get."""

    @abstractmethod
    def add(self, state: HostState, G: float, accelerations: bool, energy: bool) -> None:
        """Add the force per mass to the accelerations of a host state if ``accelerations``, which hold those of Newton, and
        twice the energy per mass to its potential if ``energy``."""
