"""The law of one pair: the force and the potential that matches it, written once for the CPU and the GPU.

With d = x_j - x_i, r² = |d|² and the softening length ε or r_min ("length"):

=========  ==================================  ===============================  ==========================
softening  acceleration of i                   potential of i                   source
=========  ==================================  ===============================  ==========================
plummer    G m_j d / (r² + ε²)^(3/2)           -G m_j / √(r² + ε²)              Plummer 1911; Aarseth 1963
cutoff     G m_j d / r³ if r > r_min else 0    -G m_j / max(r, r_min)           the lecture's rule
none       cutoff with r_min = 0               -G m_j / r                       Newton 1687
=========  ==================================  ===============================  ==========================

In each the force is minus the gradient of the potential, so energy is conserved by construction. The force of a
particle on itself is zero in each; sums of the potential must leave j = i out.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbody.errors import InputError, unknown

SOFTENINGS = ("plummer", "cutoff", "none")
"""The laws a scenario may name."""


@dataclass(frozen=True)
class Gravity:
    """The law between the bodies of a run.

    Attributes:
        G: the gravitational constant in the scenario's units, not negative.
        dimensions: 2 or 3. (In 2-D the force is still 1/r², the law of three dimensions in a plane.)
        softening: one of :data:`SOFTENINGS`.
        length: ε of ``plummer``, r_min of ``cutoff``; ``none`` does not look at it.
    """

    G: float = 1.0
    dimensions: int = 3
    softening: str = "none"
    length: float = 0.0

    @property
    def length2(self) -> float:
        """The length squared, 0 for ``none``."""
        return 0.0 if self.softening == "none" else float(self.length) ** 2

    def check(self, where: str = "") -> "Gravity":
        """Itself, if it is a law. Raises InputError for an unknown softening or a number out of range."""
        if self.softening not in SOFTENINGS:
            raise unknown("softening", self.softening, SOFTENINGS, where)
        if self.dimensions not in (2, 3):
            raise InputError(f"{where}dimensions must be 2 or 3, got {self.dimensions}")
        if not (math.isfinite(self.G) and self.G >= 0):
            raise InputError(f"{where}G must be a finite number, zero or more, got {self.G}")
        if not (math.isfinite(self.length) and self.length >= 0):
            raise InputError(f"{where}softening length must be a finite number, zero or more, got {self.length}")
        if self.softening == "plummer" and self.length**2 == 0:
            raise InputError(
                f"{where}softening 'plummer' needs a length greater than 0, got {self.length}; "
                "for no softening say softening 'none'"
            )
        return self


def pair_law(
    softening: str,
    dimensions: int,
    rsqrt: Callable,
    compile: Callable[[Any], Any],
    inverse_cube: Callable | None = None,
) -> Callable:
    """The compiled function ``law(dx, dy, dz, length2) -> (f, u)``.

    The caller sums ``m_j f (dx, dy, dz)`` for the acceleration and ``-m_j u`` for the potential, and multiplies by G
    once at the end; ``length2`` is the length squared. f = 1/r'³ and u = 1/r' are of the arguments' dtype, with r' as above
    and f = 0 within a cutoff. Any softening but ``plummer`` is taken for a cutoff: :meth:`Gravity.check` knows them. A
    caller that drops ``u`` pays nothing for it: the compiler removes what is not used. In 2-D ``dz`` is not looked at.

    Args:
        softening: one of :data:`SOFTENINGS`.
        dimensions: 2 or 3.
        rsqrt: 1/√x in the caller's precision, infinity at 0 (a NaN in float64 on a GPU, and so is u of bodies in one
            place that no length keeps apart).
        compile: what turns a Python function into one the caller's kernels can inline (``cuda.jit(device=True)``,
            ``numba.njit``, or ``lambda f: f`` for NumPy arrays).
        inverse_cube: x^(-3/2), where the caller has something cheaper than the cube of ``rsqrt``. (Or ``rsqrt`` itself,
            where the caller takes the cube: ``f`` is then 1/distance, and zero within a cutoff.)
    """
    flat = dimensions == 2

    @compile
    def cube_of_root(x):
        u = rsqrt(x)
        return u * u * u

    cube = inverse_cube or cube_of_root

    @compile
    def plummer(dx, dy, dz, length2):
        r2 = dx * dx + length2  # the softening rides in the first multiply-add and costs nothing
        r2 = dy * dy + r2
        if not flat:
            r2 = dz * dz + r2
        return cube(r2), rsqrt(r2)

    @compile
    def cutoff(dx, dy, dz, length2):
        r2 = dx * dx + dy * dy
        if not flat:
            r2 = dz * dz + r2
        f, u = cube(r2), rsqrt(r2)
        u_min, zero = rsqrt(length2), length2 - length2  # computed once; a literal 0.0 would make f a float64
        # Selects between values that are there, not branches: every lane runs the same instructions. And 'r2 <= …', not
        # its opposite, so that a NaN is not taken for a close pair.
        f = zero if r2 <= length2 else f
        u = u_min if r2 <= length2 else u
        return f, u

    return plummer if softening == "plummer" else cutoff
