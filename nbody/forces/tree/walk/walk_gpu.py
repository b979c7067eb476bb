"""The forces of the tree on the GPU: one warp per group of at most GROUP neighbouring bodies.

A warp walks the tree for all bodies of its group at once, from the cells that its region left (:mod:`.regions_gpu`). It
tests 32 cells per iteration, one per lane. A cell is far (its multipoles act on the local expansion of the group, M2L), near
but small (its quadrupole acts on each body, M2P), a leaf (its bodies act, P2P), or it is opened: its children go onto the
stack. Cells of the first three kinds are collected in lists of 32, so that all lanes work: one cell per lane for M2L, one
body per lane for the others. At the end the sums of the lanes are added, and the expansion is evaluated at each body (L2P).

Warps do not depend on each other, and each adds in a fixed order, so the bits of accelerations are the same every time.
The groups with the most interactions are walked first (:mod:`~nbody.forces.tree.octree.groups_gpu`).

A group with few bodies divides its lanes: ``parts`` sets of lanes hold the same bodies and take different sources, and the
sums of the sets are added at the end.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.forces.gpu_engine import Shape
from nbody.forces.tree.criterion import M2L, M2P, NONE, OPEN, P2P, acceptance_for
from nbody.forces.tree.expansions.operators import Basis
from nbody.forces.tree.octree.cells_gpu import GROUPS, REGIONS, ROOM, TICKET
from nbody.forces.tree.octree.groups_gpu import RUN
from nbody.forces.tree.octree.moments_gpu import device_operators, tuples
from nbody.forces.tree.octree.order_gpu import ACCELERATION, LENGTH, POTENTIAL
from nbody.forces.tree.walk.near_gpu import direct_pairs, on_bodies, quadrupole_pairs, staged_quadrupole
from nbody.forces.tree.walk.target_gpu import STACK, target_functions

GROUP = 128
"""The most bodies of a group."""

WARPS = 1 if compute.SIMULATED else 4
THREADS = 32 * WARPS
RESIDENT = 4
"""Warps per block, and blocks that fit on a multiprocessor: 16 warps with 128 registers per thread."""

ROUNDS = 6
"""The most bodies per lane, in parts of 4 to 32 lanes."""
PLACES = 32 * ROUNDS


class WalkPlan(NamedTuple):
    """What the kernel is compiled for.

    Attributes:
        shape: the law and the precision.
        basis: the expansions.
        geometric: open by the angle instead of by the error.
        keep: write the potential only.
    """

    shape: Shape
    basis: Basis
    geometric: bool
    keep: bool = False


class Phases(NamedTuple):
    """Device functions: the parts of a walk, for a warp and its group. ``near`` and ``some`` are numbers of staged sources;
    ``here`` and ``stage`` are those of :func:`~nbody.forces.tree.walk.near_gpu.on_bodies`."""

    load: Callable
    """load(here, targets, origin): the bodies of a group, relative to the origin, and sums of 0."""
    inherit: Callable
    """inherit(targets, region_first, centre, lane): the expansion of the group's region, the region, and the number of cells
    that it left, -1 if the group begins with the roots. (One lane has the expansion; the others have zeros.)"""
    leaves: Callable
    """leaves(here, stage, queue, leaf, near, last, origin, tree): the bodies of some leaves, 32 at a time; those that are
    left wait, unless it is the ``last`` time. The number of them. ``leaf``: the lanes that have one, and the first body and
    the number of bodies of this lane's."""
    cells: Callable
    """cells(here, stage, near, some, place, tree): the quadrupoles of the cells in a list."""
    results: Callable
    """results(here, targets, acceleration, expansion, centre, width_bits, box): the field at each body."""


@cache
def phases(plan: WalkPlan) -> Phases:
    """:class:`Phases`."""
    shape, basis, keep = plan.shape, plan.basis, plan.keep
    potential, mixed = shape.potential, shape.mixed
    real, wide, f0 = np.float32, np.float64 if mixed else np.float32, np.float32(0)
    ops, target = device_operators(basis), target_functions(basis, wide, plan.geometric)
    kept, local, stage_quadrupole = tuples(len(basis.moments)), tuples(len(basis.locals)), staged_quadrupole(basis)
    direct, quadrupoles = on_bodies(shape, direct_pairs, 4), on_bodies(shape, quadrupole_pairs, 2)

    @compute.device_function
    def load(here, targets, origin):
        (bodies, sums), (warp, lane, _, _, _), (count, _, first), _ = here
        ox, oy, oz = origin
        for k in range(lane, count, 32):
            x, y, z, m = compute.row(targets.sorted, first + k)
            at = np.uint32(k)
            bodies[warp, at, 0], bodies[warp, at, 1] = real(x - ox), real(y - oy)
            bodies[warp, at, 2], bodies[warp, at, 3] = real(z - oz), real(m)
        for k in range(lane, PLACES, 32):
            at = np.uint32(k)
            sums[warp, at, 0], sums[warp, at, 1], sums[warp, at, 2], sums[warp, at, 3] = f0, f0, f0, f0

    @compute.device_function
    def inherit(targets, region_first, centre, lane):
        counts, expansion, left = targets.counts, local.zeros(), -1
        region = targets.region_at[region_first] if region_first >= 0 and counts[REGIONS] <= counts[ROOM] else -1
        if region >= 0:
            left = targets.listed[region]
        if left >= 0 and lane == 0:
            x, y, z, _ = compute.row(targets.centres, region)
            dx, dy, dz = real(x - centre[0]), real(y - centre[1]), real(z - centre[2])
            expansion = ops.l2l(dx, dy, dz, local.load(targets.locals, region))
        return expansion, region, left

    @compute.device_function
    def leaves(here, stage, queue, leaf, near, last, origin, tree):
        (staged, staged_index), (source, done), (found, begin, bodies_here), (ox, oy, oz) = stage, queue, leaf, origin
        _, (warp, lane, _, _, _), (count, _, _), _ = here
        while found != np.uint32(0) or (last and near > 0):
            start, stop = 0, 0
            if found != np.uint32(0):
                first = cuda.ffs(found) - 1
                found &= found - np.uint32(1)
                start = compute.shuffle(begin, first)
                stop = start + compute.shuffle(bodies_here, first)
            flush = start == stop  # the last sources, fewer than 32
            while start < stop or flush:
                take = min(32, stop - start)
                if lane < take:
                    source[warp, np.uint32(near + lane)] = start + lane
                near += take
                start += take
                compute.sync_warp()
                if near >= 32 or flush:
                    at = source[warp, np.uint32(min(lane, near - 1))]
                    x, y, z, m = compute.row(tree.sorted, at)
                    staged[warp, lane, 0], staged[warp, lane, 1] = real(x - ox), real(y - oy)
                    staged[warp, lane, 2], staged[warp, lane, 3] = real(z - oz), real(m) if lane < near else f0
                    if potential:
                        staged_index[warp, lane] = tree.rows[np.uint32(at)]
                    if lane == 0:
                        done[warp] += min(near, 32) * count
                    compute.sync_warp()
                    direct(here, stage)
                    compute.sync_warp()
                    target.drop(source, warp, lane)
                    near = max(near - 32, 0)
                    flush = False
        return near

    @compute.device_function
    def cells(here, stage, near, some, place, tree):
        (staged, _), (origin, nowhere), (warp, lane, _, _, _) = stage, place, here[1]
        if lane < some:
            node = near[warp, np.uint32(lane)]
            x, y, z, _ = compute.row(tree.place, node)
            staged[warp, lane, 0], staged[warp, lane, 1] = real(x - origin[0]), real(y - origin[1])
            staged[warp, lane, 2] = real(z - origin[2])
            stage_quadrupole(staged, warp, np.uint32(lane), kept.load(tree.moments, node))
        else:  # no mass, and not where a body is
            for k in range(3, 12):
                staged[warp, lane, k] = f0
            staged[warp, lane, 0], staged[warp, lane, 1], staged[warp, lane, 2] = nowhere
        compute.sync_warp()
        quadrupoles(here, stage)
        compute.sync_warp()
        target.drop(near, warp, lane)

    @compute.device_function
    def results(here, targets, acceleration, expansion, centre, width_bits, box):
        (bodies, sums), (warp, lane, _, _, _), (count, index, first), _ = here
        gx, gy, gz = centre
        width = 1 << width_bits
        for k in range(lane, count, 32):
            body = np.uint32(k)
            dx, dy, dz = gx - bodies[warp, body, 0], gy - bodies[warp, body, 1], gz - bodies[warp, body, 2]
            ax, ay, az, phi = ops.l2p(dx, dy, dz, expansion, (f0, f0, f0, f0))
            at = np.uint32(((k >> width_bits) << 5) + (k & (width - 1)))
            for _ in range(32 >> width_bits):
                ax += sums[warp, at, 0]
                ay += sums[warp, at, 1]
                az += sums[warp, at, 2]
                phi += sums[warp, at, 3]
                at = np.uint32(at + width)
            i = index[np.uint32(first + k)]
            if not keep:
                acceleration[i, 0] = wide(ax) * wide(box[ACCELERATION])
                acceleration[i, 1] = wide(ay) * wide(box[ACCELERATION])
                acceleration[i, 2] = wide(az) * wide(box[ACCELERATION])
            if potential:
                acceleration[i, 3] = wide(phi) * wide(box[POTENTIAL])

    return Phases(load, inherit, leaves, cells, results)


@compute.device_function
def width_for(count):
    """The binary logarithm of the lanes per part, 2 to 5, for which the pairs need the least time."""
    best, cost = 5, 1 << 20
    for bits in range(5, 1, -1):
        rounds = (count + (1 << bits) - 1) >> bits
        if rounds <= ROUNDS and rounds << bits < cost:
            best, cost = bits, rounds << bits
    return best


@cache
def walk_kernel(plan: WalkPlan) -> Any:
    """``walk(targets, acceleration, tree, length2, reach, error, shift)``.

    ``targets`` and ``tree`` are :class:`~nbody.forces.tree.walk.target_gpu.Targets` and ``Sources``; row rows[k] of
    ``acceleration`` is the result of target k; the source of row i is the target of row i - ``shift``. ``reach``: beyond
    this distance the law is that of the expansions; ``error``: the bound relative to |a|, or the opening angle.
    """
    basis, mixed = plan.basis, plan.shape.mixed
    real, wide, f0, f1 = np.float32, np.float64 if mixed else np.float32, np.float32(0), np.float32(1)
    zero = np.int64(0)  # what takes a literal would be compiled twice: its type is not that of other numbers
    target, phase = target_functions(basis, wide, plan.geometric), phases(plan)
    criterion = acceptance_for(basis.order, compute.rsqrt, compute.device_function)

    @compute.kernel("gpu", **compute.bounded(THREADS, RESIDENT))
    def walk(targets, acceleration, tree, length2_of_run, reach_of_run, error, shift):
        bodies = cuda.shared.array((WARPS, GROUP, 4), real, alignment=16)
        sums = cuda.shared.array((WARPS, PLACES, 4), real, alignment=16)
        bodies_staged = cuda.shared.array((WARPS, 32, 4), real, alignment=16)
        cells_staged = cuda.shared.array((WARPS, 32, 12), real, alignment=16)
        stack = cuda.shared.array((WARPS, STACK), np.uint32)
        chosen = cuda.shared.array((WARPS, 32), np.int32)
        far = cuda.shared.array((WARPS, 64), np.int32)
        near = cuda.shared.array((WARPS, 64), np.int32)
        source = cuda.shared.array((WARPS, 64), np.int32)
        staged_index = cuda.shared.array((WARPS, 32), np.uint32)
        done = cuda.shared.array(WARPS, np.int64)
        box, counts, lists = tree.box, targets.counts, targets.lists
        queue, stage, cell_stage = (source, done), (bodies_staged, staged_index), (cells_staged, staged_index)
        warp, lane = np.uint32(cuda.threadIdx.x // 32), cuda.threadIdx.x & 31
        length2, reach = real(length2_of_run * box[LENGTH] * box[LENGTH]), real(reach_of_run * box[LENGTH])
        factor = f1 / real(box[ACCELERATION]) if real(box[ACCELERATION]) > f0 else f0
        while True:
            ticket = 0
            if lane == 0:
                ticket = cuda.atomic.add(counts, TICKET, 1)
            ticket = compute.shuffle(ticket, 0)
            if ticket >= min(counts[GROUPS], targets.groups.shape[0]):
                break
            first, counted, region_first, _ = compute.row(targets.groups, targets.sequence[np.uint32(ticket)])
            count = abs(counted)

            # --- the group: its box, radius and smallest acceleration ---
            width_bits = width_for(count)
            width = 1 << width_bits
            lanes = warp, lane, lane >> width_bits, width, (count + width - 1) >> width_bits
            here = (bodies, sums), lanes, (count, targets.rows, first), (shift, length2)
            centre, half, a2 = target.extent(targets, acceleration, first, count, factor, lane)
            R = target.radius(targets, first, count, centre, lane)
            angle, theta, bound = target.criterion(a2, tree.norms[0, 0], error)
            # in mixed precision the origin of all coordinates is the group's centre
            origin = centre if mixed else (wide(0), wide(0), wide(0))
            gx, gy, gz = real(centre[0] - origin[0]), real(centre[1] - origin[1]), real(centre[2] - origin[2])
            place = origin, (gx + R + R + f1, gy, gz)
            phase.load(here, targets, origin)
            if lane == 0:
                done[warp] = 0

            # --- where it begins: the cells that its region left, or the roots ---
            expansion, region, left = phase.inherit(targets, region_first, centre, lane)
            far_count, near_count, source_count, top, begun = zero, zero, zero, 0 if left >= 0 else 1, 0
            if top > 0 and lane == 0:
                stack[warp, 0] = target.roots(tree.counts)
            compute.sync_warp()
            while top > 0 or begun < left or far_count > 0 or near_count > 0 or source_count > 0:
                last = top == 0 and begun >= left
                kind, node, begin, bodies_here, children = NONE, -1, 0, 0, np.uint32(0)
                if top > 0:
                    node, top = target.pop(stack, chosen, warp, lane, top)
                elif begun < left:
                    if begun + lane < left:
                        node = lists[lists.shape[0] - 1 - region, np.uint32(begun + lane)]
                    begun += 32
                if node >= 0:
                    P, r, d2, h2, clear, cell = target.seen(tree, node, centre, half, reach)
                    begin, bodies_here, child, child_count = cell
                    if not P[0] > f0:
                        kind = NONE
                    elif clear and criterion.accepted(P, r, R, d2, angle, theta, bound):
                        kind = M2L
                    elif (child_count > 0 or bodies_here > 2) and clear and criterion.small(P, r, h2, angle, theta, bound):
                        kind = M2P
                    elif child_count == 0:
                        kind = P2P
                    else:
                        kind = OPEN
                    children = target.children(child, child_count)
                top = target.push(stack, warp, top, kind == OPEN, children, lane)
                far_count = target.push(far, warp, far_count, kind == M2L, node, lane)
                near_count = target.push(near, warp, near_count, kind == M2P, node, lane)
                found = np.uint32(compute.ballot(kind == P2P))
                compute.sync_warp()
                leaf = found, begin, bodies_here
                source_count = phase.leaves(here, stage, queue, leaf, source_count, last, origin, tree)
                if near_count >= 32 or (last and near_count > 0):
                    some = min(near_count, 32)
                    if lane == 0:
                        done[warp] += some * count
                    phase.cells(here, cell_stage, near, some, place, tree)
                    near_count -= some
                if far_count >= 32 or (last and far_count > 0):
                    some = min(far_count, 32)
                    expansion = target.expand(far, warp, some, tree, centre, length2, expansion, lane)
                    target.drop(far, warp, lane)
                    if lane == 0:
                        done[warp] += some
                    far_count -= some
                compute.sync_warp()

            # --- the sums of the lanes, and the result ---
            expansion = target.total(expansion)
            if lane == 0 and counted > 0:  # two devices may walk this group
                cuda.atomic.add(targets.work, 0, done[warp])
            # If groups share an entry of the costs, any of them may be the last to write it (see groups_gpu).
            cost = np.int32(real(done[warp]) / real(count))
            for each in range(first // RUN + lane, (first + count - 1) // RUN + 1, 32):
                targets.costs[each] = cost
            phase.results(here, targets, acceleration, expansion, (gx, gy, gz), width_bits, box)
            compute.sync_warp()

    return walk
