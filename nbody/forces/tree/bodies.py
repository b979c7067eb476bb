"""Bodies in Morton order and their cells: the sources or the targets of a descent, and its division into tasks."""

import numpy as np

from nbody.forces.compute_units import ComputeUnits
from nbody.forces.tree.box import Box
from nbody.forces.tree.octree import Cells, cells_of
from nbody.forces.tree.order import Order, gathered, picked, sorted_bodies
from nbody.forces.tree.pieces import Variant
from nbody.forces.tree.upward import fields_of
from nbody.forces.tree.walk_memory import TreeView
from nbody.forces.tree.workers import one_thread_for_few

TASKS_PER_WORKER = 32
"""The number of subtrees per thread into which the targets are divided, at least."""


class SortedBodies:
    """Bodies in Morton order and their cells: the sources and the targets of a tree.

    Args:
        position: (N, D) in the precision of the kernel.
        mass: (N,) the same; zeros for points that are no bodies.
        box: the root cell.
        units: the kernel's units.
        leaf: cells with more bodies are divided.
    """

    def __init__(self, position: np.ndarray, mass: np.ndarray, box: Box, units: ComputeUnits, leaf: int) -> None:
        with one_thread_for_few(len(mass)):
            self.order: Order = sorted_bodies(position, box)
            self.bodies = gathered(position, mass, self.order.order, units.position, units.mass)
            self.cells: Cells = cells_of(self.order.keys, leaf, position.shape[1])

    def view(self, variant: Variant, scale: np.ndarray) -> TreeView:
        """The tree for kernels; ``scale`` (N,) is |a| of all bodies in the kernel's units."""
        with one_thread_for_few(len(self.order.order)):
            scale = picked(scale, self.order.order)
            return TreeView(self.bodies, self.cells, fields_of(variant, self.cells, self.bodies, scale))

    def tasks(self, group: int, workers: int) -> np.ndarray:
        """The highest cells with not too many bodies, in order: the root for one worker, some hundred for two."""
        count = self.cells.count
        most = (
            max(group, len(self.order.order) // TASKS_PER_WORKER // workers) if workers > 1 else len(self.order.order)
        )
        above = count[self.cells.parent] > most
        above[0] = True
        chosen = np.flatnonzero(above & ((count <= most) | (self.cells.children == 0)))
        return chosen[np.argsort(self.cells.first[chosen], kind="stable")].astype(np.int64)
