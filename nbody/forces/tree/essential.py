"""The cells of a rank that another one may open: *locally essential* cells (Salmon 1990).

A source is opened by a target that neither accepts it nor, if it is terminal, lets its moments act on its bodies
(:mod:`.walk`). The sender knows the larger targets of the other rank, its *front*. Smaller ones are not closer to a source
than the box of the one above them, have no smaller |a| than the smallest one there, and hand the source down if they are
larger, unless they are terminal. With these bounds the test fails for each source that a target may open; a margin allows
for rounding. Children of a cell that was not sent have no place: a descent that misses them says so, and the whole tree is
used instead.
"""

from math import comb
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from nbody.forces.direct.cpu_cache import disk_cached
from nbody.forces.direct.cpu_tiles import aligned_zeros
from nbody.forces.tree.octree import Cells
from nbody.forces.tree.order import PAD
from nbody.forces.tree.pieces import Variant
from nbody.forces.tree.room import Side
from nbody.forces.tree.trunk import Trunk
from nbody.forces.tree.upward import Fields
from nbody.forces.tree.walk import Rules
from nbody.parallel import Team

MARGIN = 1e-3
"""The relative margin of lengths and bounds, much larger than the rounding errors of a descent in float32."""


class Front(NamedTuple):
    """The larger targets of a rank, a cell before the ones below it.

    Attributes:
        boxes: (F, BOX), as in :class:`~nbody.forces.tree.upward.Fields`.
        skip: (F,) the first target after those below this one; 0 if there are targets below that are not here; -1 if this
            one is terminal.
    """

    boxes: np.ndarray
    skip: np.ndarray


def front_of(own: Side, roots: int, group: int, most: int) -> Front:
    """The cells of a rank whose parents have more than ``most`` bodies, of which ``roots`` are its branches. Terminal are
    those of at most ``group`` bodies, and leaves."""
    cells = own.cells
    chosen = cells.count[cells.parent] > most
    chosen[:roots] = True
    chosen = np.flatnonzero(chosen)
    first, count = cells.first[chosen].astype(np.int64), cells.count[chosen].astype(np.int64)
    order = np.lexsort((-count, first))
    skip = np.searchsorted(first[order], (first + count)[order])
    skip[count[order] <= most] = 0
    skip[((count <= group) | (cells.children[chosen] == 0))[order]] = -1
    return Front(own.fields.boxes[chosen[order]], skip)


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


def exchange(team: Team, variant: Variant, own: Side, trunk: Trunk, fronts: list[Front], rules: Rules) -> list[Sent]:
    """Send each rank what it needs of ``own``, and return what the others have sent; of this rank nothing."""
    binomials = np.array([8.0 * comb(variant.order, k) for k in range(variant.order + 1)])
    numbers = np.array(list(rules), np.float64)
    branches = int(trunk.ranks[team.rank + 1] - trunk.ranks[team.rank])
    sent = []
    for rank in range(team.size):
        wanted = np.full(len(own.cells.first), -1, np.int32)
        if rank != team.rank:
            wanted[:branches] = 0
            above = trunk.fields.boxes[trunk.above(rank)]
            targets = np.concatenate([above, fronts[rank].boxes]).astype(np.float64)
            skip = fronts[rank].skip + np.where(fronts[rank].skip > 0, len(above), 0)
            skip = np.concatenate([np.arange(1, len(above) + 1), skip])
            mark(own.cells, own.fields.records, targets, skip, numbers, binomials, variant.degree, wanted)
        sent.append(_collected(own, np.flatnonzero(wanted >= 0)))
    lengths = np.array(team.all([(len(each.table), len(each.bodies)) for each in sent]))[:, team.rank]
    received = [
        Sent(*(np.empty((n, each.shape[1]), each.dtype) for n, each in zip((m, m, m, b), sent[0], strict=True)))
        for m, b in lengths
    ]
    for each in range(len(Sent._fields)):
        team.exchange([block[each] for block in sent], [block[each] for block in received])
    return received


def _collected(own: Side, chosen: np.ndarray) -> Sent:
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
    first one is another rank's, so that only one rank counts what the cell takes (:mod:`.descent`).
    """
    above, here, bodies = len(trunk.cells.first), len(own.cells.first), int(roots[-1])
    total = above + here + sum(len(each.table) for each in received)
    table = np.zeros((5, total), np.uint32)
    first, count, child, children, parent = table
    child[:above], children[:above], parent[:above] = trunk.cells.child, trunk.cells.children, trunk.cells.parent
    begins = trunk.before[trunk.cells.first] - trunk.before[trunk.ranks[rank]]
    first[:above] = np.where((begins >= 0) & (begins < bodies), begins, bodies)
    count[:above] = trunk.cells.count
    mine = slice(above, above + here)
    first[mine], count[mine], children[mine] = own.cells.first, own.cells.count, own.cells.children
    child[mine] = np.where(own.cells.children > 0, own.cells.child + above, 0)
    parent[mine] = own.cells.parent + above
    leaf = trunk.leaf[trunk.ranks[rank] : trunk.ranks[rank + 1]]
    parent[above : above + len(leaf)] = trunk.cells.parent[leaf]
    table[:4, leaf] = table[:4, above : above + len(leaf)]
    begin, body = above + here, bodies
    for p, each in enumerate(received):
        if p == rank:
            continue
        part = slice(begin, begin + len(each.table))
        count[part], children[part] = each.table[:, 0], each.table[:, 2]
        child[part] = np.where(each.table[:, 1] > 0, each.table[:, 1] + begin, 0)
        first[part] = each.table[:, 3] + body
        leaf = trunk.leaf[trunk.ranks[p] : trunk.ranks[p + 1]]
        table[:4, leaf] = table[:4, begin : begin + len(leaf)]
        begin, body = part.stop, body + len(each.bodies)
    cells = Cells(*table, levels=own.cells.levels)  # type: ignore[misc]
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


@njit(error_model="numpy")
def _accepted(record, r, R, d, limit, rules, binomials):
    """The test of :mod:`.walk` for M2L: of a source of radius r by a target of radius R at the distance d."""
    support, theta, flat, order = rules[1], rules[2], rules[4], len(binomials) - 1
    if not (r + R < theta * d and flat * d > R and r + R + support < d):
        return False
    error = binomials[0] * abs(record[4]) * R**order
    for k in range(2, order + 1):
        error += binomials[k] * record[3 + k] * R ** (order - k)
    return error * max(r, R) < limit * (r + R) * d ** (order + 2)


SAFE, OPENS, UNKNOWN = range(3)


@njit(error_model="numpy")
def _verdict(record, r, moment, target, skip, rules, binomials, degree):
    """SAFE if neither this target nor one below it may open the source; OPENS if one may; UNKNOWN if only one below may."""
    support, distant, error, least = rules[1], rules[3], rules[5], rules[6]
    d2, h2 = 0.0, 0.0
    for x in range(3):
        distance = abs(record[x] - target[x])
        d2 += distance**2
        h2 += max(distance - target[4 + x], 0.0) ** 2
    h, limit = np.sqrt(h2) * (1 - MARGIN), error * max(target[7], least) * (1 - MARGIN)
    acts = (
        r < distant * h and r + support < h and moment < limit * h ** (degree + 3)
    )  # on the bodies of terminal targets
    if acts and (skip < 0 or _accepted(record, r, r, h, 0.5 * limit, rules, binomials)):
        return SAFE
    if skip == 0:
        return OPENS
    if target[3] * (1 - MARGIN) > r and skip > 0:  # handed down
        return UNKNOWN
    d, R = np.sqrt(d2) * (1 - MARGIN), target[3] * (1 + MARGIN)
    if not _accepted(record, r, R, d, limit, rules, binomials):
        return OPENS
    return SAFE if skip < 0 else UNKNOWN


@njit(error_model="numpy")
def _opener(record, targets, skip, rules, binomials, degree, k):
    """The first target, from the k-th one on, that may open the source with this record; -1 if there is none. ``targets``,
    ``skip``: see :class:`Front`."""
    r, moment = record[3] * (1 + MARGIN), (4 if degree == 2 else 8) * record[4 + degree]
    while k < len(targets) and record[4] != 0:
        verdict = _verdict(record, r, moment, targets[k], skip[k], rules, binomials, degree)
        if verdict == OPENS:
            return k
        k = max(skip[k], k + 1) if verdict == SAFE else k + 1
    return -1


def _mark(cells, records, targets, skip, rules, binomials, degree, wanted):
    """Mark the children of the marked cells that another rank may open, with the first target that may open their parent. (A
    target that does not open a cell does not see its children.)"""
    rules = (rules[0], rules[1], rules[2], rules[3], rules[4], rules[5], rules[6])
    for level in range(len(cells.levels) - 1):
        for cell in prange(cells.levels[level], cells.levels[level + 1]):
            if wanted[cell] < 0 or cells.children[cell] == 0:
                continue
            record = records[cell].astype(np.float64)
            opener = _opener(record, targets, skip, rules, binomials, degree, wanted[cell])
            if opener >= 0:
                child = np.int64(cells.child[cell])
                for k in range(child, child + np.int64(cells.children[cell])):
                    wanted[k] = opener


mark = disk_cached(_mark, parallel=True)
