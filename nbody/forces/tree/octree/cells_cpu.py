"""The cells of an octree (in 2-D a quadtree) over bodies in Morton order, level by level.

A cell that holds more than ``leaf`` bodies is divided at the highest bit in which their keys differ, so a cell has two or
more children: no chains of single children, however close bodies are. Bodies with the same key are one leaf.
"""

from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner, kernel
from nbody.compute.in_kernels.cpu_threads import for_each

FEW = 2048
"""A level of fewer cells is divided by one thread: more would cost more than they gain."""


class Cells(NamedTuple):
    """The cells, the root first, the children of a cell next to each other.

    Attributes:
        first, count: (K,) the range of its bodies in Morton order.
        child, children: (K,) its first child and the number of its children, 0 for a leaf.
        parent: (K,) the cell above; 0 for the root.
        levels: (depth + 1,) the first cell of each level, and K.
    """

    first: np.ndarray
    count: np.ndarray  # type: ignore[assignment]
    child: np.ndarray
    children: np.ndarray
    parent: np.ndarray
    levels: np.ndarray


def cells_of(keys: np.ndarray, leaf: int, dimensions: int) -> Cells:
    """The cells of bodies with sorted ``keys``; those with more than ``leaf`` bodies are divided."""
    capacity = len(keys) // 4 + 64
    while True:
        table, levels, size = np.empty((5, capacity), np.uint32), np.zeros(80, np.int64), np.ones(2, np.int64)
        build(keys, leaf, dimensions, table, levels, np.empty((capacity, 8), np.uint32), size)
        number, depth = map(int, size)
        if number <= capacity:
            rows = [np.ascontiguousarray(row[:number]) for row in table]
            return Cells(*rows, levels=levels[: depth + 1].copy())  # type: ignore[misc]
        capacity = 2 * len(keys) + 64  # enough for any bodies: each cell above a leaf has two children or more


def one_leaf(count: int) -> Cells:
    """The cells of bodies in one place."""
    zero = np.zeros(1, np.uint32)
    return Cells(zero, np.full(1, count, np.uint32), zero, zero, zero, np.array([0, 1]))


@inner
def _divide(keys, first, count, leaf, dimensions, ends):
    """Find where the children of a cell end; returns their number."""
    start, last = np.int64(first), np.int64(first) + np.int64(count)
    differing = keys[start] ^ keys[last - 1]
    if last - start <= leaf or differing == 0:
        return 0
    top = 63 if dimensions == 3 else 62
    level = 0  # of the highest differing digit
    while differing >> np.uint64(top - dimensions * (level + 1)) == 0:
        level += 1
    shift = np.uint64(top - dimensions * (level + 1))
    mask = np.uint64((1 << dimensions) - 1)
    number = 0
    while start < last:
        digit = (keys[start] >> shift) & mask
        low, high = np.int64(start + 1), last  # the end of the child: the first key with a greater digit
        if (keys[last - 1] >> shift) & mask == digit:
            low = last
        step = np.int64(8)
        while low < high:  # gallop, then bisect
            probe = min(low + step, high) - 1
            if (keys[probe] >> shift) & mask == digit:
                low = probe + 1
                step *= 2
            else:
                high = probe
                step = (high - low + 1) // 2
        ends[number] = low
        number += 1
        start = low
    return number


@inner
def _divide_cell(k, begin, keys, leaf, dimensions, table, ends):
    """Divide cell k of a level that begins with cell ``begin``."""
    first, count, children = table[0], table[1], table[3]
    children[begin + k] = _divide(keys, first[begin + k], count[begin + k], leaf, dimensions, ends[k])


@inner
def _write_children(k, begin, table, ends):
    """Write the children of cell k of a level."""
    first, count, child, children, parent = table[0], table[1], table[2], table[3], table[4]
    cell = begin + k
    start = first[cell]
    for c in range(np.int64(children[cell])):
        each = np.int64(child[cell]) + c
        first[each], count[each], parent[each] = start, ends[k, c] - start, cell
        start = ends[k, c]


@kernel
def build(keys, leaf, dimensions, table, levels, ends, size):
    """Fill the table: first, count, child, children, parent; and ``size`` with the numbers of cells and levels, that of
    cells exceeding the capacity if it is too small. ``ends`` (capacity, 8) is scratch memory: where the children of a
    level's cells end."""
    child, children, depth, begin, end = table[2], table[3], 0, 0, 1
    table[0, 0], table[1, 0], table[4, 0] = 0, len(keys), 0
    while begin < end <= table.shape[1]:
        levels[depth] = begin
        depth += 1
        for_each(_divide_cell, end - begin, FEW, (begin, keys, leaf, dimensions, table, ends))
        number = end
        for cell in range(begin, end):
            child[cell] = number if children[cell] else 0
            number += int(children[cell])
        if number <= table.shape[1]:
            for_each(_write_children, end - begin, FEW, (begin, table, ends))
        begin, end = end, number
    levels[depth] = end
    size[0], size[1] = end, depth
