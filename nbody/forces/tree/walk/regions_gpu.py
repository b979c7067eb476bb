"""Regions on the GPU: cells of up to some hundred bodies, in which groups share the far part of their walk.

One warp per region walks the tree from the root. Cells that it accepts for all bodies of the region at once act on the
region's expansion. Others are opened while they are larger than the region; then they are left to its groups, in a list.
The groups begin with this list instead of the root (:mod:`.walk_gpu`), and with the region's expansion. If the list is too
long, the groups begin with the root; and all groups do if the lists of all regions do not fit
(:mod:`~nbody.forces.tree.memory_gpu`).
"""

from functools import cache
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.forces.tree.criterion import acceptance_for
from nbody.forces.tree.expansions.operators import Basis
from nbody.forces.tree.octree.cells_gpu import REGION_TICKET, REGIONS, ROOM
from nbody.forces.tree.octree.moments_gpu import tuples
from nbody.forces.tree.octree.order_gpu import ACCELERATION, LENGTH
from nbody.forces.tree.walk.target_gpu import STACK, target_functions

LIST = 2048
"""The most cells that a region leaves to its groups."""

WARPS = 1 if compute.SIMULATED else 4
THREADS = 32 * WARPS
RESIDENT = 4

NOTHING, FAR, LEFT, OPEN = range(4)


@cache
def region_kernel(basis: Basis, wide: type, geometric: bool) -> Any:
    """``walk_regions(targets, acceleration, tree, length2, reach, error)``: the arguments of
    :func:`~nbody.forces.tree.walk.walk_gpu.walk_kernel`."""
    target, real, f0, f1 = target_functions(basis, wide, geometric), np.float32, np.float32(0), np.float32(1)
    local = tuples(len(basis.locals))
    accepted = acceptance_for(basis.order, compute.rsqrt, compute.device_function).accepted

    @compute.kernel("gpu", **compute.bounded(THREADS, RESIDENT))
    def walk_regions(targets, acceleration, tree, length2_of_run, reach_of_run, error):
        stack = cuda.shared.array((WARPS, STACK), np.uint32)
        chosen = cuda.shared.array((WARPS, 32), np.int32)
        far = cuda.shared.array((WARPS, 64), np.int32)
        warp, lane = np.uint32(cuda.threadIdx.x // 32), cuda.threadIdx.x & 31
        box, counts, regions, lists = tree.box, targets.counts, targets.regions, targets.lists
        length2, reach = real(length2_of_run * box[LENGTH] * box[LENGTH]), real(reach_of_run * box[LENGTH])
        factor = f1 / real(box[ACCELERATION]) if real(box[ACCELERATION]) > f0 else f0
        while True:
            ticket = 0
            if lane == 0:
                ticket = cuda.atomic.add(counts, REGION_TICKET, 1)
            ticket = compute.shuffle(ticket, 0)
            if ticket >= counts[REGIONS] or counts[REGIONS] > counts[ROOM]:
                break
            first, counted, row = regions[ticket, 0], regions[ticket, 1], lists.shape[0] - 1 - ticket
            count = abs(counted)
            centre, half, a2 = target.extent(targets, acceleration, first, count, factor, lane)
            R = target.radius(targets, first, count, centre, lane)
            angle, theta, bound = target.criterion(a2, tree.norms[0, 0], error)
            expansion = local.zeros()
            far_count, left, top, done = 0, 0, 1, 0
            if lane == 0:
                stack[warp, 0] = target.roots(tree.counts)
            compute.sync_warp()
            while top > 0 or far_count > 0:
                last, kind, node, children = top == 0, NOTHING, -1, np.uint32(0)
                if not last:
                    node, top = target.pop(stack, chosen, warp, lane, top)
                if node >= 0:
                    P, r, d2, _, clear, cell = target.seen(tree, node, centre, half, reach)
                    if P[0] > f0:
                        if clear and accepted(P, r, R, d2, angle, theta, bound):
                            kind = FAR
                        elif cell[3] == 0 or r < R:
                            kind = LEFT
                        else:
                            kind = OPEN
                    children = target.children(cell[2], cell[3])
                top = target.push(stack, warp, top, kind == OPEN, children, lane)
                left = target.push(lists, row, left, kind == LEFT, node, lane)
                far_count = target.push(far, warp, far_count, kind == FAR, node, lane)
                compute.sync_warp()
                if far_count >= 32 or (last and far_count > 0):
                    here = min(far_count, 32)
                    expansion = target.expand(far, warp, here, tree, centre, length2, expansion, lane)
                    target.drop(far, warp, lane)
                    far_count -= here
                    done += here
                compute.sync_warp()

            expansion = target.total(expansion)
            if lane == 0:
                targets.centres[ticket, 0], targets.centres[ticket, 1], targets.centres[ticket, 2] = centre
                local.store(targets.locals, ticket, expansion)
                targets.listed[ticket] = left if left <= LIST else -1
                if counted > 0:  # two devices may walk this region
                    cuda.atomic.add(targets.work, 0, np.int64(done))
            compute.sync_warp()

    return walk_regions
