"""Compile a law, given by its name, to a function of one pair."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbody.law.gravity import LAWS


@dataclass(frozen=True)
class Law:
    """A pair law.

    Attributes:
        name: laws with the same name have the same kernels (``none`` is ``cutoff`` with length 0).
        build: ``build(flat, cube, rsqrt)`` returns the Python function ``law(dx, dy, dz, length2) -> (f, u)``, which
            :func:`pair_law` compiles.
        has_length: the law uses the softening length.
        needs_length: the length must be greater than 0.
        slopes: None if f is u³ or zero: a kernel may compute it from u, and its derivatives from both. Otherwise
            ``slopes(flat, cube, rsqrt)`` returns the Python function that :func:`pair_slopes` compiles.
        support: from this many softening lengths on the law is Newton's, so that cells of a tree may act on each other;
            infinite if it is nowhere, or if that is not known: no tree expands such a law, except that of ``plummer``.
    """

    name: str
    build: Callable[[bool, Callable, Callable], Callable]
    has_length: bool = True
    needs_length: bool = False
    slopes: Callable[[bool, Callable, Callable], Callable] | None = None
    support: float = math.inf

    @property
    def cubic(self) -> bool:
        """f is u³ or zero."""
        return self.slopes is None


def pair_law(
    softening: str,
    dimensions: int,
    rsqrt: Callable,
    compile: Callable[[Any], Any],
    inverse_cube: Callable | None = None,
) -> Callable:
    """The compiled function ``law(dx, dy, dz, length2) -> (f, u)``.

    The caller sums ``m_j f (dx, dy, dz)`` for the acceleration and ``-m_j u`` for the potential, and multiplies by G
    once at the end; ``length2`` is the softening length squared. f = 1/r'³ and u = 1/r' have the arguments' dtype; r' is
    the softened distance; f = 0 within a cutoff. (Within a spline f and u are polynomials.) An unused ``u`` costs nothing:
    the compiler removes it. In 2-D ``dz`` is ignored.

    Args:
        softening: a name of :data:`~nbody.law.LAWS`.
        dimensions: 2 or 3.
        rsqrt: 1/√x in the caller's precision, infinity at 0. (In float64 on a GPU it is a NaN there; so without softening
            u of two bodies in the same place is a NaN.)
        compile: turns a Python function into one that the caller's kernels can inline (``cuda.jit(device=True)``,
            ``cpu_inner.inner``, or ``lambda f: f`` for NumPy arrays).
        inverse_cube: x^(-3/2), if the caller has something faster than the cube of ``rsqrt``.

    Raises:
        InputError: the softening is unknown.
    """

    law: Law = LAWS.load(softening)
    return compile(law.build(dimensions == 2, inverse_cube or _cube_of(rsqrt, compile), rsqrt))


def pair_roots(softening: str, dimensions: int, rsqrt: Callable, compile: Callable[[Any], Any]) -> Callable:
    """The compiled function ``roots(dx, dy, dz, length2) -> (w, u)`` of a cubic law: f = w³, with w = 1/r', or 0 within a
    cutoff; for a caller that computes the cube together with the masses. The arguments are those of :func:`pair_law`."""
    law: Law = LAWS.load(softening)
    assert law.cubic
    return compile(law.build(dimensions == 2, rsqrt, rsqrt))


def pair_slopes(
    softening: str,
    dimensions: int,
    rsqrt: Callable,
    compile: Callable[[Any], Any],
    inverse_cube: Callable | None = None,
) -> Callable | None:
    """The compiled function ``slopes(dx, dy, dz, length2) -> (g, k)``, g = (1/r) df/dr and k = (1/r) dg/dr, of a law that is
    not cubic; None for a cubic one, where g = -3 f u² and k = 15 f u⁴.

    They make the derivatives of a pair's acceleration f d along its motion: df/dt = g (d·v), and d²f/dt² =
    g (v² + d·a) + k (d·v)². The arguments are those of :func:`pair_law`."""
    law: Law = LAWS.load(softening)
    if law.slopes is None:
        return None
    return compile(law.slopes(dimensions == 2, inverse_cube or _cube_of(rsqrt, compile), rsqrt))


def potential_factor(u: Any, m: Any) -> Any:
    """u of a pair for the potential -m u of a source of mass m: 0 if it has none, as u may be infinite and 0 · ∞ is a NaN.
    Kernels compile it as they do the law."""
    return u if m != 0 else m


def inverse_root(x: Any) -> Any:
    """1/√x in the precision of ``x``, by the root and the division: the ``rsqrt`` of kernels on the CPU that have no
    faster one."""
    return type(x)(1) / math.sqrt(x)


def _cube_of(rsqrt: Callable, compile: Callable[[Any], Any]) -> Callable:
    @compile
    def cube_of_root(x):
        u = rsqrt(x)
        return u * u * u

    return cube_of_root
