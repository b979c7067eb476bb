"""From the name of a law to a compiled function of one pair."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbody.law.gravity import LAWS


@dataclass(frozen=True)
class Law:
    """A pair law.

    Attributes:
        name: laws with the same name have the same kernels (``none`` is ``cutoff`` with length 0).
        build: ``build(flat, cube, rsqrt)`` returns the Python function ``law(dx, dy, dz, length2) -> (f, u)``, to be
            compiled: see :func:`pair_law`.
        has_length: the law uses the softening length.
        needs_length: the length must be greater than 0.
    """

    name: str
    build: Callable[[bool, Callable, Callable], Callable]
    has_length: bool = True
    needs_length: bool = False


def pair_law(
    softening: str,
    dimensions: int,
    rsqrt: Callable,
    compile: Callable[[Any], Any],
    inverse_cube: Callable | None = None,
) -> Callable:
    """The compiled function ``law(dx, dy, dz, length2) -> (f, u)``.

    The caller sums ``m_j f (dx, dy, dz)`` for the acceleration and ``-m_j u`` for the potential, and multiplies by G
    once at the end; ``length2`` is the length squared. f = 1/r'³ and u = 1/r' have the arguments' dtype, with r' the
    softened distance, and f = 0 within a cutoff. A caller that drops ``u`` pays nothing for it: the compiler removes
    what is not used. In 2-D ``dz`` is ignored.

    Args:
        softening: a name of :data:`~nbody.law.LAWS`.
        dimensions: 2 or 3.
        rsqrt: 1/√x in the caller's precision, infinity at 0 (a NaN in float64 on a GPU, and so is u of two bodies in the
            same place without softening).
        compile: turns a Python function into one that the caller's kernels can inline (``cuda.jit(device=True)``,
            ``numba.njit``, or ``lambda f: f`` for NumPy arrays).
        inverse_cube: x^(-3/2), where the caller has something cheaper than the cube of ``rsqrt``. (Or ``rsqrt`` itself,
            where the caller takes the cube: ``f`` is then 1/distance, and zero within a cutoff.)

    Raises:
        InputError: the softening is unknown.
    """

    @compile
    def cube_of_root(x):
        u = rsqrt(x)
        return u * u * u

    law: Law = LAWS.load(softening)
    return compile(law.build(dimensions == 2, inverse_cube or cube_of_root, rsqrt))
