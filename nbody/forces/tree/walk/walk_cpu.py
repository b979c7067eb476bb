"""Down the tree of targets on the CPU: each target inherits the sources that its parent could not decide, and its expansion.

A task is the subtree of one cell. Each worker (thread) takes the next task that is free; no two tasks write to the same
body, so the bits do not depend on the number of threads.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from nbody.compute.compiling.cpu_inner import inner, kernel
from nbody.compute.in_kernels.cpu_lanes import LANES
from nbody.compute.in_kernels.cpu_threads import for_each, next_number
from nbody.forces.direct.cpu_roots import FAST
from nbody.forces.tree.variant_cpu import Variant
from nbody.forces.tree.walk.lists_cpu import decide_for
from nbody.forces.tree.walk.sums_cpu import STAGED_BODIES, STAGED_CELLS, pad_bodies, stage_bodies, sums_for

TERMINAL, TOO_LONG = -1, -2
"""What ``visit`` returns for a target without children, and if a list can't be completed."""


@cache
def descend_for(variant: Variant) -> Callable:
    """The compiled function ``descend(walk, memory, tasks, counter)``: all workers take tasks until none is left. It is one
    for accelerations and the potential: their walk is the same, and takes longer to compile than their sums."""
    work = _work(variant)

    @kernel(fastmath=FAST)
    def descend(walk, memory, tasks, counter):
        for_each(work, len(memory.counts), 2, (walk, memory, tasks, counter))

    found: Callable = descend
    return found


def _work(variant: Variant) -> Callable:
    """``work(w, walk, memory, tasks, counter)``: worker w takes tasks until none is left, or a list can't be completed."""
    visit = _visit(variant)

    @inner(calls=True, fastmath=FAST)
    def work(w, walk, memory, tasks, counter):
        cells, stack, active = walk.targets.cells, memory.stack[w], walk.result.active
        path, bounds = memory.path[w, 0], memory.path[w, 1]
        path[:] = -1
        bounds[0], bounds[1] = 0, 1
        memory.undecided[w, 0] = 0
        task = next_number(counter)
        while task < len(tasks):
            length, cell = np.int64(0), np.int64(tasks[task])
            while cell != 0:
                cell = np.int64(cells.parent[cell])
                length += 1
            start, cell = length, np.int64(tasks[task])
            for d in range(length, -1, -1):
                if path[d] != cell:  # the cells above that the last task has too are done
                    path[d], start = cell, np.int64(d)
                cell = np.int64(cells.parent[cell])
            stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = path[start], bounds[start], bounds[start + 1], start
            waiting = 1
            while waiting:
                waiting -= 1
                cell, begin, end, depth = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
                first, count = np.int64(cells.first[cell]), np.int64(cells.count[cell])
                if len(active) and active[first + count] == active[first]:
                    continue
                far, tests = memory.counts[w, 0], memory.counts[w, 3]
                down = visit(w, cell, begin, end, depth, walk, memory)
                if down == TOO_LONG:
                    memory.counts[w, 4] = 1
                    return
                if depth < length and first != cells.first[path[length]]:
                    memory.counts[w, 0], memory.counts[w, 3] = far, tests  # another task counts this cell
                if down == TERMINAL:
                    continue
                child, children = np.int64(cells.child[cell]), np.int64(cells.children[cell])
                if depth < length:  # on the way to the task's cell
                    child, children, bounds[depth + 2] = path[depth + 1], np.int64(1), down
                for k in range(children - 1, -1, -1):
                    stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = child + k, end, down
                    stack[waiting, 3] = depth + 1
                    waiting += 1
            task = next_number(counter)

    return work


def _visit(variant: Variant) -> Callable:
    """``visit(w, cell, begin, end, depth, walk, memory)``: one target, its lists and its expansion; its field if it is
    terminal. Returns the end of the sources that are handed down, TERMINAL or TOO_LONG."""
    zero, sums, decide, finish = variant.real(0), sums_for(variant), decide_for(variant), _finish(variant)
    shift, stage_cells, far_cells = sums.shift, sums.stage_cells, sums.far

    @inner(calls=True, fastmath=FAST)
    def visit(w, cell, begin, end, depth, walk, memory):
        cells, boxes, moments = walk.targets.cells, walk.targets.fields.boxes, walk.sources.fields.moments
        rows, box, first, count = memory.rows[w], boxes[cell], np.int64(cells.first[cell]), np.int64(cells.count[cell])
        terminal = count <= walk.group or cells.children[cell] == 0
        done, far, multipole, near, down = decide(w, begin, end, terminal, box, walk, memory)
        if not done or end + down + LANES > len(memory.codes[w]):
            return TOO_LONG
        local = memory.local[w, depth]
        if cell == 0:
            for k in range(len(local)):
                local[k] = zero
        else:
            above = boxes[cells.parent[cell]]
            x, y, z = above[0] - box[0], above[1] - box[1], above[2] - box[2]
            shift(walk.potential, x, y, z, memory.local[w, depth - 1], local)
        ids = memory.lists[w, 0]
        for start in range(0, far, STAGED_CELLS):
            some = min(STAGED_CELLS, far - start)
            blocks = stage_cells(walk.potential, ids[start:], some, moments, rows)
            far_cells(walk.potential, box[0], box[1], box[2], blocks, rows, walk.rules.length2, local)
        memory.counts[w, 0] += far
        if terminal:
            memory.counts[w, 1] += multipole * count
            most, expanded = memory.targets.shape[2], depth > 0 or far > 0
            for start in range(0, count, most):
                some = first + start, min(most, count - start)
                finish(w, some, (local, expanded), box, (near, multipole), walk, memory)
            return TERMINAL
        undecided, handed = memory.undecided[w, end : end + down], memory.lists[w, 3]
        for k in range(down):
            undecided[k] = handed[k]
        return end + down

    return visit


def _finish(variant: Variant) -> Callable:
    """``finish(w, some, expansion, box, lengths, walk, memory)``: the field at ``some`` bodies (the first, and their number)
    of a terminal target, from its lists of leaves and of cells, of these ``lengths``, and from its local expansion, if any.
    """
    zero, of_sums, near_bodies = variant.real(0), sums_for(variant), _near_bodies(variant)
    local_field, stage_cells, multipoles = of_sums.local_field, of_sums.stage_cells, of_sums.multipoles

    @inner(calls=True, fastmath=FAST)
    def finish(w, some, expansion, box, lengths, walk, memory):
        (begin, count), (local, expanded), (near, multipole) = some, expansion, lengths
        place, sums, rows, result = memory.targets[w], memory.sums[w], memory.rows[w], walk.result
        blocks = -(-count // LANES)
        stage_bodies(begin, count, walk.targets.bodies, place, 0)
        for k in range(4):
            for i in range(blocks * LANES):
                sums[k, i] = zero
            for i in range(count, blocks * LANES):
                place[k, i] = place[k, 0]
        if expanded:
            local_field(walk.potential, box[0], box[1], box[2], local, blocks, place, sums)
        ids, moments = memory.lists[w, 1], walk.sources.fields.moments
        for start in range(0, multipole, STAGED_CELLS):
            number = min(STAGED_CELLS, multipole - start)
            staged = stage_cells(walk.potential, ids[start:], number, moments, rows)
            multipoles(walk.potential, count, place, staged, rows, walk.rules.length2, sums)
        near_bodies(w, near, begin, count, walk, memory)
        for i in range(count):
            if len(result.active) == 0 or result.active[begin + i + 1] > result.active[begin + i]:
                body = result.order[begin + i]
                if walk.potential:
                    result.field[body, 3] = sums[3, i]
                else:
                    for k in range(3):
                        result.field[body, k] = sums[k, i]

    return finish


def _near_bodies(variant: Variant) -> Callable:
    """``near_bodies(w, number, first, count, walk, memory)``: P2P of a list of leaves."""
    pairs, own_potentials = sums_for(variant).pairs, sums_for(variant).own_pairs

    @inner(calls=True, fastmath=FAST)
    def near_bodies(w, number, first, count, walk, memory):
        staged, targets, sums, ids = memory.bodies[w], memory.targets[w], memory.sums[w], memory.lists[w, 2]
        sources, length2, filled = walk.sources, walk.rules.length2, 0
        for k in range(number):
            leaf = ids[k]
            start, left = np.int64(sources.cells.first[leaf]), np.int64(sources.cells.count[leaf])
            memory.counts[w, 2] += left * count
            if walk.potential and walk.same and start < first + count and start + left > first:
                own_potentials(first, count, targets, start, left, sources.bodies, length2, sums)
                continue
            while left > 0:
                taken, filled = stage_bodies(start, left, sources.bodies, staged, filled)
                start += taken
                left -= taken
                if filled == STAGED_BODIES:
                    pairs(walk.potential, count, targets, filled // LANES, staged, length2, sums)
                    filled = 0
        if filled:
            pairs(walk.potential, count, targets, pad_bodies(staged, filled), staged, length2, sums)

    return near_bodies
