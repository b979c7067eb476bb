"""The interface of an external field: its parameters, and its acceleration and potential at a point."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from nbody.scenario.fields import Finite, Group, Quantity

Coordinate = Annotated[Finite, Quantity("length")]


class Field(Group):
    """Base class of the fields. Its pydantic fields are the parameters that a scenario may give beside ``field``.

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

    @abstractmethod
    def parameters(self, G: float) -> tuple[float, ...]:
        """The numbers p for :attr:`evaluate`, at most :data:`MOST`; ``G`` is the gravitational constant."""

    @abstractmethod
    def size(self) -> float:
        """The smallest length over which the field changes near its centre; 0 for a point mass."""

    def parts(self) -> "list[Field]":
        """The fields of which it is the sum: itself, or its components."""
        return [self]


MOST = 7
"""The most numbers of :meth:`Field.parameters`."""
