"""Sources near a group of bodies: sums over pairs (P2P), and over the moments of cells on each body (M2P).

The sources are first copied side by side (staged), a multiple of LANES of them, so that all loops are vector loops.
"""

from collections.abc import Callable

import numpy as np
from numba import njit

from nbody.forces.direct.cpu_pairs import missing_factor
from nbody.forces.direct.cpu_roots import FAST, compile_for_vectors, roots
from nbody.forces.tree.formulas import m2p_text
from nbody.forces.tree.lanes import LANES, columns_of, copy_lanes
from nbody.forces.tree.pieces import Variant, compiled, piece
from nbody.forces.tree.text import Text, name
from nbody.law import pair_law

STAGED_BODIES = 4096
"""The most bodies that are staged at once: 64 KiB in float32."""

STAGED_CELLS = 256
"""The most cells that are staged at once."""


@njit(error_model="numpy", inline="always")
def stage_bodies(first, count, bodies, staged, number):
    """Append bodies to the staged ones, at most as many as fit; returns the numbers of bodies taken and
    staged. Both matrices hold LANES more."""
    taken = min(count, STAGED_BODIES - number)
    for j in range(0, taken, LANES):
        for k in range(4):
            copy_lanes(staged, k, number + j, bodies, k, first + j)
    return taken, number + taken


@njit(error_model="numpy")
def pad_bodies(staged, number):
    """Add massless bodies to the staged ones up to a multiple of LANES; returns the number of blocks."""
    blocks = -(-number // LANES)
    for j in range(number, blocks * LANES):
        for k in range(3):
            staged[k, j] = staged[k, 0]
        staged[3, j] = 0
    return blocks


def _pairs(variant: Variant) -> Callable:
    """``pairs(count, targets, blocks, staged, length2, sums)``: add the staged bodies' field at the targets (4, …) to
    ``sums`` (4, …): ax, ay, az, or φ. Four targets per pass. A body in the same place adds nothing to the acceleration."""
    real, flat, potential = variant.real, variant.dimensions == 2, variant.potential
    rsqrt, inverse_cube, _ = roots(real)
    law = pair_law(variant.law, variant.dimensions, rsqrt, njit(fastmath=FAST, forceinline=True), inverse_cube)
    zero, factor = real(0), real(missing_factor(real))

    @njit(fastmath=FAST, error_model="numpy")
    def accelerations(count, targets, blocks, staged, length2, sums):
        compile_for_vectors()
        for i in range(0, count, 4):
            x0, y0, z0 = targets[0, i], targets[1, i], targets[2, i]
            x1, y1, z1 = targets[0, i + 1], targets[1, i + 1], targets[2, i + 1]
            x2, y2, z2 = targets[0, i + 2], targets[1, i + 2], targets[2, i + 2]
            x3, y3, z3 = targets[0, i + 3], targets[1, i + 3], targets[2, i + 3]
            ax0, ay0, az0, ax1, ay1, az1 = zero, zero, zero, zero, zero, zero
            ax2, ay2, az2, ax3, ay3, az3 = zero, zero, zero, zero, zero, zero
            for j in range(blocks * LANES):
                x, y, m = staged[0, j], staged[1, j], staged[3, j]
                z = zero if flat else staged[2, j]
                dx, dy, dz = x - x0, y - y0, z - z0
                w = m * law(dx, dy, dz, length2)[0]
                ax0 += w * dx
                ay0 += w * dy
                az0 += w * dz
                dx, dy, dz = x - x1, y - y1, z - z1
                w = m * law(dx, dy, dz, length2)[0]
                ax1 += w * dx
                ay1 += w * dy
                az1 += w * dz
                dx, dy, dz = x - x2, y - y2, z - z2
                w = m * law(dx, dy, dz, length2)[0]
                ax2 += w * dx
                ay2 += w * dy
                az2 += w * dz
                dx, dy, dz = x - x3, y - y3, z - z3
                w = m * law(dx, dy, dz, length2)[0]
                ax3 += w * dx
                ay3 += w * dy
                az3 += w * dz
            sums[0, i] += factor * ax0
            sums[1, i] += factor * ay0
            sums[2, i] += factor * az0
            sums[0, i + 1] += factor * ax1
            sums[1, i + 1] += factor * ay1
            sums[2, i + 1] += factor * az1
            sums[0, i + 2] += factor * ax2
            sums[1, i + 2] += factor * ay2
            sums[2, i + 2] += factor * az2
            sums[0, i + 3] += factor * ax3
            sums[1, i + 3] += factor * ay3
            sums[2, i + 3] += factor * az3

    @njit(fastmath=FAST, error_model="numpy")
    def potentials(count, targets, blocks, staged, length2, sums):
        compile_for_vectors()
        for i in range(count):
            x, y, z = targets[0, i], targets[1, i], targets[2, i]
            phi = zero
            for j in range(blocks * LANES):
                dz = zero if flat else staged[2, j] - z
                phi -= staged[3, j] * law(staged[0, j] - x, staged[1, j] - y, dz, length2)[1]
            sums[3, i] += phi

    return potentials if potential else accelerations


pairs = piece(_pairs)


def _own_pairs(variant: Variant) -> Callable:
    """``own(start, count, targets, first, number, bodies, length2, sums)``: the potential of the bodies ``first`` to first +
    number at the targets, which are the bodies ``start`` …, without that of a body itself."""
    real = variant.real
    rsqrt, inverse_cube, _ = roots(real)
    law = pair_law(variant.law, variant.dimensions, rsqrt, njit(fastmath=FAST, forceinline=True), inverse_cube)
    zero, potential = real(0), variant.potential

    @njit(fastmath=FAST, error_model="numpy")
    def own(start, count, targets, first, number, bodies, length2, sums):
        compile_for_vectors()
        if potential:
            for i in range(count):
                x, y, z = targets[0, i], targets[1, i], targets[2, i]
                phi = zero
                for j in range(first, first + number):
                    u = law(bodies[0, j] - x, bodies[1, j] - y, bodies[2, j] - z, length2)[1]
                    phi -= zero if j == start + i else bodies[3, j] * u
                sums[3, i] += phi

    return own


own_pairs = piece(_own_pairs)


@njit(error_model="numpy")
def pad(ids, number):
    """Fill the last vector of ids with those of the root."""
    for j in range(number, -(-number // LANES) * LANES):
        ids[j] = 0


def _stage_cells(variant: Variant) -> Callable:
    """``stage(ids, number, moments, rows)``: copy the centres and moments of cells side by side, padded with massless cells
    to a multiple of LANES; returns the number of blocks. All that M2L and M2P read. ``ids`` holds LANES more."""
    kept = variant.basis.moments
    highest = variant.order - (0 if variant.potential else 1)
    width = 3 + sum(sum(n) <= max(highest, variant.degree) for n in kept)
    columns, lanes, zero = columns_of(width, variant.real), 64 // np.dtype(variant.real).itemsize, variant.real(0)

    @njit(fastmath=FAST, error_model="numpy")
    def stage(ids, number, moments, rows):
        compile_for_vectors()
        blocks = -(-number // LANES)
        pad(ids, number)
        for j in range(0, blocks * LANES, lanes):
            columns(ids, j, moments, rows)
        for k in range(3, width):
            for j in range(number, blocks * LANES):
                rows[k, j] = zero
        return blocks

    return stage


stage_cells = piece(_stage_cells)


def _stage_records(variant: Variant) -> Callable:
    """``stage(ids, number, records, rows)``: copy the records of cells side by side. ``ids`` holds LANES more."""
    columns, lanes = columns_of(4 + variant.order, variant.real), 64 // np.dtype(variant.real).itemsize

    @njit(fastmath=FAST, error_model="numpy")
    def stage(ids, number, records, rows):
        compile_for_vectors()
        pad(ids, number)
        for j in range(0, number, lanes):
            columns(ids, j, records, rows)

    return stage


stage_records = piece(_stage_records)


def _multipoles(variant: Variant) -> Callable:
    """``multipoles(count, targets, blocks, rows, length2, sums)``: add the field of staged cells at the targets (M2P)."""
    basis, text = variant.basis, Text()
    kept = [n for n in basis.moments if sum(n) <= variant.degree]
    m2p_text(text, basis, variant.degree)
    wanted = ["phi"] if variant.potential else ["ax", "ay", "az"][: basis.dimensions]
    made = [line for line in text.lines if variant.potential is False or line.split()[0] not in ("ax", "ay", "az")]
    text.lines = [
        "def multipoles(count, targets, blocks, rows, length2, sums):",
        "    compile_for_vectors()",
        "    for i in range(count):",
        "        x, y, z = targets[0, i], targets[1, i], targets[2, i]",
        *(f"        {each} = zero" for each in wanted),
        f"        for j in range(blocks * {LANES}):",
        "            dx, dy, dz = rows[0, j] - x, rows[1, j] - y, rows[2, j] - z",
        *(f"            {name('M', n)} = rows[{3 + place}, j]" for place, n in enumerate(kept)),
        *("            " + line for line in made),
        *(f"        sums[{('ax', 'ay', 'az', 'phi').index(each)}, i] += {each}" for each in wanted),
    ]
    return compiled(text, variant, "multipoles")


multipoles = piece(_multipoles)
