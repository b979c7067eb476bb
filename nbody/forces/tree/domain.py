"""A rank's part of a tree: its own bodies and their cells, and what it receives from other ranks.

Each rank has the bodies between two cuts of the curve (:mod:`.cuts`), and makes their cells, the largest of which are its
*branches*: the largest cells of the root's grid that have no bodies of other ranks. The cells above the branches are the
*trunk*, which all ranks have (:mod:`.trunk`). Then each rank sends to each other one the cells below its branches that the
other may open, and their bodies (:mod:`.essential`; Salmon 1990). With them a descent finds what it would find in the whole
tree, in the same order, so that the bits do not depend on the number of ranks.
"""

from collections.abc import Callable

import numpy as np
from numba import prange

from nbody.forces.direct.cpu_cache import disk_cached
from nbody.forces.tree.bodies import Bodies
from nbody.forces.tree.box import Box
from nbody.forces.tree.cuts import Cuts, cuts_for
from nbody.forces.tree.essential import exchange, front_of
from nbody.forces.tree.graft import joined
from nbody.forces.tree.options import Settings
from nbody.forces.tree.order import Order, key_bits, make_keys, picked
from nbody.forces.tree.pieces import Variant
from nbody.forces.tree.room import Side
from nbody.forces.tree.sort import sort
from nbody.forces.tree.trunk import Branches, trunk_of
from nbody.forces.tree.units import Units
from nbody.forces.tree.upward import FINE
from nbody.forces.tree.walk import Rules
from nbody.forces.tree.workers import one_thread_for_few
from nbody.parallel import Team

CHUNKS = 64
"""Parts of all bodies in which threads look for those of this rank."""

FRONT = 4096
"""A rank tells the others about its targets whose parents have more than N/FRONT bodies."""

FEWEST = 1 << 14
"""The least mean number of bodies per rank: with fewer, each rank makes the whole tree in less time than domains take. (Two
ranks of one core: 14.5 ms with whole trees and 15.3 with domains for 50 000 bodies, 61 and 52 ms for 200 000.)"""


class Domain:
    """The bodies of one of several ranks, and what the other ranks have sent. All ranks call its methods at the same time.

    Args:
        own: the bodies of this rank.
        roots: where its branches begin in ``own``, and the number of bodies.
        rows: (n,) the rows of these bodies among all, in order.
        places: (n,) the place in ``rows`` of each body along the curve.
        group: targets with more bodies are divided.
        team: the ranks.
    """

    def __init__(
        self, own: Bodies, roots: np.ndarray, rows: np.ndarray, places: np.ndarray, group: int, team: Team
    ) -> None:
        self.own, self.rows, self.places = own, rows, places
        self._roots, self._group, self._team = roots, group, team

    def side(self, variant: Variant, scale: np.ndarray, criterion: Callable[[np.ndarray], Rules]) -> tuple[Side, int]:
        """The part of the tree that this rank needs, for kernels, and the number of its cells before those of :attr:`own`.

        Args:
            scale: as in :meth:`Bodies.side`.
            criterion: the rules for the record of the root.
        """
        own, roots, first = self.own.side(variant, scale), self._roots, self._roots[:-1]
        branches = Branches(
            self.own.order.keys[first], np.diff(roots), own.bodies[:, first].T, *(each[: len(first)] for each in own.fields)
        )  # fmt: skip
        front = front_of(own, len(first), self._group, max(self._group, len(scale) // FRONT))
        all_branches, fronts = zip(*self._team.all((branches, front), soon=True), strict=True)
        trunk = trunk_of(variant, all_branches)
        received = exchange(self._team, variant, own, trunk, fronts, criterion(trunk.fields.records[0]))
        return joined(self._team.rank, own, roots, trunk, received), len(trunk.cells.first)


def domain_for(
    position: np.ndarray, mass: np.ndarray, box: Box, units: Units, chosen: Settings, team: Team,
    costs: np.ndarray | None,
) -> Domain | None:  # fmt: skip
    """The domain of this rank; None on all ranks if the bodies can't be divided, or if that does not pay. All ranks must
    call this at the same time, with the same arguments but for the costs.

    Args:
        position, mass: (N, D) and (N,) of all bodies, in the precision of the kernel.
        box, units: the root cell, and the kernel's units.
        chosen: of which ``leaf`` and ``group`` are used.
        team: the ranks.
        costs: see :func:`.cuts_for`.
    """
    number, dimensions = position.shape
    if team.size == 1 or number < FEWEST * team.size:
        return None
    least = max(FINE, chosen.leaf, chosen.group)
    cuts = cuts_for(position, box, costs, least, team)
    if cuts is None:
        return None
    with one_thread_for_few(number):
        keys = np.empty(number, np.uint64)
        make_keys(position, box.low, box.side, keys, np.empty(number, np.uint32))
        rows = between(keys, cuts.bounds[team.rank], cuts.bounds[team.rank + 1])
        sorted_keys, places = sort(keys[rows], np.arange(len(rows), dtype=np.uint32), key_bits(dimensions))
    counts, beside = zip(*team.all((len(rows), cuts.counted(sorted_keys)), soon=True), strict=True)
    if min(counts) <= least or sum(counts) != number or np.any(np.sum(beside, axis=0) <= least):
        return None
    roots = branches_of(sorted_keys, cuts, team.rank, dimensions)
    own = Bodies(Order(sorted_keys, picked(rows, places)), position, mass, units, chosen.leaf, roots)
    return Domain(own, roots, rows, places, chosen.group, team)


def between(keys: np.ndarray, low: np.uint64, high: np.uint64) -> np.ndarray:
    """The bodies (n,) uint32 whose keys are in [low, high), in order."""
    numbers = np.zeros(CHUNKS + 1, np.int64)
    count(keys, low, high, numbers)
    np.cumsum(numbers, out=numbers)
    found = np.empty(int(numbers[-1]), np.uint32)
    find(keys, low, high, numbers, found)
    return found


def _count(keys, low, high, numbers):
    """The number of bodies in chunk c, as ``numbers[c + 1]``."""
    size = -(-len(keys) // (len(numbers) - 1))
    for c in prange(len(numbers) - 1):
        number = 0
        for i in range(c * size, min((c + 1) * size, len(keys))):
            number += (low <= keys[i]) & (keys[i] < high)
        numbers[c + 1] = number


def _find(keys, low, high, numbers, found):
    """The bodies of chunk c, from ``found[numbers[c]]`` on. (A branch would often be mispredicted.)"""
    size = -(-len(keys) // (len(numbers) - 1))
    for c in prange(len(numbers) - 1):
        place, i, last = numbers[c], c * size, numbers[c + 1]
        while place < last:
            found[place] = i
            place += (low <= keys[i]) & (keys[i] < high)
            i += 1


count, find = disk_cached(_count, parallel=True), disk_cached(_find, parallel=True)


def branches_of(keys: np.ndarray, cuts: Cuts, rank: int, dimensions: int) -> np.ndarray:
    """Where the branches of a rank begin among its sorted keys, and the number of its bodies."""
    low, high = map(int, cuts.bounds[rank : rank + 2])
    bounds = [0]
    while bounds[-1] < len(keys):
        key, bits = int(keys[bounds[-1]]), 0
        while low <= key >> bits + dimensions << bits + dimensions <= high - (1 << bits + dimensions):
            bits += dimensions
        bounds.append(int(np.searchsorted(keys, np.uint64((key >> bits) + 1 << bits))))
    return np.array(bounds, np.int64)
