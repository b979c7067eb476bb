"""The forces of the tree on the GPU: one warp per group of at most GROUP neighbouring bodies.

A warp walks the tree from the root for all bodies of its group at once. It tests 32 cells per iteration, one per lane. A
cell is far (its multipoles are added to the local expansion of the group, M2L), near but small (its quadrupole acts on each
body, M2P), a leaf (its bodies act, P2P), or it is opened: its children go onto the stack. Cells of the first three kinds
are collected in lists of 32, so that all lanes work: one cell per lane for M2L, one body per lane for the others. At the
end the sums of the lanes are added, and the expansion is evaluated at each body (L2P).

Nothing is written but the accelerations; warps do not depend on each other, and each adds in a fixed order, so the bits are
the same every time. The stack cannot overflow: an iteration removes as many entries as have 32 cells, at least 4, and adds
at most 32, so it holds at most 28 per level.

A group with few bodies divides its lanes: ``parts`` sets of lanes hold the same bodies and take different sources, and the
sums of the sets are added at the end.

Acceptance: Dehnen 2014 (Comput. Astrophys. Cosmol. 1, 1), as in TREE: with P_n the norms of the multipoles, r and R the radii
of source and group, d the distance of their centres, h the distance of the source's centre from the group's box, a the
smallest |a| of the group's bodies in the evaluation before:

    M2L:  r + R < 0.9 d,  R < 0.4 d,  8 max(r, R)/(r + R) Σ_k C(p, k) P_k R^(p-k) / d^(p+2) < error · a
    M2P:  r < 0.9 h,  4 P_3/h^5 < error · a
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.direct.gpu_engine import Shape
from nbody.forces.tree.expansions import Basis
from nbody.forces.tree.gpu_build import CHILD_BITS, CHILD_MASK, GROUPS, LEVELS, TICKET
from nbody.forces.tree.gpu_moments import device_operators, function_of, tuples
from nbody.gpu import cuda

GROUP = 128
"""The most bodies of a group."""

WARPS = 1 if gpu.SIMULATED else 4
THREADS = 32 * WARPS
RESIDENT = 4
"""Warps per block, and blocks that fit on a multiprocessor: 16 warps with 128 registers per thread."""

ROUNDS = 6
"""The most bodies per lane: a group of n bodies is divided into parts of 32/s lanes such that n s ≤ 32 ROUNDS."""
PLACES = 32 * ROUNDS

STACK = 32 + 28 * (LEVELS + 1)
GEOMETRIC = 0.6
"""The opening angle of a group whose accelerations are not known yet."""

NOTHING, M2L, M2P, P2P, OPEN = range(5)


class Plan(NamedTuple):
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


def estimate_of(order: int) -> Callable:
    """``estimate(P, r/d, R/d)``: 8 Σ_k C(p, k) P_k R^(p-k) / d^p, with P as in the array ``norms``."""
    lines = ["def estimate(P, s, t):", "    t1, s1 = t, s"]
    lines += [f"    t{k}, s{k} = t{k - 1} * t, s{k - 1} * s" for k in range(2, order + 1)]
    terms = [f"c{k} * P[{k - 1}] * s{k}" + (f" * t{order - k}" if k < order else "") for k in range(2, order + 1)]
    lines += [f"    return P[0] * (c0 * t{order} + {' + '.join(terms)})"]
    constants = {f"c{k}": np.float32(8 * math.comb(order, k)) for k in range(order + 1)}
    return gpu.device_function(function_of("estimate", lines, **constants))


def staged_quadrupole(basis: Basis) -> Callable:
    """``stage(cells, warp, lane, moments)``: 3 S and 3/2 tr S of a cell, S_ij = Σ m x_i x_j, after its centre and mass."""
    place = {n: k for k, n in enumerate(basis.moments)}
    second = [(2, 0, 0), (1, 1, 0), (1, 0, 1), (0, 2, 0), (0, 1, 1), (0, 0, 2)]
    value = {n: f"moments[{place[n]}] * {'six' if 2 in n else 'three'}" if n in place else "zero" for n in second}
    lines = ["def stage(cells, warp, lane, moments):", f"    xx, yy, zz = {', '.join(value[n] for n in second if 2 in n)}"]
    others = {(2, 0, 0): "xx", (0, 2, 0): "yy", (0, 0, 2): "zz"}
    lines += [f"    cells[warp, lane, {4 + k}] = {others.get(n, value[n])}" for k, n in enumerate(second)]
    lines += ["    cells[warp, lane, 3], cells[warp, lane, 10] = moments[0], half * (xx + yy + zz)"]
    constants = {"six": 6, "three": 3, "zero": 0, "half": 0.5}
    space = {name: np.float32(value) for name, value in constants.items()}
    return gpu.device_function(function_of("stage", lines, **space))


def direct_pairs(shape: Shape) -> Callable:
    """``act(total, staged, warp, s, x, y, z, other, length2)``: ``total`` and the force of the staged body s on a body at
    (x, y, z); ``other``: it is not the same body."""
    law, flat, potential = shape.law, shape.flat, shape.potential
    f0 = np.float32(0)

    @gpu.device_function
    def act(total, staged, warp, s, x, y, z, other, length2):
        ax, ay, az, phi = total
        dx, dy, dz = staged[warp, s, 0] - x, staged[warp, s, 1] - y, staged[warp, s, 2] - z
        m = staged[warp, s, 3]
        f, u = law(dx, dy, dz, length2)
        f *= m
        ax += f * dx
        ay += f * dy
        if not flat:
            az += f * dz
        if potential and other and m > f0:
            phi -= u * m
        return ax, ay, az, phi

    return act


def quadrupole_pairs(shape: Shape) -> Callable:
    """``act(…)``: the same for a staged cell: with e = d u, u = 1/√(d² + ε²), S as in :func:`staged_quadrupole`,
    a = u² (e (M + u² (5/2 e·3S·e - 3/2 tr S)) - u² 3S·e) and φ = -u (M + u² (e·3S·e - tr S)/2)."""
    potential = shape.potential
    c52, c13, half = np.float32(2.5), np.float32(1 / 3), np.float32(0.5)

    @gpu.device_function
    def act(total, staged, warp, s, x, y, z, other, length2):
        ax, ay, az, phi = total
        dx, dy, dz = staged[warp, s, 0] - x, staged[warp, s, 1] - y, staged[warp, s, 2] - z
        xx, xy, xz, yy = staged[warp, s, 4], staged[warp, s, 5], staged[warp, s, 6], staged[warp, s, 7]
        yz, zz, trace, m = staged[warp, s, 8], staged[warp, s, 9], staged[warp, s, 10], staged[warp, s, 3]
        u = gpu.rsqrt(dx * dx + dy * dy + dz * dz + length2)
        u2 = u * u
        dx, dy, dz = dx * u, dy * u, dz * u
        sx, sy, sz = xx * dx + xy * dy + xz * dz, xy * dx + yy * dy + yz * dz, xz * dx + yz * dy + zz * dz
        ss = sx * dx + sy * dy + sz * dz
        radial, tensor = u2 * (u2 * (c52 * ss - trace) + m), u2 * u2
        ax += radial * dx - tensor * sx
        ay += radial * dy - tensor * sy
        az += radial * dz - tensor * sz
        if potential:
            phi -= u * (m + u2 * (half * ss - c13 * trace))
        return ax, ay, az, phi

    return act


def on_bodies(shape: Shape, pairs: Callable[[Shape], Callable]) -> Callable:
    """``all(bodies, sums, staged, source, warp, lane, parts, rounds, count, first, length2)``: add the forces of 32 staged
    sources on the bodies of a group to the sums, for up to four bodies per lane at a time, so that a source is loaded once
    for four pairs."""
    act, potential, f0 = pairs(shape), shape.potential, np.float32(0)

    def several(bodies_per_lane: int) -> Callable:
        lines = ["def several(b, bodies, sums, staged, source, warp, lane, parts, count, first, length2):"]
        lines += ["    width = thirty_two // parts", "    part, t, last = lane // width, lane % width, count - one"]
        here = range(bodies_per_lane)
        for k in here:
            lines += [f"    k{k} = min((b + uint({k})) * width + t, last)", f"    total{k} = (zero, zero, zero, zero)"]
            lines += [f"    x{k}, y{k}, z{k} = bodies[warp, k{k}, 0], bodies[warp, k{k}, 1], bodies[warp, k{k}, 2]"]
        lines += ["    s = part", "    while s < thirty_two:"]
        for _ in range(4):
            for k in here:
                other = f"source[warp, s] != first + k{k}" if potential else "True"
                lines += [f"        total{k} = act(total{k}, staged, warp, s, x{k}, y{k}, z{k}, {other}, length2)"]
            lines += ["        s = uint(s + parts)"]
        for k in here:
            lines += [f"    place = (b + uint({k})) * thirty_two + lane"]
            lines += [f"    sums[warp, place, {c}] += total{k}[{c}]" for c in range(4 if potential else 3)]
        space = {"zero": f0, "one": np.uint32(1), "thirty_two": np.uint32(32), "uint": np.uint32, "act": act}
        return gpu.device_function(function_of("several", lines, **space))

    one, two, three, four = (several(k) for k in (1, 2, 3, 4))

    @gpu.device_function
    def all_bodies(bodies, sums, staged, source, warp, lane, parts, rounds, count, first, length2):
        b = 0
        w, t, s, n = np.uint32(warp), np.uint32(lane), np.uint32(parts), np.uint32(count)
        while b < rounds:
            left = rounds - b
            if left == 1:
                one(np.uint32(b), bodies, sums, staged, source, w, t, s, n, first, length2)
                b += 1
            elif left == 2:
                two(np.uint32(b), bodies, sums, staged, source, w, t, s, n, first, length2)
                b += 2
            elif left == 4:
                four(np.uint32(b), bodies, sums, staged, source, w, t, s, n, first, length2)
                b += 4
            else:
                three(np.uint32(b), bodies, sums, staged, source, w, t, s, n, first, length2)
                b += 3

    return all_bodies


def total_over_lanes(count: int) -> Callable:
    """``total(values)``: the sum over the lanes of each of ``count`` numbers, the same in all lanes."""

    @gpu.device_function
    def over_lanes(x):
        for step in (16, 8, 4, 2, 1):
            x += gpu.shuffle(x, (cuda.threadIdx.x & 31) ^ step)
        return x

    lines = ["def total(values):", f"    return ({''.join(f'over_lanes(values[{k}]), ' for k in range(count))})"]
    return gpu.device_function(function_of("total", lines, over_lanes=over_lanes))


@cache
def walk_kernel(plan: Plan) -> Any:
    """``walk(groups, counts, nodes, place, norms, moments, sorted, index, acceleration, box, length2, reach, error)``.

    ``error`` is the bound relative to |a|, or the opening angle; ``reach``: beyond this distance the law is that of the
    expansions.
    """
    shape, basis = plan.shape, plan.basis
    potential, mixed = shape.potential, shape.mixed
    wide = np.float64 if mixed else np.float32
    real = np.float32
    p = basis.order
    ops = device_operators(basis)
    kept, local, normed = tuples(len(basis.moments)), tuples(len(basis.locals)), tuples(p)
    softened, geometric = basis.softened, plan.geometric
    out, keep = wide, plan.keep
    f0, f1 = real(0), real(1)
    estimate, stage_quadrupole, total_of = estimate_of(p), staged_quadrupole(basis), total_over_lanes(len(basis.locals))

    @gpu.device_function
    def below(bits, lane):
        """The number of bits of the lanes before this one."""
        return cuda.popc(np.uint32(bits) & np.uint32((1 << lane) - 1))

    @gpu.device_function
    def lowest(x):
        """The minimum over the lanes."""
        for step in (16, 8, 4, 2, 1):
            x = min(x, gpu.shuffle(x, (cuda.threadIdx.x & 31) ^ step))
        return x

    direct, quadrupoles = on_bodies(shape, direct_pairs), on_bodies(shape, quadrupole_pairs)

    @gpu.kernel(**gpu.bounded(THREADS, RESIDENT))
    def walk(
        groups, counts, nodes, place, norms, moments, sorted_body, index, acceleration, box, length2_of_run, reach_of_run,
        error,
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
        warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x & 31
        number_of_groups = counts[GROUPS]
        length2, reach = real(length2_of_run * box[4] * box[4]), real(reach_of_run * box[4])
        a_factor = real(box[6])
        a_inverse = f1 / a_factor if a_factor > f0 else f0
        floor = real(0.01) * norms[0, 0]
        while True:
            ticket = 0
            if lane == 0:
                ticket = cuda.atomic.add(counts, TICKET, 1)
            ticket = gpu.shuffle(ticket, 0)
            if ticket >= number_of_groups:
                break
            first, count = groups[ticket, 0], groups[ticket, 1]

            # --- the group: its box, radius and smallest acceleration ---
            parts = 1
            while parts < 8 and count * 2 * parts <= PLACES:
                parts *= 2
            best, cost = 1, 1 << 20
            s = 1
            while s <= parts:
                here = (-(-count * s // 32)) * (32 // s)
                if here < cost:
                    best, cost = s, here
                s *= 2
            parts = best
            rounds = -(-count * parts // 32)
            x, y, z, _ = gpu.row(sorted_body, first)
            lx, ly, lz, hx, hy, hz = x, y, z, x, y, z
            a2 = real(3e38)
            for k in range(lane, count, 32):
                x, y, z, _ = gpu.row(sorted_body, first + k)
                lx, ly, lz, hx, hy, hz = min(lx, x), min(ly, y), min(lz, z), max(hx, x), max(hy, y), max(hz, z)
                ax, ay, az, _ = gpu.row(acceleration, index[first + k])
                ax, ay, az = real(ax) * a_inverse, real(ay) * a_inverse, real(az) * a_inverse
                a2 = min(a2, ax * ax + ay * ay + az * az)
            lx, ly, lz, hx, hy, hz = lowest(lx), lowest(ly), lowest(lz), -lowest(-hx), -lowest(-hy), -lowest(-hz)
            a2 = lowest(a2)
            half = wide(0.5)
            cx, cy, cz = half * (lx + hx), half * (ly + hy), half * (lz + hz)
            ex, ey, ez = real(hx - cx), real(hy - cy), real(hz - cz)
            # in mixed precision the origin of all coordinates is the group's centre
            ox, oy, oz = (cx, cy, cz) if mixed else (wide(0), wide(0), wide(0))
            gx, gy, gz = real(cx - ox), real(cy - oy), real(cz - oz)
            R = f0
            for k in range(lane, count, 32):
                x, y, z, m = gpu.row(sorted_body, first + k)
                dx, dy, dz = real(x - ox), real(y - oy), real(z - oz)
                bodies[warp, k, 0], bodies[warp, k, 1], bodies[warp, k, 2], bodies[warp, k, 3] = dx, dy, dz, real(m)
                dx, dy, dz = dx - gx, dy - gy, dz - gz
                R = max(R, dx * dx + dy * dy + dz * dz)
            R = math.sqrt(-lowest(-R))
            for k in range(lane, PLACES, 32):
                sums[warp, k, 0], sums[warp, k, 1], sums[warp, k, 2], sums[warp, k, 3] = f0, f0, f0, f0
            angle = geometric or not a2 > f0
            theta = real(error) if geometric else real(GEOMETRIC)
            bound = real(error) * max(math.sqrt(a2), floor)

            # --- the walk ---
            expansion = local.zeros()
            far_count, near_count, source_count, top = 0, 0, 0, 1
            stack[warp, 0] = np.uint32(0)  # one cell, the root
            gpu.sync_warp()
            while top > 0 or far_count > 0 or near_count > 0 or source_count > 0:
                last = top == 0
                kind, node, begin, bodies_here, children = NOTHING, 0, 0, 0, np.uint32(0)
                if not last:
                    entry, cells_here = np.uint32(0), 0
                    if lane < top:
                        entry = stack[warp, top - 1 - lane]
                        cells_here = int(entry >> np.uint32(CHILD_BITS)) + 1
                    until = cells_here
                    for step in (1, 2, 4, 8, 16):
                        other = gpu.shuffle(until, (lane - step) & 31)
                        if lane >= step:
                            until += other
                    taken = cuda.popc(np.uint32(gpu.ballot(lane < top and until <= 32)))
                    if lane < taken:
                        for c in range(cells_here):
                            chosen[warp, until - cells_here + c] = int(entry & np.uint32(CHILD_MASK)) + c
                    total = gpu.shuffle(until, taken - 1)
                    top -= taken
                    gpu.sync_warp()
                    if lane < total:
                        node = chosen[warp, lane]
                        x, y, z, r_wide = gpu.row(place, node)
                        r = real(r_wide)
                        begin, bodies_here, child, child_count = gpu.row(nodes, node)
                        dx, dy, dz = real(x - cx), real(y - cy), real(z - cz)
                        d2 = dx * dx + dy * dy + dz * dz
                        d2 = max(d2, real(1e-36))
                        q = gpu.rsqrt(d2)
                        d = d2 * q
                        dx, dy, dz = max(abs(dx) - ex, f0), max(abs(dy) - ey, f0), max(abs(dz) - ez, f0)
                        h2 = dx * dx + dy * dy + dz * dz
                        P = normed.load(norms, node)
                        clear = reach == f0 or h2 > (r + reach) * (r + reach)
                        good, close = False, False
                        if angle:
                            good = d2 > real(1e-30) and r + R < theta * d
                            close = r * r < theta * theta * h2
                        else:
                            if d2 > real(1e-30) and r + R < real(0.9) * d and R < real(0.4) * d:
                                good = estimate(P, r * q, R * q) * q * q * max(r, R) < bound * (r + R)
                            if r * r < real(0.81) * h2:
                                u2 = f1 / h2
                                u = r * r * u2
                                close = real(16) * P[0] * P[0] * P[2] * P[2] * u * u * u * u2 * u2 < bound * bound
                        if not P[0] > f0:
                            kind = NOTHING
                        elif good and clear:
                            kind = M2L
                        elif close and clear and (child_count > 0 or bodies_here > 2):
                            kind = M2P
                        elif child_count == 0:
                            kind = P2P
                        else:
                            kind = OPEN
                        children = np.uint32(child) | (np.uint32(child_count - 1) << np.uint32(CHILD_BITS))

                # --- sort the cells into the lists ---
                found = gpu.ballot(kind == OPEN)
                if kind == OPEN:
                    stack[warp, top + below(found, lane)] = children
                top += cuda.popc(np.uint32(found))
                found = gpu.ballot(kind == M2L)
                if kind == M2L:
                    far[warp, far_count + below(found, lane)] = node
                far_count += cuda.popc(np.uint32(found))
                found = gpu.ballot(kind == M2P)
                if kind == M2P:
                    near[warp, near_count + below(found, lane)] = node
                near_count += cuda.popc(np.uint32(found))
                found = np.uint32(gpu.ballot(kind == P2P))
                gpu.sync_warp()

                # --- leaves: their bodies, 32 at a time ---
                while found != np.uint32(0) or (last and source_count > 0):
                    start, stop = 0, 0
                    if found != np.uint32(0):
                        leaf = cuda.ffs(found) - 1
                        found &= found - np.uint32(1)
                        start = gpu.shuffle(begin, leaf)
                        stop = start + gpu.shuffle(bodies_here, leaf)
                    flush = start == stop  # the last sources, fewer than 32
                    while start < stop or flush:
                        take = min(32, stop - start)
                        if lane < take:
                            source[warp, source_count + lane] = start + lane
                        source_count += take
                        start += take
                        gpu.sync_warp()
                        if source_count >= 32 or flush:
                            x, y, z, m = gpu.row(sorted_body, source[warp, min(lane, source_count - 1)])
                            stage[warp, lane, 0], stage[warp, lane, 1] = real(x - ox), real(y - oy)
                            stage[warp, lane, 2], stage[warp, lane, 3] = (
                                real(z - oz), real(m) if lane < source_count else f0
                            )  # fmt: skip
                            gpu.sync_warp()
                            direct(bodies, sums, stage, source, warp, lane, parts, rounds, count, first, length2)
                            gpu.sync_warp()
                            moved = source[warp, 32 + lane]
                            gpu.sync_warp()
                            source[warp, lane] = moved
                            source_count = max(source_count - 32, 0)
                            flush = False

                # --- cells that act on each body ---
                if near_count >= 32 or (last and near_count > 0):
                    here = min(near_count, 32)
                    if lane < here:
                        node = near[warp, lane]
                        x, y, z, _ = gpu.row(place, node)
                        M = kept.load(moments, node)
                        cells[warp, lane, 0], cells[warp, lane, 1], cells[warp, lane, 2] = (
                            real(x - ox), real(y - oy), real(z - oz)
                        )  # fmt: skip
                        stage_quadrupole(cells, warp, lane, M)
                    else:  # no mass, and not where a body is
                        for k in range(3, 12):
                            cells[warp, lane, k] = f0
                        cells[warp, lane, 0], cells[warp, lane, 1], cells[warp, lane, 2] = gx + R + R + f1, gy, gz
                    gpu.sync_warp()
                    quadrupoles(bodies, sums, cells, near, warp, lane, parts, rounds, count, first, length2)
                    gpu.sync_warp()
                    moved = near[warp, 32 + lane]
                    gpu.sync_warp()
                    near[warp, lane] = moved
                    near_count -= here

                # --- cells that act on the expansion of the group ---
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

            # --- the sums of the lanes, and the result ---
            expansion = total_of(expansion)
            width = 32 // parts
            for k in range(lane, count, 32):
                result = (f0, f0, f0, f0)
                dx, dy, dz = gx - bodies[warp, k, 0], gy - bodies[warp, k, 1], gz - bodies[warp, k, 2]
                result = ops.l2p(dx, dy, dz, expansion, result)
                ax, ay, az, phi = result
                at = k // width * 32 + k % width
                for part in range(parts):
                    ax += sums[warp, at + part * width, 0]
                    ay += sums[warp, at + part * width, 1]
                    az += sums[warp, at + part * width, 2]
                    phi += sums[warp, at + part * width, 3]
                i = index[first + k]
                if not keep:
                    acceleration[i, 0] = out(ax) * out(box[6])
                    acceleration[i, 1] = out(ay) * out(box[6])
                    acceleration[i, 2] = out(az) * out(box[6])
                if potential:
                    acceleration[i, 3] = out(phi) * out(box[7])
            gpu.sync_warp()

    return walk
