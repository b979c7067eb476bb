"""Sources far from a cell: their moments make its local expansion (M2L), which goes down to its children (L2L) and to its
bodies (L2P)."""

from collections.abc import Callable

from nbody.forces.tree.formulas import l2l_text, l2p_text, m2l_text
from nbody.forces.tree.lanes import LANES
from nbody.forces.tree.pieces import Variant, compiled, piece
from nbody.forces.tree.text import Index, Text, name

MOST_SUMS = 24
"""The most sums of one M2L loop: more do not fit 32 vector registers beside the tensors."""


def _groups(local: list[Index]) -> list[list[Index]]:
    """The L_k divided into loops."""
    loops = -(-len(local) // MOST_SUMS)
    size = -(-len(local) // loops)
    return [local[start : start + size] for start in range(0, len(local), size)]


def _far_cells(variant: Variant) -> Callable:
    """``far(bx, by, bz, blocks, rows, length2, local)``: add the moments of staged cells to the local expansion about b."""
    basis = variant.basis
    body, constants = [], Text()
    for wanted in _groups(basis.locals):
        text = Text()
        m2l_text(text, basis, wanted)
        constants.constants |= text.constants
        highest = basis.order - min(sum(k) for k in wanted)
        places = {k: basis.locals.index(k) for k in wanted}
        body += [
            *(f"{name('L', k)} = zero" for k in wanted),
            f"for j in range(blocks * {LANES}):",
            "    dx, dy, dz = rows[0, j] - bx, rows[1, j] - by, rows[2, j] - bz",
            *(f"    {name('M', n)} = rows[{3 + i}, j]" for i, n in enumerate(basis.moments) if sum(n) <= highest),
            *("    " + line for line in text.lines),
            *(f"local[{place}] += {name('L', k)}" for k, place in places.items()),
        ]
    constants.lines = [
        "def far(bx, by, bz, blocks, rows, length2, local):",
        "    compile_for_vectors()",
        *("    " + line for line in body),
    ]
    return compiled(constants, variant, "far")


far_cells = piece(_far_cells)


def _shift(variant: Variant) -> Callable:
    """``shift(dx, dy, dz, above, local)``: the local expansion of a cell from that of the cell above; d is the centre above
    minus the centre."""
    text, kept = Text(), variant.basis.locals
    l2l_text(text, variant.basis)
    made = text.lines
    text.lines = [
        "def shift(dx, dy, dz, above, local):",
        *(f"    {name('L', k)} = above[{place}]" for place, k in enumerate(kept)),
        *("    " + line for line in made),
        *(f"    local[{place}] = {name('K', k)}" for place, k in enumerate(kept)),
    ]
    return compiled(text, variant, "shift")


shift_local = piece(_shift)


def _local_field(variant: Variant) -> Callable:
    """``field(bx, by, bz, local, blocks, targets, sums)``: add the field of the local expansion at the targets."""
    text, kept = Text(), variant.basis.locals
    l2p_text(text, variant.basis)
    wanted = ["phi"] if variant.potential else ["ax", "ay", "az"][: variant.dimensions]
    made = [line for line in text.lines if variant.potential is False or line.split()[0] not in ("ax", "ay", "az")]
    rows = {each: ("ax", "ay", "az", "phi").index(each) for each in wanted}
    text.lines = [
        "def field(bx, by, bz, local, blocks, targets, sums):",
        "    compile_for_vectors()",
        *(f"    {name('L', k)} = local[{place}]" for place, k in enumerate(kept)),
        f"    for i in range(blocks * {LANES}):",
        "        dx, dy, dz = bx - targets[0, i], by - targets[1, i], bz - targets[2, i]",
        *(f"        {each} = sums[{row}, i]" for each, row in rows.items()),
        *("        " + line for line in made),
        *(f"        sums[{row}, i] = {each}" for each, row in rows.items()),
    ]
    return compiled(text, variant, "field")


local_field = piece(_local_field)
