"""What the walks of regions and of groups share: the extent of a target, its stack of cells, and the acceptance test."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.tree.expansions import Basis
from nbody.forces.tree.gpu_build import CHILD_BITS, CHILD_MASK, LEVELS
from nbody.forces.tree.gpu_moments import function_of

STACK = 32 + 28 * (LEVELS + 1)
"""Room on a stack: an iteration removes as many entries as have 32 cells, at least 4, and adds at most 32, so that it holds
at most 28 entries per level."""

GEOMETRIC = 0.6
"""The opening angle of a target whose accelerations are not known yet."""


class Target(NamedTuple):
    """Device functions for a warp and its target."""

    below: Callable
    """below(bits, lane): the number of bits of the lanes before this one."""
    lowest: Callable
    """lowest(x): the minimum over the lanes."""
    extent: Callable
    """extent(sorted, index, acceleration, first, count, factor, lane): lowest and highest coordinates, and the smallest |a|²
    of the bodies, times ``factor`` squared."""
    pop: Callable
    """pop(stack, chosen, warp, lane, top): takes cells from the stack. (the cell of this lane or -1, the new top)"""
    accepted: Callable
    """accepted(P, r, R, d2, angle, theta, bound): True if a cell may act on the target's expansion."""
    children: Callable
    """children(child, number): the children of a cell as one number, for the stack."""
    total: Callable
    """total(values): the sums over the lanes of the numbers of a local expansion."""


@cache
def target_functions(basis: Basis, wide: type) -> Target:
    """:class:`Target` for expansions, and bodies of the type ``wide``."""
    real = np.float32
    estimate = estimate_of(basis.order)

    @gpu.device_function
    def below(bits, lane):
        return gpu.count_ones(np.uint32(bits) & np.uint32((1 << lane) - 1))

    @gpu.device_function
    def lowest(x):
        for step in (16, 8, 4, 2, 1):
            x = min(x, gpu.shuffle(x, gpu.lane() ^ step))
        return x

    @gpu.device_function
    def extent(sorted_body, index, acceleration, first, count, factor, lane):
        x, y, z, _ = gpu.row(sorted_body, first)
        lx, ly, lz, hx, hy, hz = x, y, z, x, y, z
        a2 = real(3e38)
        for k in range(lane, count, 32):
            x, y, z, _ = gpu.row(sorted_body, first + k)
            lx, ly, lz, hx, hy, hz = min(lx, x), min(ly, y), min(lz, z), max(hx, x), max(hy, y), max(hz, z)
            ax, ay, az, _ = gpu.row(acceleration, index[np.uint32(first + k)])
            ax, ay, az = real(ax) * factor, real(ay) * factor, real(az) * factor
            a2 = min(a2, ax * ax + ay * ay + az * az)
        return (
            lowest(lx), lowest(ly), lowest(lz), -lowest(-hx), -lowest(-hy), -lowest(-hz), lowest(a2)
        )  # fmt: skip

    @gpu.device_function
    def pop(stack, chosen, warp, lane, top):
        entry, cells = np.uint32(0), 0
        if lane < top:
            entry = stack[warp, np.uint32(top - 1 - lane)]
            cells = int(entry >> np.uint32(CHILD_BITS)) + 1
        until = cells
        for step in (1, 2, 4, 8, 16):
            other = gpu.shuffle(until, (lane - step) & 31)
            if lane >= step:
                until += other
        taken = gpu.count_ones(np.uint32(gpu.ballot(lane < top and until <= 32)))
        if lane < taken:
            for c in range(cells):
                chosen[warp, np.uint32(until - cells + c)] = int(entry & np.uint32(CHILD_MASK)) + c
        total = gpu.shuffle(until, taken - 1)
        gpu.sync_warp()
        node = chosen[warp, lane] if lane < total else -1
        return int(node), top - taken

    @gpu.device_function
    def accepted(P, r, R, d2, angle, theta, bound):
        if not d2 > real(1e-30):
            return False
        q = gpu.rsqrt(d2)
        d = d2 * q
        if angle:
            return r + R < theta * d
        if r + R < real(0.9) * d and real(0.4) * d > R:
            return estimate(P, r * q, R * q) * q * q * max(r, R) < bound * (r + R)
        return False

    @gpu.device_function
    def children(child, number):
        return np.uint32(child) | (np.uint32(number - 1) << np.uint32(CHILD_BITS))

    total = total_over_lanes(len(basis.locals))
    return Target(below, lowest, extent, pop, accepted, children, total)


def estimate_of(order: int) -> Callable:
    """``estimate(P, r/d, R/d)``: 8 Σ_k C(p, k) P_k R^(p-k) / d^p, with P as in the array ``norms``."""
    lines = ["def estimate(P, s, t):", "    t1, s1 = t, s"]
    lines += [f"    t{k}, s{k} = t{k - 1} * t, s{k - 1} * s" for k in range(2, order + 1)]
    terms = [f"c{k} * P[{k - 1}] * s{k}" + (f" * t{order - k}" if k < order else "") for k in range(2, order + 1)]
    lines += [f"    return P[0] * (c0 * t{order} + {' + '.join(terms)})"]
    constants: dict[str, Any] = {f"c{k}": np.float32(8 * math.comb(order, k)) for k in range(order + 1)}
    return gpu.device_function(function_of("estimate", lines, **constants))


def total_over_lanes(count: int) -> Callable:
    """``total(values)``: the sum over the lanes of each of ``count`` numbers, the same in all lanes."""

    @gpu.device_function
    def over_lanes(x):
        for step in (16, 8, 4, 2, 1):
            x += gpu.shuffle(x, gpu.lane() ^ step)
        return x

    lines = ["def total(values):", f"    return ({''.join(f'over_lanes(values[{k}]), ' for k in range(count))})"]
    return gpu.device_function(function_of("total", lines, over_lanes=over_lanes))
