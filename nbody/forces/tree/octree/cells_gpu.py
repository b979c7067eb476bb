"""The cells of an octree on the GPU: by level, each level in Morton order.

After the sort a cell is a run of bodies, so one thread per body finds all cells that begin with its body: with the number
of leading digits that neighbouring keys share, body i begins cells of the levels from δ + 1 (δ: the digits shared with the
body before) to c + 1 (c: the digits shared with the body ``leaf`` places later, so that these cells have more bodies than a
leaf). Ballots and one scan per level number the cells; the children of a cell are next to each other. There are two roots
if there are outliers (:mod:`.order_gpu`), else one: two bodies that share no root share -1 digits.

If the cells of the deepest levels do not fit the arrays, the tree ends at the last level that fits: its leaves then have
more bodies, which costs time and no accuracy.

The counts of a tree are in an array of int32 on the device, ``counts``: the first cell of level l at l (LEVELS + 2 numbers),
then the deepest level, the number of groups and the next one to compute, those of regions, the number of regions whose
lists fit, and the number of groups in each octave of their cost.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.forces.tree.octree.order_gpu import LEVELS

DEPTH, GROUPS, TICKET, REGIONS, REGION_TICKET, ROOM, OCTAVE = range(LEVELS + 2, LEVELS + 9)
OCTAVES = 32
COUNTS = OCTAVE + OCTAVES
"""Places in ``counts``, the number of octaves, and the length of ``counts``."""

CHILD_BITS = 29
CHILD_MASK = (1 << CHILD_BITS) - 1
"""The children of a cell as one number of 32 bits: the first child, and in the upper bits their number less one."""

MARK_THREADS = 64 if compute.SIMULATED else 1024
MARK_WARPS, ALL_LEVELS = MARK_THREADS // 32, LEVELS + 1
SCAN_THREADS = 64 if compute.SIMULATED else 1024
TWO_SCANS = 2 * SCAN_THREADS


class Digits(NamedTuple):
    """Device functions for keys."""

    shared: Callable
    """shared(a, b): the number of leading digits that two keys share."""
    prefix: Callable
    """prefix(key, digits): the leading digits of a key, as a number."""
    first_sharing: Callable
    """first_sharing(keys, i, digits, low): the first j, ``low`` ≤ j ≤ i, whose key shares ``digits`` digits with that of
    body i, if body ``low`` does not."""


@cache
def digits_of(dimensions: int) -> Digits:
    """:class:`Digits` of keys in 2-D or 3-D."""
    spare = 64 - dimensions * LEVELS

    @compute.device_function
    def shared(a, b):
        bits = np.uint32(compute.leading_zeros(a ^ b) + dimensions - spare)
        return int(bits // np.uint32(dimensions)) - 1

    @compute.device_function
    def prefix(key, digits):
        return key >> np.uint64(dimensions * (LEVELS - digits))

    @compute.device_function
    def first_sharing(keys, i, digits, low):
        wanted = prefix(keys[i], digits)
        near, far = np.uint32(0), np.uint32(i - low)  # places before body i
        while far - near > 1:
            middle = np.uint32(near + np.uint32(np.uint32(far - near) >> np.uint32(1)))
            if prefix(keys[i - middle], digits) == wanted:
                near = middle
            else:
                far = middle
        return i - near

    return Digits(shared, prefix, first_sharing)


@cache
def mark_kernel(dimensions: int) -> Any:
    """``mark(keys, leaf, levels, parts)``: the first and last level of the cells that begin with each body; the cells per
    block and level."""
    shared_digits, prefix, first_sharing = digits_of(dimensions)

    @compute.kernel("gpu")
    def mark(keys, leaf, levels, parts):
        cells = cuda.shared.array(32, np.int32)
        t, i, n = cuda.threadIdx.x, cuda.grid(1), keys.shape[0]
        if t < 32:
            cells[t] = 0
        cuda.syncthreads()
        if i < n:
            low, high, key = 1, 0, keys[i]
            before = shared_digits(keys[i - 1], key) if i > 0 else -1
            after = shared_digits(key, keys[i + leaf]) if i + leaf < n else -1
            divided = before < 0  # a root
            if before >= 0 and before < LEVELS:  # has the cell of level 'before' here more bodies than a leaf?
                wanted = prefix(key, before)
                if after >= before or (i >= leaf and prefix(keys[i - leaf], before) == wanted):
                    divided = True
                else:
                    begin = first_sharing(keys, i, before, max(i - leaf, 0) - 1)
                    divided = begin + leaf < n and prefix(keys[begin + leaf], before) == wanted
            if divided:
                low, high = before + 1, min(max(before, after) + 1, LEVELS)
            levels[i, 0], levels[i, 1] = low, high
            for level in range(low, high + 1):
                cuda.atomic.add(cells, level, 1)
        cuda.syncthreads()
        if t <= LEVELS:
            parts[t, cuda.blockIdx.x] = cells[t]

    return mark


@compute.kernel("gpu")
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


@compute.kernel("gpu")
def number(totals, counts, capacity, regions, rows, cell_bytes, row_bytes, work, last_work):
    """The first cell of each level, and the deepest level that fits. The regions whose lists fit beside the moments of
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
        for octave in range(OCTAVES):
            counts[OCTAVE + octave] = 0
        last_work[0], work[0] = work[0], 0


@compute.kernel("gpu")
def write(levels, parts, counts, nodes):
    """The first body and the first child of each cell."""
    warps = cuda.shared.array((MARK_WARPS, ALL_LEVELS), np.int32)
    t, i, n = cuda.threadIdx.x, cuda.grid(1), levels.shape[0]
    low, high = 1, 0
    if i < n:
        low, high = int(levels[i, 0]), min(int(levels[i, 1]), counts[DEPTH])
    for level in range(ALL_LEVELS):
        found = compute.ballot(low <= level and level <= high)
        if t % 32 == 0:
            warps[t // 32, level] = compute.count_ones(found)
    cuda.syncthreads()
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
        found = compute.ballot(inside)
        if inside:
            node = warps[t // 32, level] + compute.count_ones(np.uint32(found) & below)
            nodes[node, 0], nodes[node, 2] = i, 0
            if parent >= 0:
                nodes[parent, 2] = node
            parent = node
