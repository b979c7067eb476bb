"""The cells of a rank that another one may open: *locally essential* cells (Salmon 1990).

A source is opened by a target that neither accepts it nor, if it is terminal, lets its moments act on its bodies
(:mod:`.walk`). The sender knows the larger targets of the other rank, its *front*. A target below the front has three
bounds: its box lies inside the box of the target above it; its |a| is at least the smallest there; and if it is larger than
the source and not terminal, it hands the source down. So the sender finds all sources that a target may open, and some more.
A descent that misses children of a cell says so, and the whole tree is used instead.
"""

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from nbody.forces.direct.cpu_cache import disk_cached
from nbody.forces.tree.graft import Sent, collected
from nbody.forces.tree.pieces import Variant
from nbody.forces.tree.room import Side
from nbody.forces.tree.trunk import Trunk
from nbody.forces.tree.walk import Rules, moment_factor
from nbody.parallel import Team

MARGIN = 1e-3
"""The relative margin for rounding errors. It does not cover cancellation in h, or overflow in float32: a descent that then
misses a cell falls back to the whole tree."""


class Front(NamedTuple):
    """The larger targets of a rank, a cell before the ones below it.

    Attributes:
        boxes: (F, BOX), as in :class:`~nbody.forces.tree.upward.Fields`.
        skip: (F,) the first target after those below this one; 0 if there are targets below that were not sent; -1 if
            this one is terminal.
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


def exchange(
    team: Team, variant: Variant, own: Side, trunk: Trunk, fronts: Sequence[Front], rules: Rules
) -> list[Sent]:
    """Send each rank what it needs of ``own``, and return what the others have sent; of this rank nothing."""
    roots = int(trunk.ranks[team.rank + 1] - trunk.ranks[team.rank])
    chosen = [
        _essential(variant, own, roots, trunk.fields.boxes[trunk.above(rank)], fronts[rank], rules)
        if rank != team.rank
        else np.empty(0, np.int64)
        for rank in range(team.size)
    ]
    sent = [collected(own, cells) for cells in chosen]
    lengths = np.array(team.all([(len(each.table), len(each.bodies)) for each in sent], soon=True))[:, team.rank]
    received = [
        Sent(*(np.empty((n, each.shape[1]), each.dtype) for n, each in zip((m, m, m, b), sent[0], strict=True)))
        for m, b in lengths
    ]
    for field in range(len(Sent._fields)):
        team.exchange([block[field] for block in sent], [block[field] for block in received])
    return received


def _essential(variant: Variant, own: Side, roots: int, above: np.ndarray, front: Front, rules: Rules) -> np.ndarray:
    """The cells of a rank that another one needs: the branches, and the children of the cells that it may open. ``above``
    are the boxes of the trunk's cells that have bodies of the other rank."""
    targets = np.concatenate([above, front.boxes]).astype(np.float64)
    skip = np.concatenate([np.arange(1, len(above) + 1), np.where(front.skip > 0, front.skip + len(above), front.skip)])
    binomials = np.array([8.0 * comb(variant.order, k) for k in range(variant.order + 1)])
    wanted = np.full(len(own.cells.first), -1, np.int32)
    wanted[:roots] = 0
    rules = Rules(*map(float, rules))
    mark(own.cells, own.fields.records, targets, skip, rules, binomials, variant.degree, wanted)
    return np.flatnonzero(wanted >= 0)


@njit(error_model="numpy")
def _accepted(record, r, R, d, limit, rules, binomials):
    """The test of :mod:`.walk` for M2L: of a source of radius r by a target of radius R at the distance d."""
    order = len(binomials) - 1
    if not (r + R < rules.theta * d and rules.flat * d > R and r + R + rules.support < d):
        return False
    error = binomials[0] * abs(record[4]) * R**order
    for k in range(2, order + 1):
        error += binomials[k] * record[3 + k] * R ** (order - k)
    return error * max(r, R) < limit * (r + R) * d ** (order + 2)


SAFE, OPENS, UNKNOWN = range(3)


@njit(error_model="numpy")
def _verdict(record, r, moment, target, skip, rules, binomials, degree):
    """SAFE if neither this target nor one below it may open the source; OPENS if one may; UNKNOWN if only one below may."""
    d2, h2 = 0.0, 0.0
    for x in range(3):
        distance = abs(record[x] - target[x])
        d2 += distance**2
        h2 += max(distance - target[4 + x], 0.0) ** 2
    h, limit = np.sqrt(h2) * (1 - MARGIN), rules.error * max(target[7], rules.least) * (1 - MARGIN)
    acts = r < rules.distant * h and r + rules.support < h and moment < limit * h ** (degree + 3)
    # The box of a target below is at least h away. If it is terminal, the moments act on its bodies. If not, it opens the
    # source only if its R is at most r. The estimate grows with R, and r + R is at least r, half of r + r.
    if acts and (skip < 0 or _accepted(record, r, r, h, 0.5 * limit, rules, binomials)):
        return SAFE
    if skip == 0:
        return OPENS
    if target[3] * (1 - MARGIN) > r and skip > 0:  # handed down
        return UNKNOWN
    d, R = np.sqrt(d2) * (1 - MARGIN), target[3] * (1 + MARGIN)
    if not _accepted(record, r, R, d, limit, rules, binomials):
        return OPENS
    return SAFE if skip < 0 else UNKNOWN  # a target below may see the source first, when it opens the parent


@njit(error_model="numpy")
def _opener(record, targets, skip, rules, binomials, degree, k):
    """The first target, from the k-th one on, that may open the source with this record; -1 if there is none. ``targets``,
    ``skip``: see :class:`Front`."""
    r, moment = record[3] * (1 + MARGIN), moment_factor(degree) * record[4 + degree]
    while k < len(targets) and record[4] != 0:
        verdict = _verdict(record, r, moment, targets[k], skip[k], rules, binomials, degree)
        if verdict == OPENS:
            return k
        k = max(skip[k], k + 1) if verdict == SAFE else k + 1
    return -1


def _mark(cells, records, targets, skip, rules, binomials, degree, wanted):
    """Mark the children of the marked cells that another rank may open, with the first target that may open their parent. (A
    target that does not open a cell does not see its children.)"""
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
