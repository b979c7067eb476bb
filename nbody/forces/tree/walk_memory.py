"""What a descent works on: the sources and the targets, the working memory of its workers, and the result."""

from typing import NamedTuple

import numpy as np

from nbody.forces.tree.lanes import LANES, padded
from nbody.forces.tree.near import STAGED_BODIES, STAGED_CELLS
from nbody.forces.tree.octree import Cells
from nbody.forces.tree.pieces import Variant
from nbody.forces.tree.upward import Fields

DEPTH = 72
"""More levels than a tree has: 21, or 31 in 2-D, and the root; and more stack than they need."""

STACK = 8 * DEPTH
"""Cells that wait: at most seven siblings per level."""


class TreeView(NamedTuple):
    """The bodies (4, N + PAD), cells and fields of a tree, as sources or as targets."""

    bodies: np.ndarray
    cells: Cells
    fields: Fields


class WalkMemory(NamedTuple):
    """Working memory, a row per worker.

    Attributes:
        undecided: (W, capacity + LANES) uint32, sources handed down, from the root's list to the present one.
        lists: (W, 4, capacity + LANES) uint32, the M2L, M2P, P2P and handed-down sources of the present target.
        queues: (W, 3, capacity + LANES) uint32, two generations of opened sources, and the present one's parents.
        codes: (W, capacity + LANES) int32.
        rows: (W, width, STAGED_CELLS); bodies: (W, 4, STAGED_BODIES + LANES): staged sources.
        targets, sums: (W, 4, group): the bodies of the present target, and their sums.
        local: (W, DEPTH, number of L): the local expansions from the root to the present target.
        weights: (W, 32), p + 1 used.
        stack: (W, STACK, 4) int64: cell, range of its undecided sources, depth.
        counts: (W, 16) int64: M2L, M2P, P2P pairs, and tests, computed. (16: workers share no cache line.)
    """

    undecided: np.ndarray
    lists: np.ndarray
    queues: np.ndarray
    codes: np.ndarray
    rows: np.ndarray
    bodies: np.ndarray
    targets: np.ndarray
    sums: np.ndarray
    local: np.ndarray
    weights: np.ndarray
    stack: np.ndarray
    counts: np.ndarray

    @classmethod
    def allocate(cls, variant: Variant, workers: int, group: int, capacity: int) -> "WalkMemory":
        """Memory for ``workers`` threads, groups of at most ``group`` bodies and lists of at most ``capacity`` sources."""
        real, group = variant.real, -(-group // LANES) * LANES
        width = max(3 + len(variant.basis.moments), padded(4 + variant.order, real))
        return cls(
            np.empty((workers, capacity + LANES), np.uint32),
            np.empty((workers, 4, capacity + LANES), np.uint32),
            np.empty((workers, 3, capacity + LANES), np.uint32),
            np.empty((workers, capacity + LANES), np.int32),
            np.empty((workers, width, STAGED_CELLS), real),
            np.empty((workers, 4, STAGED_BODIES + LANES), real),
            np.empty((workers, 4, group), real),
            np.empty((workers, 4, group), real),
            np.empty((workers, DEPTH, len(variant.basis.locals)), real),
            np.empty((workers, 32), real),
            np.empty((workers, STACK, 4), np.int64),
            np.zeros((workers, 16), np.int64),
        )


class Result(NamedTuple):
    """What a descent writes, in the kernel's units.

    Attributes:
        order: (N,) the target at each place of the curve.
        active: (N + 1,) the number of wanted targets before each place; (0,) if all are wanted.
        field: (N, 4) ax, ay, az, φ of the targets.
    """

    order: np.ndarray
    active: np.ndarray
    field: np.ndarray
