"""One target of a descent: its lists, its local expansion, and, if it is terminal, the field at its bodies.

The functions are inlined into the kernel of ``descent.py``, which is compiled for one variant.
"""

from collections.abc import Callable

import numpy as np
from numba import njit

from nbody.forces.direct.cpu_roots import FAST
from nbody.forces.tree.far import far_cells, local_field, shift_local
from nbody.forces.tree.lanes import LANES
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
from nbody.forces.tree.pieces import Variant
from nbody.forces.tree.walk import classify_inner, classify_terminal, fill_weights, sort_out


def _expand(text: str) -> Callable:
    """``expand(number, ids, moments, box, length2, rows, local)``: M2L of a list."""

    @njit(fastmath=FAST, error_model="numpy", inline="always")
    def expand(number, ids, moments, box, length2, rows, local):
        for start in range(0, number, STAGED_CELLS):
            blocks = stage_cells(text, ids[start:], min(STAGED_CELLS, number - start), moments, rows)
            far_cells(text, box[0], box[1], box[2], blocks, rows, length2, local)

    return expand


def _decide(text: str) -> Callable:
    """``decide(w, cell, begin, end, terminal, sources, box, rules, few, memory)``: fill the lists of a target, whose
    undecided sources are a range. Returns whether all fit, and the numbers of M2L, M2P, P2P and handed-down sources."""

    @njit(fastmath=FAST, error_model="numpy", inline="always")
    def decide(w, cell, begin, end, terminal, sources, box, rules, few, memory):
        weights, codes, lists = memory.weights[w], memory.codes[w], memory.lists[w]
        numbers = np.zeros(4, np.int64)
        fill_weights(text, box[3], weights)
        limit = rules.error * max(box[7], rules.least)
        ids, count, turn, rows = memory.undecided[w, begin:], end - begin, 0, memory.rows[w]
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
            memory.counts[w, 3] += count
            queue = memory.queues[w, turn]
            count = sort_out(count, ids, codes, sources.cells, few, lists, numbers, queue, memory.queues[w, 2])
            ids, turn = queue, 1 - turn
        return count == 0, numbers[0], numbers[1], numbers[2], numbers[3]

    return decide


def _near_bodies(text: str, potential: bool) -> Callable:
    """``near_bodies(w, number, first, count, same, sources, rules, memory)``: P2P of a list of leaves."""

    @njit(fastmath=FAST, error_model="numpy", inline="always")
    def near_bodies(w, number, first, count, same, sources, rules, memory):
        staged, targets, sums, ids = memory.bodies[w], memory.targets[w], memory.sums[w], memory.lists[w, 2]
        filled = 0
        for k in range(number):
            leaf = ids[k]
            start, left = np.int64(sources.cells.first[leaf]), np.int64(sources.cells.count[leaf])
            memory.counts[w, 2] += left * count
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

    return near_bodies


def _finish(text: str, variant: Variant) -> Callable:
    """``finish(w, begin, count, same, local, box, far, near, multipole, …)``: the field at some bodies of a terminal target,
    from its lists and its local expansion."""
    zero, potential = variant.real(0), variant.potential
    near_bodies = _near_bodies(text, potential)

    @njit(fastmath=FAST, error_model="numpy", inline="always")
    def finish(w, begin, count, same, local, box, far, near, multipole, sources, targets, rules, memory, result):
        place, sums, rows = memory.targets[w], memory.sums[w], memory.rows[w]
        blocks = -(-count // LANES)
        stage_bodies(begin, count, targets.bodies, place, 0)
        for k in range(4):
            for i in range(blocks * LANES):
                sums[k, i] = zero
            for i in range(count, blocks * LANES):
                place[k, i] = place[k, 0]
        if far:
            local_field(text, box[0], box[1], box[2], local, blocks, place, sums)
        ids = memory.lists[w, 1]
        for start in range(0, multipole, STAGED_CELLS):
            staged = stage_cells(text, ids[start:], min(STAGED_CELLS, multipole - start), sources.fields.moments, rows)
            multipoles(text, count, place, staged, rows, rules.length2, sums)
        near_bodies(w, near, begin, count, same, sources, rules, memory)
        for i in range(count):
            if len(result.active) == 0 or result.active[begin + i + 1] > result.active[begin + i]:
                body = result.order[begin + i]
                if potential:
                    result.field[body, 3] = sums[3, i]
                else:
                    for k in range(3):
                        result.field[body, k] = sums[k, i]

    return finish


def visit_for(variant: Variant) -> Callable:
    """``visit(w, cell, begin, end, depth, same, …)``: one target, its lists and its expansion; its field if it is terminal.
    Returns the end of the sources that are handed down, -1 if it is terminal, -2 if a list can't be completed."""
    text, zero = variant.text(), variant.real(0)
    expand, decide, finish = _expand(text), _decide(text), _finish(text, variant)

    @njit(fastmath=FAST, error_model="numpy", inline="always")
    def visit(w, cell, begin, end, depth, same, sources, targets, rules, group, few, memory, result):
        cells, box = targets.cells, targets.fields.boxes[cell]
        first, count = np.int64(cells.first[cell]), np.int64(cells.count[cell])
        terminal = count <= group or cells.children[cell] == 0
        done, far, multipole, near, down = decide(w, cell, begin, end, terminal, sources, box, rules, few, memory)
        if not done or end + down + LANES > len(memory.codes[w]):
            return -2
        local = memory.local[w, depth]
        if cell == 0:
            for k in range(len(local)):
                local[k] = zero
        else:
            above = targets.fields.boxes[cells.parent[cell]]
            dx, dy, dz = above[0] - box[0], above[1] - box[1], above[2] - box[2]
            shift_local(text, dx, dy, dz, memory.local[w, depth - 1], local)
        expand(far, memory.lists[w, 0], sources.fields.moments, box, rules.length2, memory.rows[w], local)
        memory.counts[w, 0] += far
        if terminal:
            memory.counts[w, 1] += multipole * count
            most = memory.targets.shape[2]
            for start in range(0, count, most):
                finish(
                    w, first + start, min(most, count - start), same, local, box, depth > 0 or far > 0, near, multipole,
                    sources, targets, rules, memory, result,
                )  # fmt: skip
            return -1
        undecided, handed = memory.undecided[w, end : end + down], memory.lists[w, 3]
        for k in range(down):
            undecided[k] = handed[k]
        return end + down

    return visit
