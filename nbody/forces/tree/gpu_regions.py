"""Regions on the GPU: cells of up to some hundred bodies, in which groups share the far part of their walk.

One warp per region walks the tree from the root. Cells that it accepts for all bodies of the region at once act on the
region's expansion. Others are opened while they are larger than the region; then they are left to its groups, in a list.
The groups begin with this list instead of the root (:mod:`.gpu_walk`), and with the region's expansion. If the list is too
long, the groups begin with the root.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from nbody import gpu
from nbody.forces.tree.expansions import Basis
from nbody.forces.tree.gpu_build import REGION_TICKET, REGIONS
from nbody.forces.tree.gpu_moments import device_operators, tuples
from nbody.forces.tree.gpu_target import GEOMETRIC, STACK, target_functions
from nbody.gpu import cuda

LIST = 2048
"""The most cells that a region leaves to its groups."""

WARPS = 1 if gpu.SIMULATED else 4
THREADS = 32 * WARPS
RESIDENT = 4

NOTHING, FAR, LEFT, OPEN = range(4)


@cache
def region_kernel(basis: Basis, wide: type, geometric: bool) -> Any:
    """``walk_regions(regions, counts, nodes, place, norms, moments, sorted, index, acceleration, box, length2, reach, error,
    centres, locals, lists, listed)``: see :func:`nbody.forces.tree.gpu_walk.walk_kernel`; the last four are results."""
    real, f0, f1, half = np.float32, np.float32(0), np.float32(1), wide(0.5)
    ops, target = device_operators(basis), target_functions(basis, wide)
    kept, local, normed = tuples(len(basis.moments)), tuples(len(basis.locals)), tuples(basis.order)

    @gpu.kernel(**gpu.bounded(THREADS, RESIDENT))
    def walk_regions(
        regions, counts, nodes, place, norms, moments, sorted_body, index, acceleration, box, length2_of_run,
        reach_of_run, error, centres, locals_, lists, listed,
    ):  # fmt: skip
        stack = cuda.shared.array((WARPS, STACK), np.uint32)
        chosen = cuda.shared.array((WARPS, 32), np.int32)
        far = cuda.shared.array((WARPS, 64), np.int32)
        warp, lane = np.uint32(cuda.threadIdx.x // 32), cuda.threadIdx.x & 31
        number = min(counts[REGIONS], regions.shape[0])
        length2, reach = real(length2_of_run * box[4] * box[4]), real(reach_of_run * box[4])
        factor = f1 / real(box[6]) if real(box[6]) > f0 else f0
        floor = real(0.01) * norms[0, 0]
        while True:
            ticket = 0
            if lane == 0:
                ticket = cuda.atomic.add(counts, REGION_TICKET, 1)
            ticket = gpu.shuffle(ticket, 0)
            if ticket >= number:
                break
            first, count = regions[ticket, 0], regions[ticket, 1]
            lx, ly, lz, hx, hy, hz, a2 = target.extent(sorted_body, index, acceleration, first, count, factor, lane)
            cx, cy, cz = half * (lx + hx), half * (ly + hy), half * (lz + hz)
            ex, ey, ez = real(hx - cx), real(hy - cy), real(hz - cz)
            R2 = f0
            for k in range(lane, count, 32):
                x, y, z, _ = gpu.row(sorted_body, first + k)
                dx, dy, dz = real(x - cx), real(y - cy), real(z - cz)
                R2 = max(R2, dx * dx + dy * dy + dz * dz)
            R = real(math.sqrt(-target.lowest(-R2)))
            angle = geometric or not a2 > f0
            theta = real(error) if geometric else real(GEOMETRIC)
            bound = real(error) * max(math.sqrt(a2), floor)

            expansion = local.zeros()
            far_count, left, top = 0, 0, 1
            stack[warp, 0] = np.uint32(0)  # one cell, the root
            gpu.sync_warp()
            while top > 0 or far_count > 0:
                last, kind, node, children = top == 0, NOTHING, -1, np.uint32(0)
                if not last:
                    node, top = target.pop(stack, chosen, warp, lane, top)
                if node >= 0:
                    x, y, z, r_wide = gpu.row(place, node)
                    r = real(r_wide)
                    _, _, child, child_count = gpu.row(nodes, node)
                    dx, dy, dz = real(x - cx), real(y - cy), real(z - cz)
                    d2 = dx * dx + dy * dy + dz * dz
                    P = normed.load(norms, node)
                    dx, dy, dz = max(abs(dx) - ex, f0), max(abs(dy) - ey, f0), max(abs(dz) - ez, f0)
                    clear = reach == f0 or dx * dx + dy * dy + dz * dz > (r + reach) * (r + reach)
                    if P[0] > f0:
                        if clear and target.accepted(P, r, R, d2, angle, theta, bound):
                            kind = FAR
                        elif child_count == 0 or r < R:
                            kind = LEFT
                        else:
                            kind = OPEN
                    children = target.children(child, child_count)
                found = gpu.ballot(kind == OPEN)
                if kind == OPEN:
                    stack[warp, np.uint32(top + target.below(found, lane))] = children
                top += gpu.count_ones(np.uint32(found))
                found = gpu.ballot(kind == LEFT)
                if kind == LEFT and left + target.below(found, lane) < LIST:
                    lists[ticket, np.uint32(left + target.below(found, lane))] = node
                left += gpu.count_ones(np.uint32(found))
                found = gpu.ballot(kind == FAR)
                if kind == FAR:
                    far[warp, np.uint32(far_count + target.below(found, lane))] = node
                far_count += gpu.count_ones(np.uint32(found))
                gpu.sync_warp()
                if far_count >= 32 or (last and far_count > 0):
                    here = min(far_count, 32)
                    if lane < here:
                        node = far[warp, lane]
                        x, y, z, _ = gpu.row(place, node)
                        dx, dy, dz = real(x - cx), real(y - cy), real(z - cz)
                        expansion = ops.m2l(dx, dy, dz, length2, kept.load(moments, node), expansion)
                    moved = far[warp, 32 + lane]
                    gpu.sync_warp()
                    far[warp, lane] = moved
                    far_count -= here
                gpu.sync_warp()

            expansion = target.total(expansion)
            if lane == 0:
                centres[ticket, 0], centres[ticket, 1], centres[ticket, 2] = cx, cy, cz
                local.store(locals_, ticket, expansion)
                listed[ticket] = left if left <= LIST else -1
            gpu.sync_warp()

    return walk_regions
