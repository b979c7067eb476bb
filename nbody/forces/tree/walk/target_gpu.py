"""What the walks of regions and of groups on the GPU share: their arrays, the extent of a target, its stack of cells and its
lists."""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from nbody import compute
from nbody.compute.in_kernels.reduction import least_over_lanes, sum_over_lanes
from nbody.forces.tree.criterion import CANCELLED, FIRST_THETA
from nbody.forces.tree.expansions.operators import Basis
from nbody.forces.tree.expansions.text import function_of
from nbody.forces.tree.octree.cells_gpu import CHILD_BITS, CHILD_MASK
from nbody.forces.tree.octree.moments_gpu import device_operators, tuples
from nbody.forces.tree.octree.order_gpu import LEVELS
from nbody.state.device import DeviceArray

STACK = 32 + 28 * (LEVELS + 1)
"""The capacity of a stack: an iteration removes as many entries as have 32 cells, at least 4, and adds at most 32, so that
it holds at most 28 entries per level."""


class Targets(NamedTuple):
    """The arrays of the targets, see :class:`~nbody.forces.tree.tree_gpu.DeviceCells`. ``centres``, ``locals``, ``lists``
    and ``listed`` are what regions leave to groups; ``work`` counts interactions, ``costs`` those per body;
    ``rows`` has the row of each of the ``sorted`` bodies."""

    counts: DeviceArray
    groups: DeviceArray
    sequence: DeviceArray
    costs: DeviceArray
    regions: DeviceArray
    region_at: DeviceArray
    sorted: DeviceArray
    rows: DeviceArray
    centres: DeviceArray
    locals: DeviceArray
    lists: DeviceArray
    listed: DeviceArray
    work: DeviceArray


class Sources(NamedTuple):
    """The arrays of the tree, see :class:`~nbody.forces.tree.tree_gpu.DeviceTree`."""

    counts: DeviceArray
    nodes: DeviceArray
    place: DeviceArray
    norms: DeviceArray
    moments: DeviceArray
    sorted: DeviceArray
    rows: DeviceArray
    box: DeviceArray


class Target(NamedTuple):
    """Device functions for a warp and its target, a run of bodies in Morton order."""

    extent: Callable
    """extent(targets, acceleration, first, count, factor, lane): the centre of the target's box, half its lengths and the
    smallest |a|² of the bodies, times ``factor`` squared."""
    radius: Callable
    """radius(targets, first, count, centre, lane): the largest distance of a body from the centre."""
    criterion: Callable
    """criterion(a2, mass, error): open cells by the angle?, the angle, the bound of the error."""
    roots: Callable
    """roots(counts): the roots of the tree, as an entry of the stack."""
    pop: Callable
    """pop(stack, chosen, warp, lane, top): takes cells from the stack. (the cell of this lane or -1, the new top)"""
    push: Callable
    """push(queue, warp, count, wanted, value, lane): appends the values of the lanes with ``wanted``, up to the
    capacity. The new count."""
    drop: Callable
    """drop(queue, warp, lane): removes the first 32 of at most 64 values."""
    seen: Callable
    """seen(tree, node, centre, half, reach): a cell as the target sees it: its norms P and radius r, d², h² (the squared
    distance of its centre from the target's box), True if h is beyond the reach, and its row of ``nodes``."""
    children: Callable
    """children(child, number): the children of a cell as one number, for the stack."""
    expand: Callable
    """expand(far, warp, here, tree, centre, length2, expansion, lane): the expansion with that of the first ``here`` cells
    of a list, one per lane."""
    total: Callable
    """total(values): the sums over the lanes of the numbers of a local expansion."""


@cache
def target_functions(basis: Basis, wide: type, geometric: bool) -> Target:
    """:class:`Target` for expansions, and bodies of the type ``wide``; ``geometric``: cells are opened by the angle."""
    real, f0, half = np.float32, np.float32(0), wide(0.5)
    ops, kept, normed = device_operators(basis), tuples(len(basis.moments)), tuples(basis.order)
    cancelled, first_theta = real(CANCELLED), real(FIRST_THETA)

    @compute.device_function
    def extent(targets, acceleration, first, count, factor, lane):
        x, y, z, _ = compute.row(targets.sorted, first)
        lx, ly, lz, hx, hy, hz = x, y, z, x, y, z
        a2 = real(3e38)
        for k in range(lane, count, 32):
            x, y, z, _ = compute.row(targets.sorted, first + k)
            lx, ly, lz, hx, hy, hz = min(lx, x), min(ly, y), min(lz, z), max(hx, x), max(hy, y), max(hz, z)
            ax, ay, az, _ = compute.row(acceleration, targets.rows[np.uint32(first + k)])
            ax, ay, az = real(ax) * factor, real(ay) * factor, real(az) * factor
            a2 = min(a2, ax * ax + ay * ay + az * az)
        lx, ly, lz = least_over_lanes(lx), least_over_lanes(ly), least_over_lanes(lz)
        hx, hy, hz = -least_over_lanes(-hx), -least_over_lanes(-hy), -least_over_lanes(-hz)
        cx, cy, cz = half * (lx + hx), half * (ly + hy), half * (lz + hz)
        return (cx, cy, cz), (real(hx - cx), real(hy - cy), real(hz - cz)), least_over_lanes(a2)

    @compute.device_function
    def radius(targets, first, count, centre, lane):
        square, (cx, cy, cz) = f0, centre
        for k in range(lane, count, 32):
            x, y, z, _ = compute.row(targets.sorted, first + k)
            dx, dy, dz = real(x - cx), real(y - cy), real(z - cz)
            square = max(square, dx * dx + dy * dy + dz * dz)
        return real(math.sqrt(-least_over_lanes(-square)))

    @compute.device_function
    def criterion(a2, mass, error):
        angle = geometric or not a2 > f0
        theta = real(error) if geometric else first_theta
        return angle, theta, real(error) * max(math.sqrt(a2), cancelled * mass)

    @compute.device_function
    def children(child, number):
        return np.uint32(child) | (np.uint32(number - 1) << np.uint32(CHILD_BITS))

    @compute.device_function
    def roots(counts):
        return children(0, counts[1])

    @compute.device_function
    def pop(stack, chosen, warp, lane, top):
        entry, cells = np.uint32(0), 0
        if lane < top:
            entry = stack[warp, np.uint32(top - 1 - lane)]
            cells = int(entry >> np.uint32(CHILD_BITS)) + 1
        until = cells
        for step in (1, 2, 4, 8, 16):
            other = compute.shuffle(until, (lane - step) & 31)
            if lane >= step:
                until += other
        taken = compute.count_ones(np.uint32(compute.ballot(lane < top and until <= 32)))
        if lane < taken:
            for c in range(cells):
                chosen[warp, np.uint32(until - cells + c)] = int(entry & np.uint32(CHILD_MASK)) + c
        total = compute.shuffle(until, taken - 1)
        compute.sync_warp()
        node = chosen[warp, lane] if lane < total else -1
        return int(node), top - taken

    @compute.device_function
    def push(queue, warp, count, wanted, value, lane):
        found = np.uint32(compute.ballot(wanted))
        if wanted:
            at = np.uint32(count + compute.count_ones(found & np.uint32((1 << lane) - 1)))
            if at < np.uint32(queue.shape[1]):
                queue[warp, at] = value
        return count + compute.count_ones(found)

    @compute.device_function
    def drop(queue, warp, lane):
        moved = queue[warp, np.uint32(32 + lane)]
        compute.sync_warp()
        queue[warp, np.uint32(lane)] = moved
        compute.sync_warp()  # the next value may go to the place of another lane

    @compute.device_function
    def seen(tree, node, centre, half_lengths, reach):
        (cx, cy, cz), (ex, ey, ez) = centre, half_lengths
        x, y, z, r_wide = compute.row(tree.place, node)
        r, P = real(r_wide), normed.load(tree.norms, node)
        dx, dy, dz = real(x - cx), real(y - cy), real(z - cz)
        d2 = dx * dx + dy * dy + dz * dz
        dx, dy, dz = max(abs(dx) - ex, f0), max(abs(dy) - ey, f0), max(abs(dz) - ez, f0)
        h2 = dx * dx + dy * dy + dz * dz
        return P, r, d2, h2, reach == f0 or h2 > (r + reach) * (r + reach), compute.row(tree.nodes, node)

    @compute.device_function
    def expand(far, warp, here, tree, centre, length2, expansion, lane):
        if lane < here:
            node, (cx, cy, cz) = far[warp, np.uint32(lane)], centre
            x, y, z, _ = compute.row(tree.place, node)
            dx, dy, dz = real(x - cx), real(y - cy), real(z - cz)
            expansion = ops.m2l(dx, dy, dz, length2, kept.load(tree.moments, node), expansion)
        return expansion

    total = total_over_lanes(len(basis.locals))
    return Target(extent, radius, criterion, roots, pop, push, drop, seen, children, expand, total)


def total_over_lanes(count: int) -> Callable:
    """``total(values)``: the sum over the lanes of each of ``count`` numbers, the same in all lanes."""
    lines = ["def total(values):", f"    return ({''.join(f'sum_over_lanes(values[{k}]), ' for k in range(count))})"]
    return compute.device_function(function_of("total", lines, sum_over_lanes=sum_over_lanes))
