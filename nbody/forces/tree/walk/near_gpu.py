"""The near sources of a group on the GPU: bodies (P2P) and quadrupoles of cells (M2P) act on each body.

32 sources at a time are staged in shared memory. A lane holds up to four bodies of the group, so that a source is loaded
once for four pairs. The loops are not unrolled: with 16 pairs per iteration the code of the walk did not fit the cache of
instructions, and warps waited for it two thirds of the time (one H200).
"""

from collections.abc import Callable

import numpy as np

from nbody import compute
from nbody.forces.gpu_engine import Shape
from nbody.forces.tree.expansions.operators import Basis
from nbody.forces.tree.expansions.text import function_of
from nbody.forces.tree.options import is_softened


def staged_quadrupole(basis: Basis) -> Callable:
    """``stage(cells, warp, lane, moments)``: 3 S and 3/2 tr S of a cell, S_ij = Σ m x_i x_j, after its centre and mass."""
    place = {n: k for k, n in enumerate(basis.moments)}
    second = [(2, 0, 0), (1, 1, 0), (1, 0, 1), (0, 2, 0), (0, 1, 1), (0, 0, 2)]
    value = {n: f"moments[{place[n]}] * {'six' if 2 in n else 'three'}" if n in place else "zero" for n in second}
    lines = [
        "def stage(cells, warp, lane, moments):",
        f"    xx, yy, zz = {', '.join(value[n] for n in second if 2 in n)}",
    ]
    diagonal = {(2, 0, 0): "xx", (0, 2, 0): "yy", (0, 0, 2): "zz"}
    lines += [f"    cells[warp, lane, {4 + k}] = {diagonal.get(n, value[n])}" for k, n in enumerate(second)]
    lines += ["    cells[warp, lane, 3], cells[warp, lane, 10] = moments[0], half * (xx + yy + zz)"]
    constants = {"six": 6, "three": 3, "zero": 0, "half": 0.5}
    space = {name: np.float32(value) for name, value in constants.items()}
    return compute.device_function(function_of("stage", lines, **space))


def direct_pairs(shape: Shape) -> Callable:
    """``act(total, staged, warp, s, x, y, z, other, length2)``: ``total`` and the force of the staged body s on a body at
    (x, y, z); ``other``: it is not the same body."""
    law, flat, potential = shape.law, shape.flat, shape.potential
    f0 = np.float32(0)

    @compute.device_function
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
    a = u² (e (M + u² (5/2 e·3S·e - 3/2 tr S)) - u² 3S·e) and φ = -u (M + u² (e·3S·e - tr S)/2). (ε is 0 but for Plummer's
    softening: beyond their reach the other laws are Newton's.)"""
    potential, softened = shape.potential, is_softened(shape.softening)
    c52, c13, half = np.float32(2.5), np.float32(1 / 3), np.float32(0.5)

    @compute.device_function
    def act(total, staged, warp, s, x, y, z, other, length2):
        ax, ay, az, phi = total
        dx, dy, dz = staged[warp, s, 0] - x, staged[warp, s, 1] - y, staged[warp, s, 2] - z
        xx, xy, xz, yy = staged[warp, s, 4], staged[warp, s, 5], staged[warp, s, 6], staged[warp, s, 7]
        yz, zz, trace, m = staged[warp, s, 8], staged[warp, s, 9], staged[warp, s, 10], staged[warp, s, 3]
        r2 = dx * dx + dy * dy + dz * dz
        u = compute.rsqrt(r2 + length2 if softened else r2)
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


def on_bodies(shape: Shape, pairs: Callable[[Shape], Callable], most: int) -> Callable:
    """``all(here, staged)``: add the forces of 32 staged sources on the bodies of a group to the sums, for up to ``most``
    bodies per lane at a time.

    ``staged``: the sources, and the index of each; ``here``: the bodies and the sums of each warp; its lanes (the warp, the
    lane, the part of the lane, the lanes per part, and the bodies per lane); its run of bodies (their number, the index of
    all, and the first body); and its law (``shift`` and the length squared). A source is the body itself if its staged index
    is that of the body plus ``shift``.
    """
    act, potential, f0 = pairs(shape), shape.potential, np.float32(0)
    told_apart = potential and pairs is direct_pairs

    def several(bodies_per_lane: int) -> Callable:
        lines = ["def several(b, here, staged):"]
        lines += ["    (bodies, sums), lanes, (count, index, first), (shift, length2) = here"]
        lines += ["    (sources, staged_index), (warp, lane, part, width, parts) = staged, lanes"]
        lines += ["    t, last = lane & (width - one), count - one"]
        each_lane = range(bodies_per_lane)
        for k in each_lane:
            lines += [
                f"    k{k} = uint(min((b + uint({k})) * width + t, last))",
                f"    total{k} = (zero, zero, zero, zero)",
            ]
            lines += [f"    x{k}, y{k}, z{k} = bodies[warp, k{k}, 0], bodies[warp, k{k}, 1], bodies[warp, k{k}, 2]"]
            lines += [f"    own{k} = uint(index[uint(first + k{k})] + shift)"] if told_apart else []
        lines += ["    s = part", "    while s < thirty_two:"]
        for k in each_lane:
            other = f"staged_index[warp, s] != own{k}" if told_apart else "True"
            lines += [f"        total{k} = act(total{k}, sources, warp, s, x{k}, y{k}, z{k}, {other}, length2)"]
        lines += ["        s = uint(s + parts)"]
        for k in each_lane:
            lines += [f"    place = uint((b + uint({k})) * thirty_two + lane)"]
            lines += [f"    sums[warp, place, {c}] += total{k}[{c}]" for c in range(4 if potential else 3)]
        space = {"zero": f0, "one": np.uint32(1), "thirty_two": np.uint32(32), "uint": np.uint32, "act": act}
        return compute.device_function(function_of("several", lines, **space))

    of = {number: several(number) for number in range(1, most + 1)}
    one, two = of[1], of[2]

    @compute.device_function
    def unsigned(here):
        group, (warp, lane, part, width, _), (count, index, first), law = here
        parts = np.uint32(32 // width)
        lanes = np.uint32(warp), np.uint32(lane), np.uint32(part), np.uint32(width), parts
        return group, lanes, (np.uint32(count), index, first), law

    @compute.device_function
    def by_two(here, staged):
        b, rounds, given = 0, here[1][4], unsigned(here)
        while b + 1 < rounds:
            two(np.uint32(b), given, staged)
            b += 2
        if b < rounds:
            one(np.uint32(b), given, staged)

    if most == 2:
        return by_two
    three, four = of[3], of[4]

    @compute.device_function
    def by_four(here, staged):
        b, rounds, given = 0, here[1][4], unsigned(here)
        while b < rounds:
            left = rounds - b
            if left == 1:
                one(np.uint32(b), given, staged)
                b += 1
            elif left == 2:
                two(np.uint32(b), given, staged)
                b += 2
            elif left == 4:
                four(np.uint32(b), given, staged)
                b += 4
            else:
                three(np.uint32(b), given, staged)
                b += 3

    return by_four
