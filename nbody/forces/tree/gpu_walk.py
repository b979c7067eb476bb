"""The forces of the tree on the GPU: one warp per group of at most GROUP neighbouring bodies.

A warp walks the tree for all bodies of its group at once, from the cells that its region left (:mod:`.gpu_regions`). It
tests 32 cells per iteration, one per lane. A cell is far (its multipoles act on the local expansion of the group, M2L), near
but small (its quadrupole acts on each body, M2P), a leaf (its bodies act, P2P), or it is opened: its children go onto the
stack. Cells of the first three kinds are collected in lists of 32, so that all lanes work: one cell per lane for M2L, one
body per lane for the others. At the end the sums of the lanes are added, and the expansion is evaluated at each body (L2P).

Warps do not depend on each other, and each adds in a fixed order, so the bits of accelerations are the same every time.
The groups with the most interactions are walked first (:mod:`.gpu_groups`).

A group with few bodies divides its lanes: ``parts`` sets of lanes hold the same bodies and take different sources, and the
sums of the sets are added at the end.

Acceptance (Dehnen 2014, Comput. Astrophys. Cosmol. 1, 1): with P_n the norms of the multipoles, r and R the radii of source
and target, d the distance of their centres, h the distance of the source's centre from the target's box, a the smallest |a|
of the target's bodies in the evaluation before, but at least 0.01 of total mass / size²:

    M2L:  r + R < 0.9 d,  R < 0.4 d,  8 max(r, R)/(r + R) Σ_k C(p, k) P_k R^(p-k) / d^(p+2) < error · a
    M2P:  r < 0.9 h,  4 P_3/h^5 < error · a
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.forces.gpu_engine import Shape
from nbody.forces.tree.expansions import Basis
from nbody.forces.tree.gpu_build import GROUPS, REGIONS, ROOM, TICKET
from nbody.forces.tree.gpu_groups import RUN
from nbody.forces.tree.gpu_keys import ACCELERATION, LENGTH, POTENTIAL
from nbody.forces.tree.gpu_moments import device_operators, tuples
from nbody.forces.tree.gpu_near import direct_pairs, on_bodies, quadrupole_pairs, staged_quadrupole
from nbody.forces.tree.gpu_target import STACK, target_functions

GROUP = 128
"""The most bodies of a group."""

WARPS = 1 if compute.SIMULATED else 4
THREADS = 32 * WARPS
RESIDENT = 4
"""Warps per block, and blocks that fit on a multiprocessor: 16 warps with 128 registers per thread."""

ROUNDS = 6
"""The most bodies per lane, in parts of 4 to 32 lanes."""
PLACES = 32 * ROUNDS

NOTHING, M2L, M2P, P2P, OPEN = range(5)


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


@cache
def walk_kernel(plan: WalkPlan) -> Any:
    """``walk(counts, groups, sequence, costs, targets, index, acceleration, region_at, centres, locals, lists, listed, work,
    tree_counts, nodes, place, norms, moments, sorted, source_index, box, length2, reach, error, shift)``.

    The first thirteen are the targets: counts and arrays of their :class:`~nbody.forces.tree.gpu_tree.DeviceCells`, and
    the array for the results, whose row of target k is ``index[k]``; ``work`` counts interactions, ``costs`` those per
    body. Then the tree: cells and bodies; the source of row i is the target of row i - ``shift``. ``reach``: beyond this
    distance the law is that of the expansions; ``error``: the bound relative to |a|, or the opening angle.
    """
    shape, basis = plan.shape, plan.basis
    potential, mixed, keep = shape.potential, shape.mixed, plan.keep
    real, wide = np.float32, np.float64 if mixed else np.float32
    ops, target = device_operators(basis), target_functions(basis, wide, plan.geometric)
    kept, local, stage_quadrupole = tuples(len(basis.moments)), tuples(len(basis.locals)), staged_quadrupole(basis)
    f0, f1 = real(0), real(1)
    direct, quadrupoles = on_bodies(shape, direct_pairs, 4), on_bodies(shape, quadrupole_pairs, 2)

    @compute.device_function
    def width_for(count):
        """The binary logarithm of the lanes per part, 2 to 5, for which the pairs need the least time."""
        best, cost = 5, 1 << 20
        for bits in range(5, 1, -1):
            rounds = (count + (1 << bits) - 1) >> bits
            if rounds <= ROUNDS and rounds << bits < cost:
                best, cost = bits, rounds << bits
        return best

    @compute.device_function
    def small(P, r, h2, angle, theta, bound):
        """True if the quadrupole of a cell may act on the bodies."""
        if angle:
            return r * r < theta * theta * h2
        if r * r < real(0.81) * h2:
            u2 = f1 / h2
            u = r * r * u2
            return real(16) * P[0] * P[0] * P[2] * P[2] * u * u * u * u2 * u2 < bound * bound
        return False

    @compute.kernel("gpu", **compute.bounded(THREADS, RESIDENT))
    def walk(
        counts, groups, sequence, costs, targets, index, acceleration, region_at, centres, locals_, lists, listed, work,
        tree_counts, nodes, place, norms, moments, sorted_body, source_index, box, length2_of_run, reach_of_run, error,
        shift,
    ):  # fmt: skip
        bodies = cuda.shared.array((WARPS, GROUP, 4), real, alignment=16)
        sums = cuda.shared.array((WARPS, PLACES, 4), real, alignment=16)
        stage = cuda.shared.array((WARPS, 32, 4), real, alignment=16)
        cells = cuda.shared.array((WARPS, 32, 12), real, alignment=16)
        stack = cuda.shared.array((WARPS, STACK), np.uint32)
        chosen = cuda.shared.array((WARPS, 32), np.int32)
        far = cuda.shared.array((WARPS, 64), np.int32)
        near = cuda.shared.array((WARPS, 64), np.int32)
        source = cuda.shared.array((WARPS, 64), np.int32)
        staged_index = cuda.shared.array((WARPS, 32), np.uint32)
        done = cuda.shared.array(WARPS, np.int64)
        warp, lane = np.uint32(cuda.threadIdx.x // 32), cuda.threadIdx.x & 31
        length2, reach = real(length2_of_run * box[LENGTH] * box[LENGTH]), real(reach_of_run * box[LENGTH])
        factor = f1 / real(box[ACCELERATION]) if real(box[ACCELERATION]) > f0 else f0
        while True:
            ticket = 0
            if lane == 0:
                ticket = cuda.atomic.add(counts, TICKET, 1)
            ticket = compute.shuffle(ticket, 0)
            if ticket >= min(counts[GROUPS], groups.shape[0]):
                break
            first, counted, region_first, _ = compute.row(groups, sequence[np.uint32(ticket)])
            count = abs(counted)

            # --- the group: its box, radius and smallest acceleration ---
            width_bits = width_for(count)
            width = 1 << width_bits
            part, rounds = lane >> width_bits, (count + width - 1) >> width_bits
            cx, cy, cz, ex, ey, ez, a2 = target.extent(targets, index, acceleration, first, count, factor, lane)
            R = target.radius(targets, first, count, cx, cy, cz, lane)
            angle, theta, bound = target.criterion(a2, real(0.01) * norms[0, 0], error)
            # in mixed precision the origin of all coordinates is the group's centre
            ox, oy, oz = (cx, cy, cz) if mixed else (wide(0), wide(0), wide(0))
            gx, gy, gz = real(cx - ox), real(cy - oy), real(cz - oz)
            for k in range(lane, count, 32):
                x, y, z, m = compute.row(targets, first + k)
                at = np.uint32(k)
                bodies[warp, at, 0], bodies[warp, at, 1] = real(x - ox), real(y - oy)
                bodies[warp, at, 2], bodies[warp, at, 3] = real(z - oz), real(m)
            for k in range(lane, PLACES, 32):
                at = np.uint32(k)
                sums[warp, at, 0], sums[warp, at, 1], sums[warp, at, 2], sums[warp, at, 3] = f0, f0, f0, f0
            if lane == 0:
                done[warp] = 0

            # --- where it begins: the cells that its region left, or the roots ---
            expansion = local.zeros()
            far_count, near_count, source_count, top, begun, left = 0, 0, 0, 0, 0, -1
            region = region_at[region_first] if region_first >= 0 and counts[REGIONS] <= counts[ROOM] else -1
            if region >= 0:
                left = listed[region]
            if left >= 0:
                if lane == 0:
                    x, y, z, _ = compute.row(centres, region)
                    expansion = ops.l2l(real(x - cx), real(y - cy), real(z - cz), local.load(locals_, region))
            else:
                top = 1
                if lane == 0:
                    stack[warp, 0] = target.roots(tree_counts)
            compute.sync_warp()
            while top > 0 or begun < left or far_count > 0 or near_count > 0 or source_count > 0:
                last = top == 0 and begun >= left
                kind, node, begin, bodies_here, children = NOTHING, -1, 0, 0, np.uint32(0)
                if top > 0:
                    node, top = target.pop(stack, chosen, warp, lane, top)
                elif begun < left:
                    if begun + lane < left:
                        node = lists[lists.shape[0] - 1 - region, np.uint32(begun + lane)]
                    begun += 32
                if node >= 0:
                    P, r, d2, h2, clear, cell = target.seen(place, nodes, norms, node, cx, cy, cz, ex, ey, ez, reach)
                    begin, bodies_here, child, child_count = cell
                    if not P[0] > f0:
                        kind = NOTHING
                    elif clear and target.accepted(P, r, R, d2, angle, theta, bound):
                        kind = M2L
                    elif (child_count > 0 or bodies_here > 2) and clear and small(P, r, h2, angle, theta, bound):
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

                # --- leaves: their bodies, 32 at a time ---
                while found != np.uint32(0) or (last and source_count > 0):
                    start, stop = 0, 0
                    if found != np.uint32(0):
                        leaf = cuda.ffs(found) - 1
                        found &= found - np.uint32(1)
                        start = compute.shuffle(begin, leaf)
                        stop = start + compute.shuffle(bodies_here, leaf)
                    flush = start == stop  # the last sources, fewer than 32
                    while start < stop or flush:
                        take = min(32, stop - start)
                        if lane < take:
                            source[warp, np.uint32(source_count + lane)] = start + lane
                        source_count += take
                        start += take
                        compute.sync_warp()
                        if source_count >= 32 or flush:
                            at = source[warp, np.uint32(min(lane, source_count - 1))]
                            x, y, z, m = compute.row(sorted_body, at)
                            stage[warp, lane, 0], stage[warp, lane, 1] = real(x - ox), real(y - oy)
                            stage[warp, lane, 2], stage[warp, lane, 3] = (
                                real(z - oz), real(m) if lane < source_count else f0
                            )  # fmt: skip
                            if potential:
                                staged_index[warp, lane] = source_index[np.uint32(at)]
                            if lane == 0:
                                done[warp] += min(source_count, 32) * count
                            compute.sync_warp()
                            direct(
                                bodies, sums, stage, staged_index, warp, lane, part, width, rounds, count, index, first,
                                shift, length2,
                            )  # fmt: skip
                            compute.sync_warp()
                            target.drop(source, warp, lane)
                            source_count = max(source_count - 32, 0)
                            flush = False

                # --- cells that act on each body ---
                if near_count >= 32 or (last and near_count > 0):
                    here = min(near_count, 32)
                    if lane < here:
                        node = near[warp, np.uint32(lane)]
                        x, y, z, _ = compute.row(place, node)
                        cells[warp, lane, 0], cells[warp, lane, 1], cells[warp, lane, 2] = (
                            real(x - ox), real(y - oy), real(z - oz)
                        )  # fmt: skip
                        stage_quadrupole(cells, warp, np.uint32(lane), kept.load(moments, node))
                    else:  # no mass, and not where a body is
                        for k in range(3, 12):
                            cells[warp, lane, k] = f0
                        cells[warp, lane, 0], cells[warp, lane, 1], cells[warp, lane, 2] = gx + R + R + f1, gy, gz
                    if lane == 0:
                        done[warp] += here * count
                    compute.sync_warp()
                    quadrupoles(
                        bodies, sums, cells, staged_index, warp, lane, part, width, rounds, count, index, first, shift,
                        length2,
                    )  # fmt: skip
                    compute.sync_warp()
                    target.drop(near, warp, lane)
                    near_count -= here

                # --- cells that act on the expansion of the group ---
                if far_count >= 32 or (last and far_count > 0):
                    here = min(far_count, 32)
                    expansion = target.expand(far, warp, here, place, moments, cx, cy, cz, length2, expansion, lane)
                    target.drop(far, warp, lane)
                    if lane == 0:
                        done[warp] += here
                    far_count -= here
                compute.sync_warp()

            # --- the sums of the lanes, and the result ---
            expansion = target.total(expansion)
            if lane == 0 and counted > 0:  # two devices may walk this group
                cuda.atomic.add(work, 0, done[warp])
            # If groups share an entry of the costs, any of them may be the last to write it (see gpu_groups).
            cost = np.int32(real(done[warp]) / real(count))
            for run in range(first // RUN + lane, (first + count - 1) // RUN + 1, 32):
                costs[run] = cost
            for k in range(lane, count, 32):
                result = (f0, f0, f0, f0)
                mine = np.uint32(k)
                dx, dy, dz = gx - bodies[warp, mine, 0], gy - bodies[warp, mine, 1], gz - bodies[warp, mine, 2]
                ax, ay, az, phi = ops.l2p(dx, dy, dz, expansion, result)
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
            compute.sync_warp()

    return walk
