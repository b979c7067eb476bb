"""``nbody.Tree``: a tree over bodies that is built once and can be asked again, at the bodies or at any points."""

from typing import Any, Protocol

import numpy as np

from nbody.errors import InputError, counted, unknown
from nbody.forces.api import bodies_and_law, options_of, points_of
from nbody.forces.choose import choose
from nbody.forces.make import make_engine
from nbody.forces.problem import PRECISIONS, Problem
from nbody.forces.range import check_range
from nbody.forces.registry import ENGINES, TREES
from nbody.forces.tree.options import TreeOptions

WHERE = "Tree: "
"""What messages begin with."""

KEYWORDS = ("G", "softening", "length", "precision", "engine")
"""The arguments of :class:`Tree` that are no options of an engine."""


class TreeQuery(Protocol):
    """The tree of an engine: the methods are those of :class:`Tree`."""

    def accelerations(self, at: np.ndarray | None) -> np.ndarray: ...

    def potential(self, at: np.ndarray | None) -> np.ndarray: ...


class Tree:
    """A tree over bodies, on the CPU or the GPU. ::

        tree = nbody.Tree(position, mass, softening="plummer", length=0.01, accuracy=1e-4)
        a = tree.accelerations()
        phi = tree.potential(at=points)

    The arrays are copied: a change of them does not change the tree.

    Args:
        position: (N, D) array, D 2 or 3, any real dtype.
        mass: (N,) array, not negative.
        G: the gravitational constant, in the units of the arrays.
        softening: ``plummer``, ``spline``, ``cutoff`` or ``none``, with its ``length``.
        precision: ``float32``, ``mixed`` (on the GPU) or ``float64`` (on the CPU); by default the higher one of the device.
        engine: ``cpu-tree``, ``gpu-tree``, or ``tree``: on the GPU if there is one and it has the precision.
        options: ``accuracy``, the median relative error of the accelerations (1e-3); and what else
            :class:`~nbody.forces.tree.options.TreeOptions` has.

    Raises:
        InputError: arrays that do not fit or are not finite, a name that does not exist, an accuracy that the precision
            does not have.
        DeviceError: there is no GPU, or it has too little memory.
    """

    def __init__(
        self,
        position: Any,
        mass: Any,
        *,
        G: float = 1.0,
        softening: Any = "none",
        length: Any = 0.0,
        precision: str | None = None,
        engine: str = "cpu-tree",
        **options: Any,
    ) -> None:
        if engine not in (*TREES, "tree"):
            raise unknown("engine", engine, (*TREES, "tree"), WHERE)
        if precision not in (None, *PRECISIONS):
            raise unknown("precision", precision, PRECISIONS, WHERE)
        chosen = options_of(TreeOptions, options, WHERE, KEYWORDS)
        assert isinstance(chosen, TreeOptions)
        particles, _, gravity = bodies_and_law(position, mass, None, G, softening, length, WHERE)
        problem = Problem(gravity, precision or "float64", particles.count, accuracy=chosen.accuracy)
        highest_first = (precision,) if precision else tuple(reversed(PRECISIONS))
        choice = choose(engine, problem, highest_first, where=WHERE)
        kind, precision = ENGINES.load(choice.name), choice.precision
        made: Any = make_engine(kind, choice.name, chosen, problem._replace(precision=precision), WHERE)
        check_range(kind, gravity, precision, particles, WHERE)
        self._count, self._dimensions = particles.position.shape
        self._name = f"{kind.can.device.upper()}, {precision}"
        self._tree: TreeQuery = made._query(particles)

    def __repr__(self) -> str:
        return f"<Tree of {counted(self._count, 'body', 'bodies')}, {self._name}>"

    def accelerations(self, at: Any = None) -> np.ndarray:
        """The accelerations (N, D) of the bodies, or those (M, D) at points (M, D): a body in the place of a point exerts
        no force on it. Raises InputError."""
        return self._tree.accelerations(self._points(at))

    def potential(self, at: Any = None) -> np.ndarray:
        """The potential per unit mass (N,) of the bodies, or that (M,) at points; without softening it is minus infinity in
        the place of another body. Raises InputError."""
        return self._tree.potential(self._points(at))

    def _points(self, at: Any) -> np.ndarray | None:
        try:
            return None if at is None else points_of(at, self._dimensions, WHERE)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{WHERE}an array of numbers is needed ({error})") from error
