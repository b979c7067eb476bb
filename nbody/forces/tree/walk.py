"""Which cells act on which: the lists of one target, from the undecided sources of its parent.

With r and R the radii of source and target, d the distance of their centres, and |a| the smallest acceleration of the
target's bodies in the evaluation before, a source is accepted (M2L) if

    r + R < θ d,    R < 0.5 d,    8 max(r, R)/(r + R) Σ_k C(p, k) P_k R^(p-k) / d^(p+2) < ε |a|         (Dehnen 2014)

Otherwise it is opened, or handed down to the target's children if it is a leaf or smaller than the target. A target of few
bodies has no children here: it ends every question with M2L, M2P (the moments act on each body; by the distance h of the
target's box) or, for leaves, P2P. M2P comes before opening: thousands of small pieces, each accepted for its own small
error, would have errors of the same sign.
"""

from collections.abc import Callable
from math import comb
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from nbody.forces.tree.lanes import LANES, select_ids
from nbody.forces.tree.pieces import Variant, compiled, piece
from nbody.forces.tree.text import Text

M2L, M2P, P2P, DOWN, OPEN, NONE = range(6)
"""What becomes of a source; NONE if it has no mass."""

FULL = -1
"""The length of a list that does not hold all sources."""

FLAT = 0.5
"""The largest R/d of an accepted source. 0.4 costs 12 % at the same errors (Plummer, N = 1e5, order 4, one Zen 4 core)."""

DISTANT = 0.9
"""The largest r/h for M2P, and the largest θ."""


class Rules(NamedTuple):
    """Numbers of the criterion, in the kernel's units and type.

    Attributes:
        length2: ε² of the law, or r_min².
        support: sources closer than this are not expanded: their law is not 1/r (``spline``, ``cutoff``).
        theta: the largest (r + R)/d.
        distant: the largest r/h.
        flat: the largest R/d.
        error: the relative error; infinite for a geometric criterion.
        least: the least |a| that counts: where forces cancel, errors need not be smaller.
    """

    length2: float
    support: float
    theta: float
    distant: float
    flat: float
    error: float
    least: float


@register_jitable
def moment_factor(degree: int) -> int:
    """The factor of P_(degree + 1) in the estimate for M2P."""
    return 4 if degree == 2 else 8


def _classify(terminal: bool) -> Callable[[Variant], Callable]:
    """``classify(count, rows, box, weights, rules, limit, codes)``: what becomes of each source of a list,
    whose records are the columns of ``rows``.

    ``weights`` (p + 1,) holds 8 C(p, k) R^(p-k), ``limit`` is ε |a|.
    """

    def build(variant: Variant) -> Callable:
        order, degree = variant.order, variant.degree
        text = Text()
        estimate = " + ".join(f"w{k} * rows[{3 + k}, j]" for k in range(2, order + 1))
        factor = text.constant(moment_factor(degree))

        def power(square: str, root: str, exponent: int) -> str:
            return " * ".join([square] * (exponent // 2) + [root] * (exponent % 2))

        lines = [
            "dx, dy, dz = rows[0, j] - bx, rows[1, j] - by, rows[2, j] - bz",
            "d2 = dx * dx + dy * dy + dz * dz",
            "d = sqrt(d2)",
            "r, mass = rows[3, j], rows[4, j]",
            "leaf = mass < zero",
            "size = r + R",
            "larger = r if r > R else R",
            f"error = w0 * abs(mass) + {estimate}",
            "apart = (size < theta * d) & (R < flat * d) & (size + support < d)",
            f"accept = apart & (error * larger < limit * size * ({power('d2', 'd', order + 2)}))",
        ]
        if terminal:
            lines += [
                "gx, gy, gz = abs(dx) - hx, abs(dy) - hy, abs(dz) - hz",
                "gx, gy, gz = max(gx, zero), max(gy, zero), max(gz, zero)",
                "h2 = gx * gx + gy * gy + gz * gz",
                "h = sqrt(h2)",
                f"small = {factor} * rows[{4 + degree}, j] < limit * ({power('h2', 'h', degree + 3)})",
                "body = (r < distant * h) & (r + support < h) & small",
                f"code = {OPEN}",
                f"code = {P2P} if leaf else code",
                f"code = {M2P} if body else code",
            ]
        else:
            lines += [f"code = {OPEN}", f"code = {DOWN} if leaf | (r < R) else code"]
        lines += [f"code = {M2L} if accept else code", f"codes[j] = {NONE} if mass == zero else code"]
        text.lines = [
            "def classify(count, rows, box, weights, rules, limit, codes):",
            "    compile_for_vectors()",
            "    bx, by, bz, R, hx, hy, hz = box[0], box[1], box[2], box[3], box[4], box[5], box[6]",
            "    support, theta, distant, flat = rules.support, rules.theta, rules.distant, rules.flat",
            *(f"    w{k} = weights[{k}]" for k in range(order + 1)),
            "    for j in range(count):",
            *("        " + line for line in lines),
        ]
        return compiled(text, variant, "classify")

    return build


classify_inner, classify_terminal = piece(_classify(False)), piece(_classify(True))


def _weights(variant: Variant) -> Callable:
    """``fill(R, weights)``: 8 C(p, k) R^(p-k)."""
    order = variant.order
    text = Text()
    eight = text.constant(8)
    text.lines = ["def fill(R, weights):", f"    power = {eight}"]
    for k in range(order, -1, -1):
        text.lines += [f"    weights[{k}] = {text.constant(comb(order, k))} * power", "    power = power * R"]
    return compiled(text, variant, "fill")


fill_weights = piece(_weights)


@njit(error_model="numpy")
def sort_out(count, ids, codes, cells, few, lists, numbers, queue, open_ids):
    """Distribute a list by its codes: to M2L, M2P, P2P (rows of ``lists``, numbers in ``numbers``) and, as numbers[3],
    those that are handed down; the opened ones to ``open_ids``, and their children to ``queue``. Returns the length of the
    queue, or FULL."""
    far, multipole, near, down = numbers[0], numbers[1], numbers[2], numbers[3]
    capacity = lists.shape[1] - LANES
    if max(far, multipole, near, down) + count > capacity:
        return FULL
    multipole_before, opened, taken = multipole, np.int64(0), np.int64(0)
    for j in range(0, count, LANES):
        some = min(LANES, count - j)
        far = select_ids(ids, codes, j, some, 0, lists[0], far)
        multipole = select_ids(ids, codes, j, some, 1, lists[1], multipole)
        near = select_ids(ids, codes, j, some, 2, lists[2], near)
        down = select_ids(ids, codes, j, some, 3, lists[3], down)
        opened = select_ids(ids, codes, j, some, 4, open_ids, opened)
    # Few bodies are cheaper than M2P.
    kept = multipole_before
    for j in range(multipole_before, multipole):
        s = lists[1, j]
        if cells.children[s] == 0 and cells.count[s] <= few:
            lists[2, near] = s
            near += 1
        else:
            lists[1, kept] = s
            kept += 1
    numbers[0], numbers[1], numbers[2], numbers[3] = far, kept, near, down
    for j in range(opened):
        s = open_ids[j]
        if taken > capacity:
            return FULL
        child = cells.child[s]
        for k in range(8):  # a vector; children that do not exist are overwritten
            queue[np.uint64(taken) + np.uint64(k)] = child + np.uint32(k)
        taken += np.int64(cells.children[s])
    return taken if taken <= capacity else FULL
