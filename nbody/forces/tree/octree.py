"""The cells of an octree (in 2-D a quadtree) over bodies in Morton order, level by level.

A cell that holds more than ``leaf`` bodies is divided at the highest bit in which their keys differ, so a cell has two or
more children: no chains of single children, however close bodies are. Bodies with the same key are one leaf.
"""

from typing import NamedTuple

import numpy as np

from nbody.forces.direct.cpu_cache import disk_cached


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
    """The cells of bodies with sorted ``keys``."""
    room = len(keys) // 4 + 64
    while True:
        table, levels = np.empty((5, room), np.uint32), np.zeros(80, np.int64)
        number, depth = build(keys, leaf, dimensions, table, levels)
        if number <= room:
            rows = [np.ascontiguousarray(row[:number]) for row in table]
            return Cells(*rows, levels=levels[: depth + 1].copy())  # type: ignore[misc]
        room = 2 * len(keys) + 64  # enough for any bodies: each cell above a leaf has two children or more


def _build(keys, leaf, dimensions, table, levels):
    """Fill the table: first, count, child, children, parent. Returns the number of cells and levels; the number exceeds the
    room if that is too small."""
    first, count, child, children, parent = table[0], table[1], table[2], table[3], table[4]
    bits, digits = np.uint64(dimensions), 1 << dimensions
    top = 63 if dimensions == 3 else 62
    room = table.shape[1]
    first[0], count[0], parent[0] = 0, len(keys), 0
    number, depth = 1, 0
    begin, end = 0, 1
    while begin < end:
        levels[depth] = begin
        depth += 1
        for cell in range(begin, end):
            start, last = np.int64(first[cell]), np.int64(first[cell]) + np.int64(count[cell])
            child[cell], children[cell] = 0, 0
            differing = keys[start] ^ keys[last - 1]
            if last - start <= leaf or differing == 0:
                continue
            if number + digits > room:
                return room + 1, depth
            level = 0  # of the highest differing digit
            while differing >> np.uint64(top - dimensions * (level + 1)) == 0:
                level += 1
            shift = np.uint64(top - dimensions * (level + 1))
            mask = (np.uint64(1) << bits) - np.uint64(1)
            child[cell] = number
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
                first[number], count[number], parent[number] = start, low - start, cell
                number += 1
                children[cell] += 1
                start = low
        begin, end = end, number
    levels[depth] = number
    return number, depth


build = disk_cached(_build)
