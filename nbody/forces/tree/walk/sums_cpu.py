"""The sums of a target on the CPU: over pairs of bodies (P2P), over the moments of cells on each body (M2P) and on the
target's expansion (M2L), which goes down to its children (L2L) and to its bodies (L2P).

The sources are first copied side by side (staged), a multiple of LANES of them, so that all loops are vector loops.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.compute.in_kernels.cpu_lanes import LANES, columns_of, copy_lanes
from nbody.forces.direct.cpu_pairs import missing_factor
from nbody.forces.direct.cpu_roots import FAST, compile_for_vectors, roots
from nbody.forces.tree.expansions.formulas import l2l_text, l2p_text, m2l_text, m2p_text
from nbody.forces.tree.expansions.text import Index, Text, function_of, name
from nbody.forces.tree.variant_cpu import Variant, compiled
from nbody.law import pair_law

STAGED_BODIES = 4096
"""The most bodies that are staged at once: 64 KiB in float32."""

STAGED_CELLS = 256
"""The most cells that are staged at once."""

MOST_SUMS = 24
"""The most sums of one M2L loop: more do not fit 32 vector registers beside the tensors."""

TOGETHER = 4
"""Targets per pass over the staged bodies."""


class Sums(NamedTuple):
    """Compiled functions of a variant; before the arguments named here all but ``own_pairs`` take whether the potential is
    computed instead of accelerations. Targets and sums are (4, …): x, y, z, m and ax, ay, az, φ; ``blocks`` counts LANES."""

    stage_cells: Callable
    """stage_cells(ids, number, moments, rows): copy the centres and moments of cells side by side, padded with
    massless cells; returns the number of blocks."""
    pairs: Callable
    """pairs(count, targets, blocks, staged, length2, sums): add the field of staged bodies at the targets. A body in the
    same place adds nothing to the acceleration."""
    own_pairs: Callable
    """own_pairs(start, count, targets, first, number, bodies, length2, sums): add the potential of the bodies ``first`` to
    first + number at the targets, which are the bodies ``start`` …, without that of a body itself."""
    multipoles: Callable
    """multipoles(count, targets, blocks, rows, length2, sums): add the field of staged cells at the targets (M2P)."""
    far: Callable
    """far(bx, by, bz, blocks, rows, length2, local): add the moments of staged cells to the local expansion about b."""
    shift: Callable
    """shift(dx, dy, dz, above, local): the local expansion of a cell from that of the cell above; d is the centre above
    minus the centre."""
    local_field: Callable
    """local_field(bx, by, bz, local, blocks, targets, sums): add the field of the local expansion at the targets."""


@cache
def sums_for(variant: Variant) -> Sums:
    """:class:`Sums`."""
    of_potential = variant._replace(potential=True)

    def either(make: Callable[[Variant], Callable], arguments: str) -> Callable:
        lines = [
            f"def either(potential, {arguments}):",
            "    if potential:",
            f"        return of_potential({arguments})",
        ]
        functions = {"of_potential": make(of_potential), "of_forces": make(variant._replace(potential=False))}
        return inner(calls=True)(function_of("either", [*lines, f"    return of_forces({arguments})"], **functions))

    return Sums(
        either(_stage_cells, "ids, number, moments, rows"),
        either(_pairs, "count, targets, blocks, staged, length2, sums"),
        _own_pairs(of_potential),
        either(_multipoles, "count, targets, blocks, rows, length2, sums"),
        either(_far, "bx, by, bz, blocks, rows, length2, local"),
        either(_shift, "dx, dy, dz, above, local"),
        either(_local_field, "bx, by, bz, local, blocks, targets, sums"),
    )


@inner(inline="always")
def stage_bodies(first, count, bodies, staged, number):
    """Append bodies to the staged ones, at most as many as fit; returns the numbers of bodies taken and
    staged. Both matrices hold LANES more."""
    taken = min(count, STAGED_BODIES - number)
    for j in range(0, taken, LANES):
        for k in range(4):
            copy_lanes(staged, k, number + j, bodies, k, first + j)
    return taken, number + taken


@inner
def pad_bodies(staged, number):
    """Add massless bodies to the staged ones up to a multiple of LANES; returns the number of blocks."""
    blocks = -(-number // LANES)
    for j in range(number, blocks * LANES):
        for k in range(3):
            staged[k, j] = staged[k, 0]
        staged[3, j] = 0
    return blocks


@inner
def _pad(ids, number):
    """Fill the last vector of ids with those of the root."""
    for j in range(number, -(-number // LANES) * LANES):
        ids[j] = 0


@cache
def records_for(variant: Variant) -> Callable:
    """``stage_records(ids, number, records, rows)``: copy the records of cells side by side. ``ids`` holds LANES more."""
    columns, lanes = columns_of(4 + variant.order, variant.real), 64 // np.dtype(variant.real).itemsize

    @inner(fastmath=FAST)
    def stage(ids, number, records, rows):
        compile_for_vectors()
        _pad(ids, number)
        for j in range(0, number, lanes):
            columns(ids, j, records, rows)

    return stage


def _stage_cells(variant: Variant) -> Callable:
    highest = variant.order - (0 if variant.potential else 1)
    width = 3 + sum(sum(n) <= max(highest, variant.degree) for n in variant.basis.moments)
    columns, lanes, zero = columns_of(width, variant.real), 64 // np.dtype(variant.real).itemsize, variant.real(0)

    @inner(fastmath=FAST)
    def stage(ids, number, moments, rows):
        compile_for_vectors()
        blocks = -(-number // LANES)
        _pad(ids, number)
        for j in range(0, blocks * LANES, lanes):
            columns(ids, j, moments, rows)
        for k in range(3, width):
            for j in range(number, blocks * LANES):
                rows[k, j] = zero
        return blocks

    return stage


def _law(variant: Variant) -> Callable:
    rsqrt, inverse_cube, _ = roots(variant.real)
    return pair_law(variant.law, variant.dimensions, rsqrt, inner(fastmath=FAST, forceinline=True), inverse_cube)


def _pairs(variant: Variant) -> Callable:
    flat, law, zero = variant.dimensions == 2, _law(variant), variant.real(0)

    @inner(fastmath=FAST)
    def potentials(count, targets, blocks, staged, length2, sums):
        compile_for_vectors()
        for i in range(count):
            x, y, z = targets[0, i], targets[1, i], targets[2, i]
            phi = zero
            for j in range(blocks * LANES):
                dz = zero if flat else staged[2, j] - z
                phi -= staged[3, j] * law(staged[0, j] - x, staged[1, j] - y, dz, length2)[1]
            sums[3, i] += phi

    return potentials if variant.potential else _accelerations(variant)


def _accelerations(variant: Variant) -> Callable:
    text, here = Text(), range(TOGETHER)
    text.lines = [
        "def accelerations(count, targets, blocks, staged, length2, sums):",
        "    compile_for_vectors()",
        f"    for i in range(0, count, {TOGETHER}):",
        *(f"        x{k}, y{k}, z{k} = targets[0, i + {k}], targets[1, i + {k}], targets[2, i + {k}]" for k in here),
        *(f"        ax{k}, ay{k}, az{k} = zero, zero, zero" for k in here),
        f"        for j in range(blocks * {LANES}):",
        "            x, y, m = staged[0, j], staged[1, j], staged[3, j]",
        f"            z = {'zero' if variant.dimensions == 2 else 'staged[2, j]'}",
    ]
    for k in here:
        text.lines += [
            f"            dx, dy, dz = x - x{k}, y - y{k}, z - z{k}",
            "            w = m * law(dx, dy, dz, length2)[0]",
            *(f"            a{axis}{k} += w * d{axis}" for axis in "xyz"),
        ]
    text.lines += [f"        sums[{row}, i + {k}] += factor * a{axis}{k}" for k in here for row, axis in enumerate("xyz")]
    factor = variant.real(missing_factor(variant.real))
    return compiled(text, variant, "accelerations", law=_law(variant), factor=factor)


def _own_pairs(variant: Variant) -> Callable:
    law, zero = _law(variant), variant.real(0)

    @inner(fastmath=FAST)
    def own(start, count, targets, first, number, bodies, length2, sums):
        compile_for_vectors()
        for i in range(count):
            x, y, z = targets[0, i], targets[1, i], targets[2, i]
            phi = zero
            for j in range(first, first + number):
                u = law(bodies[0, j] - x, bodies[1, j] - y, bodies[2, j] - z, length2)[1]
                phi -= zero if j == start + i else bodies[3, j] * u
            sums[3, i] += phi

    return own


def _results(variant: Variant, text: Text) -> tuple[dict[str, int], list[str]]:
    """The sums that a variant computes, with their rows, and the lines of a text that are needed for them."""
    rows = {"phi": 3} if variant.potential else dict(list({"ax": 0, "ay": 1, "az": 2}.items())[: variant.dimensions])
    return rows, [line for line in text.lines if not variant.potential or line.split()[0] not in ("ax", "ay", "az")]


def _multipoles(variant: Variant) -> Callable:
    text = Text()
    m2p_text(text, variant.basis, variant.degree)
    results, lines = _results(variant, text)
    kept = [n for n in variant.basis.moments if sum(n) <= variant.degree]
    text.lines = [
        "def multipoles(count, targets, blocks, rows, length2, sums):",
        "    compile_for_vectors()",
        "    for i in range(count):",
        "        x, y, z = targets[0, i], targets[1, i], targets[2, i]",
        *(f"        {each} = zero" for each in results),
        f"        for j in range(blocks * {LANES}):",
        "            dx, dy, dz = rows[0, j] - x, rows[1, j] - y, rows[2, j] - z",
        *(f"            {name('M', n)} = rows[{3 + place}, j]" for place, n in enumerate(kept)),
        *("            " + line for line in lines),
        *(f"        sums[{row}, i] += {each}" for each, row in results.items()),
    ]
    return compiled(text, variant, "multipoles")


def _far(variant: Variant) -> Callable:
    basis, body, constants = variant.basis, [], Text()
    for some in _groups(basis.locals):
        text = Text()
        m2l_text(text, basis, some)
        constants.constants |= text.constants
        highest = basis.order - min(sum(k) for k in some)
        body += [
            *(f"{name('L', k)} = zero" for k in some),
            f"for j in range(blocks * {LANES}):",
            "    dx, dy, dz = rows[0, j] - bx, rows[1, j] - by, rows[2, j] - bz",
            *(f"    {name('M', n)} = rows[{3 + i}, j]" for i, n in enumerate(basis.moments) if sum(n) <= highest),
            *("    " + line for line in text.lines),
            *(f"local[{basis.locals.index(k)}] += {name('L', k)}" for k in some),
        ]
    constants.lines = ["def far(bx, by, bz, blocks, rows, length2, local):", "    compile_for_vectors()"]
    constants.lines += ["    " + line for line in body]
    return compiled(constants, variant, "far")


def _groups(local: list[Index]) -> list[list[Index]]:
    """The L_k divided into loops."""
    loops = -(-len(local) // MOST_SUMS)
    size = -(-len(local) // loops)
    return [local[start : start + size] for start in range(0, len(local), size)]


def _shift(variant: Variant) -> Callable:
    text, kept = Text(), variant.basis.locals
    l2l_text(text, variant.basis)
    text.lines = [
        "def shift(dx, dy, dz, above, local):",
        *(f"    {name('L', k)} = above[{place}]" for place, k in enumerate(kept)),
        *("    " + line for line in text.lines),
        *(f"    local[{place}] = {name('K', k)}" for place, k in enumerate(kept)),
    ]
    return compiled(text, variant, "shift")


def _local_field(variant: Variant) -> Callable:
    text = Text()
    l2p_text(text, variant.basis)
    results, lines = _results(variant, text)
    text.lines = [
        "def field(bx, by, bz, local, blocks, targets, sums):",
        "    compile_for_vectors()",
        *(f"    {name('L', k)} = local[{place}]" for place, k in enumerate(variant.basis.locals)),
        f"    for i in range(blocks * {LANES}):",
        "        dx, dy, dz = bx - targets[0, i], by - targets[1, i], bz - targets[2, i]",
        *(f"        {each} = sums[{row}, i]" for each, row in results.items()),
        *("        " + line for line in lines),
        *(f"        sums[{row}, i] = {each}" for each, row in results.items()),
    ]
    return compiled(text, variant, "field")
