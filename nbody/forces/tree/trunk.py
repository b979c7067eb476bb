"""The cells above the branches of several ranks. All ranks have the same, from the branches that each sends to all."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbody.forces.direct.cpu_tiles import aligned_zeros
from nbody.forces.tree.octree import Cells, cells_of
from nbody.forces.tree.order import PAD
from nbody.forces.tree.pieces import Variant
from nbody.forces.tree.upward import Fields, fields_of


class Branches(NamedTuple):
    """The branches of a rank, in order: the key of the first body, the number of bodies, the first body (B, 4), and the rows
    of :class:`~nbody.forces.tree.upward.Fields`."""

    keys: np.ndarray
    count: np.ndarray  # type: ignore[assignment]
    bodies: np.ndarray
    records: np.ndarray
    moments: np.ndarray
    boxes: np.ndarray


class Trunk(NamedTuple):
    """The cells above the branches, whose leaves are the branches.

    Attributes:
        cells: with the numbers of branches in ``first``, and those of bodies in ``count``.
        fields: of the cells.
        ranks: (P + 1,) the first branch of each rank, and the number of branches.
        before: (B + 1,) the bodies before each branch, and their number.
        leaf: (B,) the cell that is a branch.
    """

    cells: Cells
    fields: Fields
    ranks: np.ndarray
    before: np.ndarray
    leaf: np.ndarray

    def above(self, rank: int) -> np.ndarray:
        """The cells, other than branches, that have bodies of a rank."""
        first, last = self.before[self.ranks[rank : rank + 2]]
        begin = self.before[self.cells.first]
        return np.flatnonzero((begin < last) & (begin + self.cells.count > first) & (self.cells.children > 0))


def trunk_of(variant: Variant, branches: Sequence[Branches]) -> Trunk:
    """The trunk over the branches of all ranks."""
    keys, count, *rows = (np.concatenate(each) for each in zip(*branches, strict=True))
    before = np.concatenate(([0], np.cumsum(count)))
    cells = cells_of(keys, 1, variant.dimensions)
    ends = before[cells.first.astype(np.int64) + cells.count]
    cells = cells._replace(count=(ends - before[cells.first]).astype(np.uint32))
    bodies = aligned_zeros((4, len(keys) + PAD), rows[0].dtype)
    bodies[:, : len(keys)] = rows[0].T
    leaves = np.flatnonzero(cells.children == 0)
    leaf = np.empty(len(keys), np.int64)
    leaf[cells.first[leaves]] = leaves
    fields = fields_of(variant, cells, bodies, np.zeros(len(keys), bodies.dtype), Fields(*rows[1:]))
    ranks = np.concatenate(([0], np.cumsum([len(each.keys) for each in branches])))
    return Trunk(cells, fields, ranks, before, leaf)
