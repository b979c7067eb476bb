"""Down the tree of targets: a task is the subtree of one cell. Each worker (thread) takes the next task that is free; no two
tasks write to the same body, so the bits do not depend on the number of threads."""

from collections.abc import Callable
from functools import cache

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from nbody import compute
from nbody.forces.direct.cpu_roots import FAST
from nbody.forces.tree.pieces import Variant, piece
from nbody.forces.tree.target import visit_for
from nbody.forces.tree.walk_memory import DEPTH


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
    """The compiled function ``descend(w, sources, targets, last, counter, tasks, same, rules, group, few, memory, result)``:
    worker w takes tasks until none is left. Returns False if a list can't be completed. Several threads call it
    at once."""

    def descend(w, sources, targets, last, counter, tasks, same, rules, group, few, memory, result):
        return work(variant, w, last, counter, tasks, same, sources, targets, rules, group, few, memory, result)

    return compute.kernel("cpu", fastmath=FAST)(descend)


def _work(variant: Variant) -> Callable:
    """``work(w, last, counter, …)``: worker w takes tasks until none is left. Returns False if a list can't be completed."""
    visit = visit_for(variant)

    @njit(fastmath=FAST, error_model="numpy")
    def work(w, last, counter, tasks, same, sources, targets, rules, group, few, memory, result):
        target_cells = targets.cells
        stack, active = memory.stack[w], result.active
        path = np.full(DEPTH, -1, np.int64)  # from the root to the cell of the last task
        bounds = np.zeros(DEPTH + 2, np.int64)  # of the undecided sources of each cell of the path
        bounds[1] = 1
        memory.undecided[w, 0] = 0
        task = next_number(counter)
        while task < last:
            length, cell = np.int64(0), np.int64(tasks[task])
            while cell != 0:
                cell = np.int64(target_cells.parent[cell])
                length += 1
            start, cell = length, np.int64(tasks[task])
            for d in range(length, -1, -1):
                if path[d] != cell:  # the cells above that the last task has too are done
                    path[d], start = cell, np.int64(d)
                cell = np.int64(target_cells.parent[cell])
            stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = path[start], bounds[start], bounds[start + 1], start
            waiting = 1
            while waiting:
                waiting -= 1
                cell, begin, end, depth = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
                first, count = np.int64(target_cells.first[cell]), np.int64(target_cells.count[cell])
                if len(active) and active[first + count] == active[first]:
                    continue
                far, tests = memory.counts[w, 0], memory.counts[w, 3]
                down = visit(w, cell, begin, end, depth, same, sources, targets, rules, group, few, memory, result)
                if down == -2:
                    return False
                if depth < length and first != target_cells.first[path[length]]:
                    memory.counts[w, 0], memory.counts[w, 3] = far, tests  # another task counts this cell
                if down < 0:
                    continue
                child, children = np.int64(target_cells.child[cell]), np.int64(target_cells.children[cell])
                if depth < length:  # on the way to the task's cell
                    child, children, bounds[depth + 2] = path[depth + 1], np.int64(1), down
                for k in range(children - 1, -1, -1):
                    stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = child + k, end, down
                    stack[waiting, 3] = depth + 1
                    waiting += 1
            task = next_number(counter)
        return True

    return work


work = piece(_work)
