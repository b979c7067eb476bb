"""The cells of an octree on the GPU: by level, each level in Morton order.

After the sort a cell is a run of bodies, so one thread per body finds all cells that begin with its body: with the number
of leading digits that neighbouring keys share, body i begins cells of the levels from δ + 1 (δ: the digits shared with the
body before) to c + 1 (c: the digits shared with the body ``leaf`` places later, so that these cells have more bodies than a
leaf). Ballots and one scan per level number the cells; the children of a cell are next to each other. There are two roots
if there are outliers (:mod:`.gpu_keys`), else one: two bodies that share no root share -1 digits.

If the cells of the deepest levels do not fit the arrays, the tree ends at the last level that fits: its leaves then have
more bodies, which costs time and no accuracy.

The counts of a tree are in an array of int32 on the device, ``counts``: the first cell of level l at l (LEVELS + 2 numbers),
then the deepest level, the numbers of groups and of regions, the next group and region to compute, and the number of regions
whose lists have room.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.tree.gpu_keys import LEVELS
from nbody.gpu import cuda

DEPTH, GROUPS, TICKET, REGIONS, REGION_TICKET, ROOM, COUNTS = range(LEVELS + 2, LEVELS + 9)
"""Places in ``counts``, and its length."""

CHILD_BITS = 29
CHILD_MASK = (1 << CHILD_BITS) - 1
"""The children of a cell as one number of 32 bits: the first child, and in the upper bits their number less one."""

MARK_THREADS = 64 if gpu.SIMULATED else 1024
MARK_WARPS, ALL_LEVELS = MARK_THREADS // 32, LEVELS + 1
SCAN_THREADS = 64 if gpu.SIMULATED else 1024
TWO_SCANS = 2 * SCAN_THREADS


class Digits(NamedTuple):
    """Device functions for keys."""

    shared: Callable
    """shared(a, b): the number of leading digits that two keys share."""
    first_sharing: Callable
    """first_sharing(keys, i, digits, low): the first j, ``low`` ≤ j ≤ i, whose key shares ``digits`` digits with that of
    body i, if body ``low`` does not."""


@cache
def digits_of(dimensions: int) -> Digits:
    """:class:`Digits` of keys in 2-D or 3-D."""
    spare = 64 - dimensions * LEVELS

    @gpu.device_function
    def shared(a, b):
        return (gpu.leading_zeros(a ^ b) - spare) // dimensions

    @gpu.device_function
    def first_sharing(keys, i, digits, low):
        high = i
        while high - low > 1:
            middle = (low + high) // 2
            if shared(keys[middle], keys[i]) >= digits:
                high = middle
            else:
                low = middle
        return high

    return Digits(shared, first_sharing)


@gpu.device_function
def _count_levels(warps, t, low, high):
    """Leave the number of cells of each level, of each warp's bodies, in ``warps``."""
    for level in range(ALL_LEVELS):
        found = gpu.ballot(low <= level and level <= high)
        if t % 32 == 0:
            warps[t // 32, level] = cuda.popc(found)
    cuda.syncthreads()


@cache
def mark_kernel(dimensions: int) -> Any:
    """``mark(keys, leaf, levels, parts)``: the first and last level of the cells that begin with each body; the cells per
    block and level."""
    shared_digits, first_sharing = digits_of(dimensions)

    @gpu.kernel()
    def mark(keys, leaf, levels, parts):
        warps = cuda.shared.array((MARK_WARPS, ALL_LEVELS), np.int32)
        t, i, n = cuda.threadIdx.x, cuda.grid(1), keys.shape[0]
        low, high = 1, 0
        if i < n:
            before = shared_digits(keys[i - 1], keys[i]) if i > 0 else -1
            after = shared_digits(keys[i], keys[i + leaf]) if i + leaf < n else -1
            divided = before < 0  # a root
            if before >= 0 and before < LEVELS:  # has the cell of level 'before' here more bodies than a leaf?
                if i >= leaf and shared_digits(keys[i - leaf], keys[i]) >= before:
                    divided = True
                else:
                    begin = first_sharing(keys, i, before, max(i - leaf, 0) - 1)
                    divided = begin + leaf < n and shared_digits(keys[begin], keys[begin + leaf]) >= before
            if divided:
                low, high = before + 1, min(max(before, after) + 1, LEVELS)
            levels[i, 0], levels[i, 1] = low, high
        _count_levels(warps, t, low, high)
        if t <= LEVELS:
            total = 0
            for warp in range(MARK_WARPS):
                total += warps[warp, t]
            parts[t, cuda.blockIdx.x] = total

    return mark


@gpu.kernel()
def scan(parts, totals):
    """Sum the cells of the blocks before each block, one level per block of threads."""
    shared = cuda.shared.array(TWO_SCANS, np.int32)
    level, t, n = cuda.blockIdx.x, cuda.threadIdx.x, parts.shape[1]
    total = 0
    for start in range(0, n, SCAN_THREADS):
        value = parts[level, start + t] if start + t < n else 0
        source = 0
        shared[t] = value
        cuda.syncthreads()
        step = 1
        while step < SCAN_THREADS:
            value_here = shared[source + t]
            if t >= step:
                value_here += shared[source + t - step]
            source = SCAN_THREADS - source
            shared[source + t] = value_here
            cuda.syncthreads()
            step *= 2
        if start + t < n:
            parts[level, start + t] = total + shared[source + t] - value
        total += shared[source + SCAN_THREADS - 1]
        cuda.syncthreads()
    if t == 0:
        totals[level] = total


@gpu.kernel()
def number(totals, counts, capacity, regions, rows, cell_bytes, row_bytes, work, last_work):
    """The first cell of each level, and the deepest level that fits. The regions whose lists have room beside the moments of
    the cells: at most ``regions``, in ``rows`` rows of ``row_bytes`` each. The interactions that ``work`` counted become
    those of the last evaluation, and it counts from 0 again."""
    if cuda.threadIdx.x == 0:
        first, depth = 0, 0
        for level in range(ALL_LEVELS):
            counts[level] = first
            if totals[level] > 0 and first + totals[level] <= capacity and depth >= level - 1:
                depth = level
                first += totals[level]
        counts[LEVELS + 1] = first
        counts[DEPTH], counts[GROUPS], counts[TICKET] = depth, 0, 0
        counts[REGIONS], counts[REGION_TICKET] = 0, 0
        counts[ROOM] = min(regions, rows - (first * cell_bytes + row_bytes - 1) // row_bytes)
        last_work[0], work[0] = work[0], 0


@gpu.kernel()
def restart(counts, work, last_work):
    """Let the regions and groups be walked again."""
    if cuda.threadIdx.x == 0:
        counts[TICKET], counts[REGION_TICKET] = 0, 0
        last_work[0], work[0] = work[0], 0


@gpu.kernel()
def write(levels, parts, counts, nodes):
    """The first body and the first child of each cell."""
    warps = cuda.shared.array((MARK_WARPS, ALL_LEVELS), np.int32)
    t, i, n = cuda.threadIdx.x, cuda.grid(1), levels.shape[0]
    low, high = 1, 0
    if i < n:
        low, high = int(levels[i, 0]), min(int(levels[i, 1]), counts[DEPTH])
    _count_levels(warps, t, low, high)
    if t <= LEVELS:
        total = counts[t] + parts[t, cuda.blockIdx.x]
        for warp in range(MARK_WARPS):
            here = warps[warp, t]
            warps[warp, t] = total
            total += here
    cuda.syncthreads()
    parent, below = -1, np.uint32((1 << (t % 32)) - 1)
    for level in range(ALL_LEVELS):
        inside = low <= level and level <= high
        found = gpu.ballot(inside)
        if inside:
            node = warps[t // 32, level] + cuda.popc(np.uint32(found) & below)
            nodes[node, 0], nodes[node, 2] = i, 0
            if parent >= 0:
                nodes[parent, 2] = node
            parent = node


@gpu.device_function
def _add_group(counts, groups, first, count, region_first):
    place = cuda.atomic.add(counts, GROUPS, 1)
    if place < groups.shape[0]:
        groups[place, 0], groups[place, 1], groups[place, 2] = first, count, region_first


@gpu.device_function
def _add_region(counts, regions, region_at, first, count):
    place = cuda.atomic.add(counts, REGIONS, 1)
    region_at[first] = -1
    if place < regions.shape[0]:
        regions[place, 0], regions[place, 1] = first, count
        region_at[first] = place


@cache
def link_kernel(dimensions: int) -> Any:
    """``link(keys, counts, nodes, groups, group, regions, region_at, region)``: the number of bodies and of children of each
    cell. The groups, of at most ``group`` bodies: the largest cells, or runs of a leaf. The regions, of at most ``region``
    bodies: the largest cells. (They are numbered in any order; no result depends on it.)"""
    shared_digits, first_sharing = digits_of(dimensions)

    @gpu.device_function
    def end_of(keys, first, level):
        """The end of the bodies that share ``level`` digits with body ``first``."""
        n, key, step = keys.shape[0], keys[first], 1
        while first + step < n and shared_digits(key, keys[first + step]) >= level:
            step *= 2
        inside, end = first + step // 2, min(first + step, n)  # 'inside' belongs to the cell, 'end' does not
        while end - inside > 1:
            middle = (inside + end) // 2
            if shared_digits(key, keys[middle]) >= level:
                inside = middle
            else:
                end = middle
        return end

    @gpu.device_function
    def region_around(keys, first, level, most):
        """The first body of the largest cell with at most ``most`` bodies around the cell of a level that begins with body
        ``first`` and is not larger itself."""
        n, key = keys.shape[0], keys[first]
        found = first
        for above in range(level - 1, -1, -1):
            if first >= most and shared_digits(keys[first - most], key) >= above:
                break
            begin = first_sharing(keys, first, above, max(first - most, 0) - 1)
            if begin + most < n and shared_digits(keys[begin + most], key) >= above:
                break
            found = begin
        return found

    @gpu.kernel()
    def link(keys, counts, nodes, groups, group, regions, region_at, region):
        for node in range(cuda.grid(1), counts[LEVELS + 1], cuda.gridsize(1)):
            level = 0
            while counts[level + 1] <= node:
                level += 1
            first, child = nodes[node, 0], nodes[node, 2]
            end = end_of(keys, first, level)
            children, count = 0, end - first
            if child > 0:
                while child + children < counts[level + 2] and nodes[child + children, 0] < end:
                    children += 1
            nodes[node, 1], nodes[node, 3] = count, children
            if level == 0 and count <= region:
                _add_region(counts, regions, region_at, first, count)
            if level == 0 and count <= group:
                _add_group(counts, groups, first, count, first)
            elif count > group:
                around = region_around(keys, first, level, region) if count <= region else -1
                if children == 0:
                    for start in range(first, end, group):
                        _add_group(counts, groups, start, min(group, end - start), around)
                for c in range(child, child + children):
                    start = nodes[c, 0]
                    size = (nodes[c + 1, 0] if c + 1 < child + children else end) - start
                    if count > region and size <= region:
                        _add_region(counts, regions, region_at, start, size)
                    if size <= group:
                        _add_group(counts, groups, start, size, around if count <= region else start)

    return link
