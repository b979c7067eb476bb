"""The octree of a state on the GPU: bounds, Morton keys, and cells by level, each level in Morton order.

After the sort a cell is a run of bodies, so one thread per body finds all cells that begin with its body: with the number
of leading digits that neighbouring keys share, body i begins cells of the levels from δ + 1 (δ: the digits shared with the
body before) to c + 1 (c: the digits shared with the body ``leaf`` places later, so that these cells have more bodies than a
leaf). Ballots and one scan per level number the cells; the children of a cell are next to each other.

If the cells of the deepest levels do not fit the arrays, the tree ends at the last level that fits: its leaves then have
more bodies, which costs time and no accuracy.

The counts of a tree are in an array of int32 on the device, ``counts``: the first cell of level l at l (LEVELS + 2 numbers),
then the deepest level, the numbers of groups and of regions, and the next group and region to compute.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from nbody import gpu
from nbody.gpu import cuda

LEVELS = 21
"""The deepest level: 21 digits of 3 bits fit a key of 63 bits."""

DEPTH, GROUPS, TICKET, REGIONS, REGION_TICKET, COUNTS = range(LEVELS + 2, LEVELS + 8)
"""Places in ``counts``, and its length."""

CHILD_BITS = 29
CHILD_MASK = (1 << CHILD_BITS) - 1
"""The children of a cell as one number of 32 bits: the first child, and in the upper bits their number less one."""

BOX = 8
"""Numbers of ``box``, float64: the lowest corner (3), key cells per length, the factors of lengths and masses (powers of 2
that make the box and the total mass about 1), and those of accelerations and potentials, which undo them."""

THREADS = 64 if gpu.SIMULATED else 256
PARTS = THREADS
"""Blocks that find the bounds."""
MARK_THREADS = 64 if gpu.SIMULATED else 1024
MARK_WARPS, ALL_LEVELS = MARK_THREADS // 32, LEVELS + 1
SCAN_THREADS = 64 if gpu.SIMULATED else 1024
TWO_SCANS = 2 * SCAN_THREADS


@cache
def bounds_kernels() -> tuple[Any, Any]:
    """``bounds(body, parts)``: the extent and mass of each block's bodies, (PARTS, 8); ``frame(parts, box, G)``: the box."""

    @gpu.device_function
    def reduce(shared, t, values):
        """Leave the extent and the mass of all threads of the block in row 0."""
        for k in range(7):
            shared[t, k] = values[k]
        cuda.syncthreads()
        half = cuda.blockDim.x // 2
        while half:
            if t < half:
                for k in range(3):
                    shared[t, k] = min(shared[t, k], shared[t + half, k])
                    shared[t, 3 + k] = max(shared[t, 3 + k], shared[t + half, 3 + k])
                shared[t, 6] += shared[t + half, 6]
            cuda.syncthreads()
            half //= 2

    @gpu.kernel()
    def bounds(body, parts):
        shared = cuda.shared.array((THREADS, 7), np.float64)
        t, n = cuda.threadIdx.x, body.shape[0]
        values = cuda.local.array(7, np.float64)
        for k in range(3):
            values[k], values[3 + k] = math.inf, -math.inf
        values[6] = 0.0
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            x, y, z, m = gpu.row(body, i)
            values[0], values[3] = min(values[0], float(x)), max(values[3], float(x))
            values[1], values[4] = min(values[1], float(y)), max(values[4], float(y))
            values[2], values[5] = min(values[2], float(z)), max(values[5], float(z))
            values[6] += float(m)
        reduce(shared, t, values)
        if t < 7:
            parts[cuda.blockIdx.x, t] = shared[0, t]

    @gpu.kernel()
    def frame(parts, box, G):
        shared = cuda.shared.array((THREADS, 7), np.float64)
        t = cuda.threadIdx.x
        values = cuda.local.array(7, np.float64)
        for k in range(7):
            values[k] = parts[min(t, parts.shape[0] - 1), k]
        if t >= parts.shape[0]:
            values[6] = 0.0
        reduce(shared, t, values)
        if t == 0:
            size = 0.0
            for k in range(3):
                box[k] = shared[0, k]
                size = max(size, shared[0, 3 + k] - shared[0, k])
            length = mass = 1.0
            if 0.0 < size < 1e300:
                _, exponent = math.frexp(size)
                length = math.ldexp(1.0, -exponent)
            if 0.0 < shared[0, 6] < 1e300:
                _, exponent = math.frexp(shared[0, 6])
                mass = math.ldexp(1.0, -exponent)
            box[3] = (1 << LEVELS) / size if 0.0 < size < 1e300 else 0.0
            box[4], box[5] = length, mass
            box[6], box[7] = G * length * length / mass, G * length / mass

    return bounds, frame


@cache
def key_kernel(dimensions: int) -> Any:
    """``keys(body, box, keys, index)``: the Morton key and the index of each body."""

    @gpu.device_function
    def spread3(x):
        """Two zero bits after each of 21 bits."""
        x = (x | x << np.uint64(32)) & np.uint64(0x1F00000000FFFF)
        x = (x | x << np.uint64(16)) & np.uint64(0x1F0000FF0000FF)
        x = (x | x << np.uint64(8)) & np.uint64(0x100F00F00F00F00F)
        x = (x | x << np.uint64(4)) & np.uint64(0x10C30C30C30C30C3)
        return (x | x << np.uint64(2)) & np.uint64(0x1249249249249249)

    @gpu.device_function
    def spread2(x):
        """One zero bit after each of 21 bits."""
        x = (x | x << np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
        x = (x | x << np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
        x = (x | x << np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
        x = (x | x << np.uint64(2)) & np.uint64(0x3333333333333333)
        return (x | x << np.uint64(1)) & np.uint64(0x5555555555555555)

    spread = spread2 if dimensions == 2 else spread3

    @gpu.device_function
    def digit(x, low, cells):
        return np.uint64(min(max((float(x) - low) * cells, 0.0), float((1 << LEVELS) - 1)))

    @gpu.kernel()
    def keys_of(body, box, keys, index):
        i = cuda.grid(1)
        if i < body.shape[0]:
            x, y, z, _ = gpu.row(body, i)
            key = spread(digit(x, box[0], box[3])) << np.uint64(dimensions - 1)
            key |= spread(digit(y, box[1], box[3])) << np.uint64(dimensions - 2)
            if dimensions == 3:
                key |= spread(digit(z, box[2], box[3]))
            keys[i] = key
            index[i] = i

    return keys_of


@cache
def gather_kernel(wide: type) -> Any:
    """``gather(body, index, box, sorted)``: the bodies in Morton order, with coordinates and masses in units of the box.
    In float64 coordinates begin at the corner of the box; in float32 that would round them."""
    shifted = wide is np.float64

    @gpu.kernel()
    def gather(body, index, box, sorted_body):
        i = cuda.grid(1)
        if i < body.shape[0]:
            x, y, z, m = gpu.row(body, index[i])
            length = wide(box[4])
            if shifted:
                x, y, z = x - box[0], y - box[1], z - box[2]
            sorted_body[i, 0], sorted_body[i, 1], sorted_body[i, 2] = x * length, y * length, z * length
            sorted_body[i, 3] = m * wide(box[5])

    return gather


@cache
def tree_kernels(dimensions: int) -> tuple[Any, Any, Any, Any, Any]:
    """``mark(keys, leaf, levels, parts)``, ``scan(parts, totals)``, ``number(totals, counts, capacity)``,
    ``write(levels, parts, counts, nodes)`` and ``link(keys, counts, nodes, groups, group, regions, region_at, region)``."""
    spare = 64 - dimensions * LEVELS

    @gpu.device_function
    def shared_digits(a, b):
        """The number of leading digits that two keys share."""
        return (gpu.leading_zeros(a ^ b) - spare) // dimensions

    @gpu.device_function
    def first_sharing(keys, i, digits, low):
        """The first j, ``low`` ≤ j ≤ i, whose key shares ``digits`` digits with that of body i, if body ``low`` does not."""
        high = i
        while high - low > 1:
            middle = (low + high) // 2
            if shared_digits(keys[middle], keys[i]) >= digits:
                high = middle
            else:
                low = middle
        return high

    @gpu.kernel()
    def mark(keys, leaf, levels, parts):
        """The first and last level of the cells that begin with each body; cells per block and level."""
        warps = cuda.shared.array((MARK_WARPS, ALL_LEVELS), np.int32)
        t, i, n = cuda.threadIdx.x, cuda.grid(1), keys.shape[0]
        low, high = 1, 0
        if i < n:
            before = shared_digits(keys[i - 1], keys[i]) if i > 0 else -1
            after = shared_digits(keys[i], keys[i + leaf]) if i + leaf < n else -1
            divided = i == 0
            if i > 0 and before < LEVELS:  # has the cell of level 'before' around this body more bodies than a leaf?
                if i >= leaf and shared_digits(keys[i - leaf], keys[i]) >= before:
                    divided = True
                else:
                    begin = first_sharing(keys, i, before, max(i - leaf, 0) - 1)
                    divided = begin + leaf < n and shared_digits(keys[begin], keys[begin + leaf]) >= before
            if divided:
                low, high = before + 1, min(max(before, after) + 1, LEVELS)
            levels[i, 0], levels[i, 1] = low, high
        for level in range(ALL_LEVELS):
            found = gpu.ballot(low <= level and level <= high)
            if t % 32 == 0:
                warps[t // 32, level] = cuda.popc(found)
        cuda.syncthreads()
        if t <= LEVELS:
            total = 0
            for warp in range(MARK_WARPS):
                total += warps[warp, t]
            parts[t, cuda.blockIdx.x] = total

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
    def number(totals, counts, capacity):
        """The first cell of each level, and the deepest level that fits."""
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

    @gpu.kernel()
    def write(levels, parts, counts, nodes):
        """The first body and the first child of each cell."""
        warps = cuda.shared.array((MARK_WARPS, ALL_LEVELS), np.int32)
        t, i, n = cuda.threadIdx.x, cuda.grid(1), levels.shape[0]
        low, high = 1, 0
        if i < n:
            low, high = int(levels[i, 0]), min(int(levels[i, 1]), counts[DEPTH])
        for level in range(ALL_LEVELS):
            found = gpu.ballot(low <= level and level <= high)
            if t % 32 == 0:
                warps[t // 32, level] = cuda.popc(found)
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
            found = gpu.ballot(inside)
            if inside:
                node = warps[t // 32, level] + cuda.popc(np.uint32(found) & below)
                nodes[node, 0], nodes[node, 2] = i, 0
                if parent >= 0:
                    nodes[parent, 2] = node
                parent = node

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

    @gpu.device_function
    def add_group(counts, groups, first, count, region_first):
        place = cuda.atomic.add(counts, GROUPS, 1)
        if place < groups.shape[0]:
            groups[place, 0], groups[place, 1], groups[place, 2] = first, count, region_first

    @gpu.device_function
    def add_region(counts, regions, region_at, first, count):
        place = cuda.atomic.add(counts, REGIONS, 1)
        region_at[first] = -1
        if place < regions.shape[0]:
            regions[place, 0], regions[place, 1] = first, count
            region_at[first] = place

    @gpu.kernel()
    def link(keys, counts, nodes, groups, group, regions, region_at, region):
        """The number of bodies and of children of each cell. The groups, of at most ``group`` bodies: the largest cells, or
        runs of a leaf. The regions, of at most ``region`` bodies: the largest cells. (They are numbered in any order; no
        result depends on it.)"""
        n, total = keys.shape[0], counts[LEVELS + 1]
        for node in range(cuda.grid(1), total, cuda.gridsize(1)):
            level = 0
            while counts[level + 1] <= node:
                level += 1
            first, child = nodes[node, 0], nodes[node, 2]
            key, step = keys[first], 1
            while first + step < n and shared_digits(key, keys[first + step]) >= level:
                step *= 2
            inside, end = first + step // 2, min(first + step, n)  # 'inside' belongs to the cell, 'end' does not
            while end - inside > 1:
                middle = (inside + end) // 2
                if shared_digits(key, keys[middle]) >= level:
                    inside = middle
                else:
                    end = middle
            children, count = 0, end - first
            if child > 0:
                while child + children < counts[level + 2] and nodes[child + children, 0] < end:
                    children += 1
            nodes[node, 1], nodes[node, 3] = count, children
            if node == 0 and count <= region:
                add_region(counts, regions, region_at, first, count)
            if node == 0 and count <= group:
                add_group(counts, groups, first, count, first)
            elif count > group:
                around = region_around(keys, first, level, region) if count <= region else -1
                if children == 0:
                    for start in range(first, end, group):
                        add_group(counts, groups, start, min(group, end - start), around)
                for c in range(child, child + children):
                    start = nodes[c, 0]
                    size = (nodes[c + 1, 0] if c + 1 < child + children else end) - start
                    if count > region and size <= region:
                        add_region(counts, regions, region_at, start, size)
                    if size <= group:
                        add_group(counts, groups, start, size, around if count <= region else start)

    return mark, scan, number, write, link
