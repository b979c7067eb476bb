"""Which cells act on which, on the CPU: the lists of one target, from the undecided sources of its parent.

A source is accepted by the :mod:`~nbody.forces.tree.criterion`, or opened, or handed down to the target's children if it is
a leaf or smaller than the target. A target of few bodies has no children here: it ends every question with M2L, M2P or, for
leaves, P2P. M2P comes before opening: thousands of small pieces, each accepted for its own small error, would have errors of
the same sign."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.compute.in_kernels.cpu_lanes import LANES, padded, select_ids
from nbody.forces.direct.cpu_roots import FAST
from nbody.forces.tree.criterion import DOWN, M2L, M2P, OPEN, P2P, Rules, classify_for, weights_for
from nbody.forces.tree.octree.cells_cpu import Cells
from nbody.forces.tree.octree.moments_cpu import Fields
from nbody.forces.tree.variant_cpu import Variant
from nbody.forces.tree.walk.sums_cpu import STAGED_BODIES, STAGED_CELLS, records_for

FULL = -1
"""The length of a list that does not hold all sources."""

DEPTH = 72
"""More levels than a tree has: 21, or 31 in 2-D, and the root; and more stack than they need."""

STACK = 8 * DEPTH
"""Cells that wait: at most seven siblings per level."""


class TreeView(NamedTuple):
    """The bodies (4, N + PAD), cells and fields of a tree, as sources or as targets."""

    bodies: np.ndarray
    cells: Cells
    fields: Fields


class Result(NamedTuple):
    """What a walk writes, in the kernel's units.

    Attributes:
        order: (N,) the targets along the curve.
        active: (N + 1,) the number of requested targets before each of them; (0,) if all are requested.
        field: (N, 4) ax, ay, az, φ of the targets.
    """

    order: np.ndarray
    active: np.ndarray
    field: np.ndarray


class Walk(NamedTuple):
    """What all workers of a walk share.

    Attributes:
        potential: compute the potential instead of accelerations.
        same: whether the targets are the sources.
        group: the most bodies of a terminal target.
        few: leaves with at most this number of bodies take part in P2P rather than in M2P.
    """

    sources: TreeView
    targets: TreeView
    potential: bool
    same: bool
    rules: Rules
    group: int
    few: int
    result: Result


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
        numbers: (W, 4) int64: the lengths of the lists.
        path: (W, 2, DEPTH + 2) int64: the cells from the root to that of the last task, and where the undecided sources of
        each
            begin.
        stack: (W, STACK, 4) int64: cell, range of its undecided sources, depth.
        counts: (W, 16) int64: M2L, M2P, P2P pairs, and tests, computed; and 1 if a list was too short. (16: workers share no
            cache line.)
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
    numbers: np.ndarray
    path: np.ndarray
    stack: np.ndarray
    counts: np.ndarray

    @classmethod
    def allocate(cls, variant: Variant, workers: int, group: int, capacity: int) -> "WalkMemory":
        """Memory for ``workers`` threads, groups of at most ``group`` bodies and lists of at most ``capacity`` sources."""
        real, group, length = variant.real, -(-group // LANES) * LANES, capacity + LANES
        width = max(3 + len(variant.basis.moments), padded(4 + variant.order, real))
        shapes = [
            ((length,), np.uint32), ((4, length), np.uint32), ((3, length), np.uint32), ((length,), np.int32),
            ((width, STAGED_CELLS), real), ((4, STAGED_BODIES + LANES), real), ((4, group), real), ((4, group), real),
            ((DEPTH, len(variant.basis.locals)), real), ((32,), real), ((4,), np.int64),
            ((2, DEPTH + 2), np.int64), ((STACK, 4), np.int64),
        ]  # fmt: skip
        made: list[np.ndarray] = [np.empty((workers, *shape), kind) for shape, kind in shapes]  # type: ignore[arg-type]
        made.append(np.zeros((workers, 16), np.int64))
        return cls(*made)


@inner
def sort_out(count, ids, codes, cells, few, lists, numbers, queue, open_ids):
    """Distribute a list by its codes: to M2L, M2P, P2P (rows of ``lists``, numbers in ``numbers``) and, as numbers[3],
    those that are handed down; the opened ones to ``open_ids``, and their children to ``queue``. Returns the length of the
    queue, or FULL."""
    far, multipole, near, down = numbers[0], numbers[1], numbers[2], numbers[3]
    capacity = lists.shape[1] - LANES
    if max(far, multipole, near, down) + count > capacity:
        return FULL
    multipole_before, opened, taken = multipole, np.int64(0), np.int64(0)
    for j in range(0, count, LANES):
        some = min(LANES, count - j)
        far = select_ids(ids, codes, j, some, M2L, lists[0], far)
        multipole = select_ids(ids, codes, j, some, M2P, lists[1], multipole)
        near = select_ids(ids, codes, j, some, P2P, lists[2], near)
        down = select_ids(ids, codes, j, some, DOWN, lists[3], down)
        opened = select_ids(ids, codes, j, some, OPEN, open_ids, opened)
    # Few bodies are cheaper than M2P.
    kept = multipole_before
    for j in range(multipole_before, multipole):
        s = lists[1, j]
        if cells.children[s] == 0 and cells.count[s] <= few:
            lists[2, near] = s
            near += 1
        else:
            lists[1, kept] = s
            kept += 1
    numbers[0], numbers[1], numbers[2], numbers[3] = far, kept, near, down
    for j in range(opened):
        s = open_ids[j]
        if taken > capacity:
            return FULL
        child = cells.child[s]
        for k in range(8):  # a vector; children that do not exist are overwritten
            queue[np.uint64(taken) + np.uint64(k)] = child + np.uint32(k)
        taken += np.int64(cells.children[s])
    return taken if taken <= capacity else FULL


def decide_for(variant: Variant) -> Callable:
    """``decide(w, begin, end, terminal, box, walk, memory)``: fill the lists of a target, whose undecided sources are a
    range. Returns whether all fit, and the numbers of M2L, M2P, P2P and handed-down sources."""
    cells = variant.of_cells
    stage, fill_weights = records_for(cells), weights_for(cells)
    classify_inner, classify_terminal = classify_for(cells, False), classify_for(cells, True)

    @inner(calls=True, fastmath=FAST)
    def decide(w, begin, end, terminal, box, walk, memory):
        sources, rules, numbers = walk.sources, walk.rules, memory.numbers[w]
        weights, codes, lists = memory.weights[w], memory.codes[w], memory.lists[w]
        numbers[:] = 0
        fill_weights(box[3], weights)
        limit = rules.error * max(box[7], rules.least)
        ids, count, turn, rows = memory.undecided[w, begin:], end - begin, 0, memory.rows[w]
        while count > 0:
            if count + LANES > len(codes):
                count = -1
                break
            for start in range(0, count, STAGED_CELLS):
                some = min(STAGED_CELLS, count - start)
                stage(ids[start:], some, sources.fields.records, rows)
                if terminal:
                    classify_terminal(some, rows, box, weights, rules, limit, codes[start:])
                else:
                    classify_inner(some, rows, box, weights, rules, limit, codes[start:])
            memory.counts[w, 3] += count
            queue = memory.queues[w, turn]
            count = sort_out(count, ids, codes, sources.cells, walk.few, lists, numbers, queue, memory.queues[w, 2])
            ids, turn = queue, 1 - turn
        return count == 0, numbers[0], numbers[1], numbers[2], numbers[3]

    return decide
