"""The cuts between the bodies of ranks: the Morton curve is divided into one part of equal cost per rank.

A cut lies on the border of a cell with more than ``least`` bodies. So every cell that a cut divides has more: it is neither
a leaf nor a terminal target. The cost of a body is that of its last evaluation; the cuts are near the quantiles of a sample
(Salmon 1990; Warren & Salmon 1993).
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nbody.forces.tree.box import Box
from nbody.forces.tree.order import key_bits, make_keys
from nbody.forces.tree.sort import sort
from nbody.parallel import Team

SAMPLE = 1 << 15
"""Bodies from which the cuts are found, at most twice as many."""

SURE = 24
"""The least number of samples in the cell beside a cut. A sample may mislead, so the ranks count the bodies of this cell."""


class Cuts(NamedTuple):
    """The cuts between ranks.

    Attributes:
        bounds: (P + 1,) uint64: rank p has the bodies whose keys are in [bounds[p], bounds[p + 1]).
        cells: (2, P - 1) uint64, the lowest key and the end of the cell beside each cut.
    """

    bounds: np.ndarray
    cells: np.ndarray

    def counted(self, keys: np.ndarray) -> np.ndarray:
        """(P - 1,) the number of sorted ``keys`` in each of :attr:`cells`."""
        return np.diff(np.searchsorted(keys, self.cells), axis=0)[0]


def cuts_for(position: np.ndarray, box: Box, costs: np.ndarray | None, least: int, team: Team) -> Cuts | None:
    """Cuts for the ranks of a team, the same on all of them; None if there are too few places.

    Args:
        position: (N, D) of all bodies.
        box: the root cell.
        costs: (N,) of the bodies that this rank had in the last evaluation, 0 for others; None on all ranks if there was
            none.
        least: cells with at most this number of bodies are not divided.
    """
    stride = max(1, len(position) // SAMPLE)
    sample, dimensions = np.ascontiguousarray(position[::stride]), position.shape[1]
    keys, order = np.empty(len(sample), np.uint64), np.empty(len(sample), np.uint32)
    make_keys(sample, box.low, box.side, keys, order)
    keys, order = sort(keys, order, key_bits(dimensions))
    weights = np.ones(len(sample))
    if costs is not None:
        own = np.flatnonzero(costs[::stride])
        for places, values in team.all((own, costs[::stride][own]), soon=True):
            weights[places] = values
        weights = weights[order]
    enough = least + 1 if stride == 1 else max(SURE, 4 * least // stride)
    places = _places(keys, enough, dimensions)
    if not len(places.number):
        return None
    costs_before = (np.cumsum(weights) - weights)[places.number]
    halfway = (costs_before[1:] + costs_before[:-1]) / 2
    nearest = np.searchsorted(halfway, weights.sum() * np.arange(1, team.size) / team.size)
    bounds = np.array([0, *places.key[nearest], 1 << key_bits(dimensions)], np.uint64)
    if not all(low < high for low, high in pairwise(bounds)):
        return None
    return Cuts(bounds, np.stack([places.low[nearest], places.end[nearest]]))


class _Places(NamedTuple):
    """Where the curve may be cut: the number of a sample, the key, and the lowest key and the end of the cell beside it."""

    number: np.ndarray
    key: np.ndarray
    low: np.ndarray
    end: np.ndarray


def _places(keys: np.ndarray, enough: int, dimensions: int) -> _Places:
    """The places between the samples with sorted ``keys`` where the curve enters or leaves a cell of ``enough`` samples."""
    after = np.arange(1, len(keys))
    differing = keys[1:] ^ keys[:-1]
    # without its second bit a number is not rounded up to the next power of two
    _, length = np.frexp((differing & ~(differing >> np.uint64(1))).astype(np.float64))
    # of the largest cells with only one of both neighbours, in bits
    size = (np.maximum(length - 1, 0) // dimensions * dimensions).astype(np.uint64)
    last, first = np.minimum(after + enough, len(keys)) - 1, np.maximum(after - enough, 0)
    enters = (after + enough <= len(keys)) & ((keys[last] ^ keys[after]) >> size == 0)
    leaves = (after >= enough) & ((keys[first] ^ keys[after - 1]) >> size == 0)
    chosen = np.flatnonzero((differing != 0) & (enters | leaves))
    size = size[chosen]
    key, cell = (each[chosen] >> size << size for each in (keys[1:], np.where(enters, keys[1:], keys[:-1])))
    return _Places(after[chosen], key, cell, cell + (np.uint64(1) << size))
