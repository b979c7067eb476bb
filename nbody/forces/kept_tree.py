"""``nbody.Tree``: a tree over bodies that is built once and can be asked again, at the bodies or at any points."""

from typing import Any

import numpy as np

from nbody.errors import InputError, unknown
from nbody.forces import ENGINES
from nbody.forces.called import bodies_and_law, options_of, points_of
from nbody.forces.memory import check_fits
from nbody.forces.range import check_range
from nbody.forces.tree.options import TreeOptions
from nbody.forces.tree.tree import Tree as Built

WHERE = "Tree: "
"""What messages begin with."""

CPU_PRECISIONS = ("float32", "float64")


class Tree:
    """A tree over bodies on the CPU. ::

        tree = nbody.Tree(position, mass, softening="plummer", length=0.01, accuracy=1e-4)
        a = tree.accelerations()
        phi = tree.potential(at=points)

    The arrays are copied: a change of them does not change the tree.

    Args:
        position: (N, D) array, D 2 or 3, any real dtype.
        mass: (N,) array, not negative.
        G: the gravitational constant, in the units of the arrays.
        softening: ``plummer``, ``spline``, ``cutoff`` or ``none``, with its ``length``.
        precision: ``float32`` or ``float64``.
        options: ``accuracy``, the median relative error of the accelerations (1e-3); and what else
            :class:`~nbody.forces.tree.options.TreeOptions` has.

    Raises:
        InputError: arrays that do not fit or are not finite, a name that does not exist, an accuracy that the precision
            does not have.
    """

    def __init__(
        self,
        position: Any,
        mass: Any,
        *,
        G: float = 1.0,
        softening: Any = "none",
        length: float = 0.0,
        precision: str = "float64",
        **options: Any,
    ) -> None:
        if precision not in CPU_PRECISIONS:
            raise unknown("precision", precision, CPU_PRECISIONS, WHERE)
        particles, _, gravity = bodies_and_law(position, mass, None, G, softening, length, WHERE)
        if gravity.per_species:
            raise InputError(f"{WHERE}a tree has one softening length for all bodies; give one number")
        kind = ENGINES.load("cpu-tree")
        kind.require_device()
        chosen = options_of(TreeOptions, options, WHERE)
        kind.check_options(chosen, precision, WHERE)
        check_fits(kind, particles.count, precision, WHERE)
        check_range(kind, gravity, precision, particles, WHERE)
        assert isinstance(chosen, TreeOptions)
        self._tree = Built(particles.position, particles.mass, gravity, precision, chosen)

    def __repr__(self) -> str:
        tree = self._tree
        return f"<Tree of {len(tree.position)} bodies, {len(tree.bodies.cells.count)} cells, {tree.precision}>"

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
            return None if at is None else points_of(at, self._tree.position.shape[1], WHERE)
        except (TypeError, ValueError) as error:
            raise InputError(f"{WHERE}an array of numbers is needed ({error})") from error
