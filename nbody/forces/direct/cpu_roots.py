"""1/√x and x^(-3/2) for CPU kernels, from the processor's own estimate of the root.

x86 processors estimate q = (1 + e)/√x for a whole vector at the cost of one or two multiply-adds; √ and division cost ten
times as much. A short series in h = 1 - x q² ≈ -2e corrects the estimate:

    x^(-3/2) = q³ (1 + 3/2 h + 15/8 h² + 35/16 h³ + 315/128 h⁴ + …)
    x^(-1/2) = q (1 + 1/2 h + 3/8 h² + 5/16 h³ + 35/128 h⁴ + …)

For sixteen float32 (AVX-512) |e| < 2^-14, and the terms up to h leave an error of 8 e² < 3e-8; with the products of the cube
that takes four operations. For other widths |e| < 1.5 2^-12; the terms up to h² leave 1e-9, and those up to h⁴ leave the
6e-16 that float64 needs.

Without intervention the compiler itself refines the estimate: three more operations, and a relative error of 6e-7 in the
inverse cube of eight float32. An LLVM function attribute prevents that, if llvmlite accepts it. Otherwise the formulas are
still correct, and the kernel is slower.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from nbody.compute.compiling.cpu_inner import inner

FAST = {"reassoc", "contract", "arcp", "nsz"}
"""What the compiler may do to floating-point arithmetic in a kernel: reorder sums (else they stay scalar), contract to
multiply-adds, take reciprocals, drop the sign of zero. It must still respect NaN and infinity."""

REAL = {"float32": np.float32, "float64": np.float64}
"""The type of a kernel's numbers, by precision."""

BARE_ESTIMATE = '"reciprocal-estimates"="vec-sqrtf:0,sqrtf:0"'
WIDE_VECTORS = '"prefer-vector-width"="512"'  # LLVM prefers 256 bits on some Intel processors, at half the speed


class Roots(NamedTuple):
    """Compiled functions of one number: ``rsqrt`` is x^(-1/2), and ``factor`` times ``inverse_cube`` is x^(-3/2)."""

    rsqrt: Callable
    inverse_cube: Callable
    factor: float


def _features() -> list[str]:
    """The processor's features that Numba compiles for: LLVM's names, each with a plus or a minus."""
    return cpu_target.target_context.codegen().magic_tuple()[2].split(",")


def _set_attribute(function: ir.Function, attribute: str) -> None:
    """Give an LLVM function an attribute of any name (llvmlite's own ``add`` accepts only a list of names)."""
    set.add(function.attributes, attribute)


@cache
def bare_estimates() -> bool:
    """True if kernels get the unrefined estimate: on x86, if llvmlite accepts the attribute."""
    if "+sse2" not in _features():
        return False
    function = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), ()), "trial")
    try:
        _set_attribute(function, BARE_ESTIMATE)
    except TypeError:  # in this version of llvmlite the attributes are not a set
        return False
    return BARE_ESTIMATE in str(function)


@cache
def fourteen_bits() -> bool:
    """True if float32 kernels get the 14-bit estimate of AVX-512."""
    return bare_estimates() and "+avx512f" in _features()


@intrinsic
def compile_for_vectors(typing_context):
    """In a kernel: compile this function with the attributes above, on its own (its callers don't have them)."""

    def generate(context, builder, signature, arguments):
        builder.function.attributes.add("noinline")
        if bare_estimates():
            _set_attribute(builder.function, BARE_ESTIMATE)
            _set_attribute(builder.function, WIDE_VECTORS)
        return context.get_dummy_value()

    return types.void(), generate


@cache
def roots(real: type) -> Roots:
    """The roots for ``np.float32`` or ``np.float64`` on this processor."""
    if real is np.float64:
        return _roots64()
    return _roots32_of_14_bits(real) if fourteen_bits() else _roots32(real)


@inner(fastmath=FAST)
def _seed(x):
    return np.float32(1) / math.sqrt(x)


# Every literal of a float32 function is made by ``real``: a bare 1.5 would make the arithmetic float64, which reduces the
# speed from 17 to 7 interactions per nanosecond.


def _roots32_of_14_bits(real: type) -> Roots:
    one, half, five_thirds = real(1), real(1 / 2), real(5 / 3)

    @inner(fastmath=FAST)
    def rsqrt(x):
        q = _seed(x)
        h = one - x * (q * q)
        return q * (one + h * half)

    @inner(fastmath=FAST)
    def inverse_cube(x):
        q = _seed(x)
        q2 = q * q
        return q * q2 * (five_thirds - x * q2)  # 1 + 3/2 h = 3/2 (5/3 - x q²); the caller multiplies by 3/2, once

    return Roots(rsqrt, inverse_cube, 3 / 2)


def _roots32(real: type) -> Roots:
    one, half, three_eighths, three_halves, fifteen_eighths = (real(c) for c in (1, 1 / 2, 3 / 8, 3 / 2, 15 / 8))

    @inner(fastmath=FAST)
    def rsqrt(x):
        q = _seed(x)
        h = one - x * (q * q)
        return q * (one + h * (half + h * three_eighths))

    @inner(fastmath=FAST)
    def inverse_cube(x):
        q = _seed(x)
        q2 = q * q
        h = one - x * q2
        return q * q2 * (one + h * (three_halves + h * fifteen_eighths))

    return Roots(rsqrt, inverse_cube, 1.0)


def _roots64() -> Roots:
    # x must be in the range of float32, 2^-126 to 2^128: the engine chooses its unit of length accordingly.
    @inner(fastmath=FAST)
    def rsqrt(x):
        q = np.float64(_seed(np.float32(x)))
        h = 1.0 - x * (q * q)
        return q * (1.0 + h * (1 / 2 + h * (3 / 8 + h * (5 / 16 + h * (35 / 128)))))

    @inner(fastmath=FAST)
    def inverse_cube(x):
        q = np.float64(_seed(np.float32(x)))
        q2 = q * q
        h = 1.0 - x * q2
        return q * q2 * (1.0 + h * (3 / 2 + h * (15 / 8 + h * (35 / 16 + h * (315 / 128)))))

    return Roots(rsqrt, inverse_cube, 1.0)
