"""The criterion: whether the multipoles of a cell may act on a target, on the CPU and on the GPU.

With P_n the norms of a source's moments, r and R the radii of source and target, d the distance of their centres, h the
distance of the source's centre from the target's box, and |a| the smallest acceleration of the target's bodies in the
evaluation before, a source acts on the target's expansion (M2L), or on each body of a target that is not divided further
(M2P), if

    M2L:  r + R < 0.9 d,  R < f d,  8 max(r, R)/(r + R) Σ_k C(p, k) P_k R^(p-k) / d^(p+2) < ε |a|         (Dehnen 2014)
    M2P:  r < 0.9 h,  4 P_3/h^5 < ε |a|          (8 P_(n+1)/h^(n+3) with moments up to degree n > 2)

Of a geometric criterion both are an opening angle: r + R < θ d, r < θ h. For a target that is a point, h = d."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody.forces.compute_units import NEAREST, ComputeUnits
from nbody.forces.tree.expansions.text import Text, function_of
from nbody.forces.tree.options import support_of
from nbody.forces.tree.variant_cpu import Variant, compiled
from nbody.law import LAWS, Gravity

NONE, M2L, M2P, P2P, OPEN, DOWN = range(6)
"""What becomes of a source; NONE: it has no mass; DOWN, on the CPU: the target's children decide."""

FLAT, FLAT_ON_GPU = 0.5, 0.4
"""The largest R/d of an accepted source. 0.4 costs 12 % at the same errors (Plummer, N = 1e5, order 4, one Zen 4 core)."""

DISTANT = 0.9
"""The largest r/h for M2P, and the largest θ."""

FIRST_THETA = 0.6
"""The opening angle of a first evaluation, when |a| is not known."""

CANCELLED = 0.01
"""Accelerations less than this times G M/R², with the mass and radius of all bodies, need not be more accurate: forces
cancel there."""


class Rules(NamedTuple):
    """Numbers of the criterion on the CPU, in the kernel's units and type.

    Attributes:
        length2: ε² of the law, or r_min².
        support: sources closer than this are not expanded: their law is not that of the expansions.
        theta: the largest (r + R)/d.
        distant: the largest r/h.
        flat: the largest R/d.
        error: the relative error; infinite for a geometric criterion.
        least: the least |a| that counts.
    """

    length2: float
    support: float
    theta: float
    distant: float
    flat: float
    error: float
    least: float


def rules_for(gravity: Gravity, units: ComputeUnits, theta: float | None, error: float, root: np.ndarray) -> Rules:
    """The criterion for a law.

    Args:
        theta: of a geometric criterion, if a user names it.
        error: the relative error; infinite for a geometric criterion.
        root: the record of the sources' root cell.
    """
    real: Any = root.dtype.type
    law = LAWS.load(gravity.softening)
    nearest = math.ldexp(1.0, NEAREST[root.dtype.name])
    eps = max(nearest, float(gravity.shortest) * units.position if law.has_length else 0.0)
    support = support_of(gravity) * eps
    r, mass = map(float, np.abs(root[3:5]))
    angle = (theta or FIRST_THETA) if error == math.inf else None
    return Rules(
        real(eps) ** 2,
        real(support),
        real(angle or DISTANT),
        real(min(DISTANT, angle or DISTANT)),
        real(1.0 if angle else FLAT),
        real(error),
        real(CANCELLED * mass / r**2 if r > 0 else 0.0),
    )


def power(square: str, root: str, exponent: int) -> str:
    """The text of a power of a number, from its square and itself."""
    return " * ".join([square] * (exponent // 2) + [root] * (exponent % 2))


@cache
def classify_for(variant: Variant, terminal: bool) -> Callable:
    """``classify(count, rows, box, weights, rules, limit, codes)``: what becomes of each source of a list, whose records are
    the columns of ``rows``. ``weights`` (p + 1,) holds 8 C(p, k) R^(p-k), ``limit`` is ε |a|."""
    order, degree = variant.order, variant.degree
    text = Text()
    estimate = " + ".join(f"w{k} * rows[{3 + k}, j]" for k in range(2, order + 1))
    factor = text.constant(4 if degree == 2 else 8)
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


@cache
def weights_for(variant: Variant) -> Callable:
    """``fill(R, weights)``: 8 C(p, k) R^(p-k)."""
    order = variant.order
    text = Text()
    text.lines = ["def fill(R, weights):", f"    power = {text.constant(8)}"]
    for k in range(order, -1, -1):
        text.lines += [f"    weights[{k}] = {text.constant(math.comb(order, k))} * power", "    power = power * R"]
    return compiled(text, variant, "fill")


class Acceptance(NamedTuple):
    """The criterion for a cell and a target on the GPU, in float32. P are the cell's mass M and P_n/(M r^n), since P_n
    itself may be too small for float32; ``bound`` is ε |a|; ``angle``: by the opening angle ``theta``."""

    accepted: Callable
    """accepted(P, r, R, d2, angle, theta, bound): True if a cell may act on the target's expansion."""
    small: Callable
    """small(P, r, h2, angle, theta, bound): True if the quadrupole of a cell may act on the bodies."""


def acceptance_for(order: int, rsqrt: Callable, compile: Callable[[Callable], Callable]) -> Acceptance:
    """:class:`Acceptance` with expansions of an order; ``compile`` makes functions that kernels may call."""
    real = np.float32
    estimate = compile(_estimate(order))
    least, one, sixteen = real(1e-30), real(1), real(16)
    distant, flat, distant2 = real(DISTANT), real(FLAT_ON_GPU), real(0.81)

    def accepted(P, r, R, d2, angle, theta, bound):
        if not d2 > least:
            return False
        q = rsqrt(d2)
        d = d2 * q
        if angle:
            return r + R < theta * d
        if r + R < distant * d and flat * d > R:
            return estimate(P, r * q, R * q) * q * q * max(r, R) < bound * (r + R)
        return False

    def small(P, r, h2, angle, theta, bound):
        if angle:
            return r * r < theta * theta * h2
        if r * r < distant2 * h2:
            u2 = one / h2
            u = r * r * u2
            return sixteen * P[0] * P[0] * P[2] * P[2] * u * u * u * u2 * u2 < bound * bound
        return False

    return Acceptance(compile(accepted), compile(small))


def _estimate(order: int) -> Callable:
    """``estimate(P, r/d, R/d)``: 8 Σ_k C(p, k) P_k R^(p-k) / d^p."""
    lines = ["def estimate(P, s, t):", "    t1, s1 = t, s"]
    lines += [f"    t{k}, s{k} = t{k - 1} * t, s{k - 1} * s" for k in range(2, order + 1)]
    terms = [f"c{k} * P[{k - 1}] * s{k}" + (f" * t{order - k}" if k < order else "") for k in range(2, order + 1)]
    lines += [f"    return P[0] * (c0 * t{order} + {' + '.join(terms)})"]
    return function_of("estimate", lines, **{f"c{k}": np.float32(8 * math.comb(order, k)) for k in range(order + 1)})
