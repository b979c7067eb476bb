"""Down the tree of targets: a task is the subtree of one cell. Each worker (thread) takes the next task that is free; no two
tasks write to the same body, so the bits do not depend on the number of threads."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from nbody.forces.direct.cpu_cache import disk_cached
from nbody.forces.direct.cpu_roots import FAST
from nbody.forces.tree.far import far_cells, local_field, shift_local
from nbody.forces.tree.lanes import LANES, padded
from nbody.forces.tree.near import (
    STAGED_BODIES,
    STAGED_CELLS,
    multipoles,
    own_pairs,
    pad_bodies,
    pairs,
    stage_bodies,
    stage_cells,
    stage_records,
)
from nbody.forces.tree.octree import Cells
from nbody.forces.tree.pieces import Variant, piece
from nbody.forces.tree.upward import Fields
from nbody.forces.tree.walk import (
    classify_inner,
    classify_terminal,
    fill_weights,
    sort_out,
)  # fmt: skip

DEPTH = 72
"""More levels than a tree has: 21, or 31 in 2-D, and the root; and more stack than they need."""

STACK = 8 * DEPTH
"""Cells that wait: at most seven siblings per level."""


class Side(NamedTuple):
    """The bodies (4, N + PAD), cells and fields of a tree, as sources or as targets."""

    bodies: np.ndarray
    cells: Cells
    fields: Fields


class Room(NamedTuple):
    """Working memory, a row per worker.

    Attributes:
        undecided: (W, room + LANES) uint32, sources handed down, from the root's list to the present one.
        lists: (W, 4, room + LANES) uint32, the M2L, M2P, P2P and handed-down sources of the present target.
        queues: (W, 3, room + LANES) uint32, two generations of opened sources, and the present one's parents.
        codes: (W, room + LANES) int32.
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
    def allocate(cls, variant: Variant, workers: int, group: int, room: int) -> "Room":
        """Memory for ``workers`` threads, groups of at most ``group`` bodies and lists of at most ``room`` sources."""
        real, group = variant.real, -(-group // LANES) * LANES
        width = max(3 + len(variant.basis.moments), padded(4 + variant.order, real))
        return cls(
            np.empty((workers, room + LANES), np.uint32),
            np.empty((workers, 4, room + LANES), np.uint32),
            np.empty((workers, 3, room + LANES), np.uint32),
            np.empty((workers, room + LANES), np.int32),
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


@intrinsic
def next_number(typing_context, counter):
    """The first number of an int64 array, which grows by one: different for every caller."""
    if not (isinstance(counter, types.Array) and counter.dtype == types.int64):
        return None

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.atomic_rmw("add", array.data, ir.Constant(ir.IntType(64), 1), "seq_cst")

    return types.int64(counter), generate


@cache
def descend_for(variant: str) -> Callable:
    """The compiled function ``descend(w, last, counter, tasks, same, sources, targets, rules, group, few, room, result)``:
    worker w takes tasks until none is left. Returns False if a list is full. Several threads call it at once."""

    def descend(w, last, counter, tasks, same, sources, targets, rules, group, few, room, result):
        return work(variant, w, last, counter, tasks, same, sources, targets, rules, group, few, room, result)

    return disk_cached(descend, fastmath=FAST)


def _work(variant: Variant) -> Callable:
    """``work(w, last, counter, …)``: worker w takes tasks until none is left. Returns False if a list is full."""
    text = variant.text()
    zero, potential = variant.real(0), variant.potential

    @njit(fastmath=FAST, error_model="numpy", inline="always")
    def expand(number, ids, moments, box, length2, rows, local):
        """M2L of a list."""
        for start in range(0, number, STAGED_CELLS):
            blocks = stage_cells(text, ids[start:], min(STAGED_CELLS, number - start), moments, rows)
            far_cells(text, box[0], box[1], box[2], blocks, rows, length2, local)

    @njit(fastmath=FAST, error_model="numpy", inline="always")
    def decide(w, cell, begin, end, terminal, sources, box, rules, few, room):
        """Fill the lists of a target, whose undecided sources are a range. Returns False if one is full."""
        weights, codes, lists = room.weights[w], room.codes[w], room.lists[w]
        numbers = np.zeros(4, np.int64)
        fill_weights(text, box[3], weights)
        limit = rules.error * max(box[7], rules.least)
        ids, count, turn, rows = room.undecided[w, begin:], end - begin, 0, room.rows[w]
        while count > 0:
            if count + LANES > len(codes):
                count = -1
                break
            for start in range(0, count, STAGED_CELLS):
                some = min(STAGED_CELLS, count - start)
                stage_records(text, ids[start:], some, sources.fields.records, rows)
                if terminal:
                    classify_terminal(text, some, rows, box, weights, rules, limit, codes[start:])
                else:
                    classify_inner(text, some, rows, box, weights, rules, limit, codes[start:])
            room.counts[w, 3] += count
            queue = room.queues[w, turn]
            count = sort_out(count, ids, codes, sources.cells, few, lists, numbers, queue, room.queues[w, 2])
            ids, turn = queue, 1 - turn
        return count == 0, numbers[0], numbers[1], numbers[2], numbers[3]

    @njit(fastmath=FAST, error_model="numpy", inline="always")
    def near_bodies(w, number, first, count, same, sources, rules, room):
        """P2P of a list of leaves."""
        staged, targets, sums, ids = room.bodies[w], room.targets[w], room.sums[w], room.lists[w, 2]
        filled = 0
        for k in range(number):
            leaf = ids[k]
            start, left = np.int64(sources.cells.first[leaf]), np.int64(sources.cells.count[leaf])
            room.counts[w, 2] += left * count
            if potential and same and start < first + count and start + left > first:
                own_pairs(text, first, count, targets, start, left, sources.bodies, rules.length2, sums)
                continue
            while left > 0:
                taken, filled = stage_bodies(start, left, sources.bodies, staged, filled)
                start += taken
                left -= taken
                if filled == STAGED_BODIES:
                    pairs(text, count, targets, filled // LANES, staged, rules.length2, sums)
                    filled = 0
        if filled:
            pairs(text, count, targets, pad_bodies(staged, filled), staged, rules.length2, sums)

    @njit(fastmath=FAST, error_model="numpy", inline="always")
    def finish(w, begin, count, same, local, box, far, near, multipole, sources, targets, rules, room, result):
        """The field at some bodies of a terminal target, from its lists and its local expansion."""
        place, sums, rows = room.targets[w], room.sums[w], room.rows[w]
        blocks = -(-count // LANES)
        stage_bodies(begin, count, targets.bodies, place, 0)
        for k in range(4):
            for i in range(blocks * LANES):
                sums[k, i] = zero
            for i in range(count, blocks * LANES):
                place[k, i] = place[k, 0]
        if far:
            local_field(text, box[0], box[1], box[2], local, blocks, place, sums)
        ids = room.lists[w, 1]
        for start in range(0, multipole, STAGED_CELLS):
            staged = stage_cells(text, ids[start:], min(STAGED_CELLS, multipole - start), sources.fields.moments, rows)
            multipoles(text, count, place, staged, rows, rules.length2, sums)
        near_bodies(w, near, begin, count, same, sources, rules, room)
        for i in range(count):
            if len(result.active) == 0 or result.active[begin + i + 1] > result.active[begin + i]:
                body = result.order[begin + i]
                if potential:
                    result.field[body, 3] = sums[3, i]
                else:
                    for k in range(3):
                        result.field[body, k] = sums[k, i]

    @njit(fastmath=FAST, error_model="numpy", inline="always")
    def visit(w, cell, begin, end, depth, same, sources, targets, rules, group, few, room, result):
        """One target: its lists and its expansion; its field if it is terminal. Returns the end of the sources that are
        handed down, -1 if it is terminal, -2 if a list is full."""
        cells, box = targets.cells, targets.fields.boxes[cell]
        first, count = np.int64(cells.first[cell]), np.int64(cells.count[cell])
        terminal = count <= group or cells.children[cell] == 0
        done, far, multipole, near, down = decide(w, cell, begin, end, terminal, sources, box, rules, few, room)
        if not done or end + down + LANES > len(room.codes[w]):
            return -2
        local = room.local[w, depth]
        if cell == 0:
            for k in range(len(local)):
                local[k] = zero
        else:
            above = targets.fields.boxes[cells.parent[cell]]
            dx, dy, dz = above[0] - box[0], above[1] - box[1], above[2] - box[2]
            shift_local(text, dx, dy, dz, room.local[w, depth - 1], local)
        expand(far, room.lists[w, 0], sources.fields.moments, box, rules.length2, room.rows[w], local)
        room.counts[w, 0] += far
        if terminal:
            room.counts[w, 1] += multipole * count
            most = room.targets.shape[2]
            for start in range(0, count, most):
                finish(
                    w, first + start, min(most, count - start), same, local, box, depth > 0 or far > 0, near, multipole,
                    sources, targets, rules, room, result,
                )  # fmt: skip
            return -1
        undecided, handed = room.undecided[w, end : end + down], room.lists[w, 3]
        for k in range(down):
            undecided[k] = handed[k]
        return end + down

    @njit(fastmath=FAST, error_model="numpy")
    def work(w, last, counter, tasks, same, sources, targets, rules, group, few, room, result):
        target_cells = targets.cells
        stack, active = room.stack[w], result.active
        path = np.empty(DEPTH, np.int64)
        task = next_number(counter)
        while task < last:
            length, cell = np.int64(0), np.int64(tasks[task])
            while cell != 0:  # from the task's cell up to the root
                path[length] = cell
                length += 1
                cell = np.int64(target_cells.parent[cell])
            room.undecided[w, 0] = 0
            stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, 0, 1, 0
            waiting = 1
            while waiting:
                waiting -= 1
                cell, begin, end, depth = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
                first, count = np.int64(target_cells.first[cell]), np.int64(target_cells.count[cell])
                if len(active) and active[first + count] == active[first]:
                    continue
                far, tests = room.counts[w, 0], room.counts[w, 3]
                down = visit(w, cell, begin, end, depth, same, sources, targets, rules, group, few, room, result)
                if down == -2:
                    return False
                if depth < length and target_cells.first[cell] != target_cells.first[path[0]]:
                    room.counts[w, 0], room.counts[w, 3] = far, tests  # another task counts this cell
                if down < 0:
                    continue
                child, children = np.int64(target_cells.child[cell]), np.int64(target_cells.children[cell])
                if depth < length:  # on the way to the task's cell
                    child, children = path[length - 1 - depth], np.int64(1)
                for k in range(children - 1, -1, -1):
                    stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = child + k, end, down
                    stack[waiting, 3] = depth + 1
                    waiting += 1
            task = next_number(counter)
        return True

    return work


work = piece(_work)
