"""Cells that are sent to another rank, and the tree that a rank makes of what it has received."""

from typing import NamedTuple

import numpy as np

from nbody.forces.direct.cpu_tiles import aligned_zeros
from nbody.forces.tree.octree import Cells
from nbody.forces.tree.order import PAD
from nbody.forces.tree.room import Side
from nbody.forces.tree.trunk import Trunk
from nbody.forces.tree.upward import Fields


class Sent(NamedTuple):
    """Cells of a rank, its branches first, and the bodies of their leaves.

    Attributes:
        table: (M, 4) uint32: the number of bodies, the first child (its place here; 0 if it was not sent), the number of
            children, and of a leaf the place of its first body.
        records, moments: as in :class:`~nbody.forces.tree.upward.Fields`.
        bodies: (n, 4).
    """

    table: np.ndarray
    records: np.ndarray
    moments: np.ndarray
    bodies: np.ndarray


def collected(own: Side, chosen: np.ndarray) -> Sent:
    """The rows of some cells and the bodies of the leaves among them."""
    place = np.zeros(len(own.cells.first) + 1, np.uint32)
    place[chosen] = np.arange(len(chosen))
    count, children = own.cells.count[chosen], own.cells.children[chosen]
    leaves = chosen[children == 0]
    sizes = own.cells.count[leaves].astype(np.int64)
    before = np.cumsum(sizes) - sizes
    bodies = np.repeat(own.cells.first[leaves] - before, sizes) + np.arange(int(sizes.sum()))
    first = np.zeros(len(chosen), np.uint32)
    first[children == 0] = before
    table = np.stack([count, np.where(children > 0, place[own.cells.child[chosen]], 0), children, first], axis=1)
    return Sent(
        table.astype(np.uint32), own.fields.records.take(chosen, 0), own.fields.moments.take(chosen, 0),
        np.stack([row.take(bodies) for row in own.bodies], axis=1),
    )  # fmt: skip


def joined(rank: int, own: Side, roots: np.ndarray, trunk: Trunk, received: list[Sent]) -> Side:
    """One tree of the trunk, the cells of a rank, and what others have sent, in this order; and its bodies, the own ones
    first.

    The number of bodies of a cell of the trunk is that in the whole tree. It begins after the bodies of this rank if its
    first one is another rank's, so that only one rank counts what the cell takes (:mod:`.descent`). Each own branch is here
    twice: as a leaf of the trunk, which is a source, and as the first of its cells, which is a target. The boxes end before
    the received cells, which are sources only.
    """
    above, here, bodies = len(trunk.cells.first), len(own.cells.first), int(roots[-1])
    total = above + here + sum(len(each.table) for each in received)
    table = np.zeros((5, total), np.uint32)
    first, count, child, children, parent = table
    child[:above], children[:above], parent[:above] = trunk.cells.child, trunk.cells.children, trunk.cells.parent
    begins = trunk.before[trunk.cells.first] - trunk.before[trunk.ranks[rank]]
    first[:above] = np.where((begins >= 0) & (begins < bodies), begins, bodies)
    count[:above] = trunk.cells.count
    part = slice(above, above + here)
    first[part], count[part], children[part] = own.cells.first, own.cells.count, own.cells.children
    child[part] = np.where(own.cells.children > 0, own.cells.child + above, 0)
    parent[part] = own.cells.parent + above
    branches = trunk.leaf[trunk.ranks[rank] : trunk.ranks[rank + 1]]
    parent[above : above + len(branches)] = trunk.cells.parent[branches]
    table[:4, branches] = table[:4, above : above + len(branches)]
    begin, body = part.stop, bodies
    for p, each in enumerate(received):
        part = slice(begin, begin + len(each.table))
        count[part], children[part] = each.table[:, 0], each.table[:, 2]
        child[part] = np.where(each.table[:, 1] > 0, each.table[:, 1] + begin, 0)
        first[part] = each.table[:, 3] + body
        if p != rank:
            branches = trunk.leaf[trunk.ranks[p] : trunk.ranks[p + 1]]
            table[:4, branches] = table[:4, begin : begin + len(branches)]
        begin, body = part.stop, body + len(each.bodies)
    cells = Cells(*table, levels=np.zeros(0, np.int64))  # type: ignore[misc]  # no kernel of a descent reads them
    joint = aligned_zeros((4, body + PAD), own.bodies.dtype)
    joint[:, :bodies] = own.bodies[:, :bodies]
    joint[:, bodies:body] = np.concatenate([each.bodies for each in received]).T
    return Side(
        joint, cells,
        Fields(
            _stacked(trunk.fields.records, own.fields.records, *(each.records for each in received)),
            _stacked(trunk.fields.moments, own.fields.moments, *(each.moments for each in received)),
            _stacked(trunk.fields.boxes, own.fields.boxes),
        ),
    )  # fmt: skip


def _stacked(*parts: np.ndarray) -> np.ndarray:
    whole = aligned_zeros((sum(map(len, parts)), parts[0].shape[1]), parts[0].dtype)
    np.concatenate(parts, out=whole)
    return whole
