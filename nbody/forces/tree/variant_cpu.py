"""What the kernels of the CPU tree are compiled for."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner
from nbody.forces.direct.cpu_roots import FAST, compile_for_vectors, roots
from nbody.forces.tree.expansions.formulas import Basis
from nbody.forces.tree.expansions.text import Text
from nbody.forces.tree.options import is_softened


class Variant(NamedTuple):
    """What kernels are made for; ``law`` is the name of a :class:`~nbody.law.Law`."""

    order: int
    dimensions: int
    law: str
    precision: str
    potential: bool

    @property
    def basis(self) -> Basis:
        """The expansions."""
        return Basis(self.order, self.dimensions, is_softened(self.law), self.potential)

    @property
    def of_cells(self) -> "Variant":
        """That of the moments and of the criterion: the potential has the same, and laws other than Plummer's have
        Newton's."""
        return self._replace(potential=False, law="plummer" if is_softened(self.law) else "none")

    @property
    def real(self) -> type:
        """The type of the kernel's numbers."""
        return np.float32 if self.precision == "float32" else np.float64

    @property
    def degree(self) -> int:
        """The highest moments of M2P: the quadrupole up to order 5. For higher orders as accurate as M2L: sparse targets
        would take very long lists of direct sums."""
        return min(2, self.order - 1) if self.order <= 5 else self.order - 1


def compiled(text: Text, variant: Variant, called: str, **known: Any) -> Callable:
    """The compiled function ``called`` that a text defines. It knows ``compile_for_vectors``, ``rsqrt``, ``sqrt``, ``zero``,
    and what is ``known`` besides."""
    real = variant.real
    known |= {
        "rsqrt": roots(real).rsqrt,
        "sqrt": math.sqrt,
        "zero": real(0),
        "compile_for_vectors": compile_for_vectors,
    }
    compiled: Callable = inner(fastmath=FAST)(text.function(called, real, **known))
    return compiled
