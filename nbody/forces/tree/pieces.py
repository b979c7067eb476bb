"""Pieces of kernels that are made for one variant: order, dimensions, law, precision, and what is computed.

Kernels are cached on disk, and Numba distinguishes cached kernels by the constants that they close over. So a kernel closes
over one string, which names its variant and the sources, and the functions that it calls are made from that string.
"""

import hashlib
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from nbody import law
from nbody.forces.direct import cpu_roots
from nbody.forces.direct.cpu_roots import FAST, bare_estimates, compile_for_vectors, roots
from nbody.forces.tree.formulas import Basis
from nbody.forces.tree.text import Text

KERNEL_FILES = [path for path in sorted(Path(__file__).parent.glob("*.py")) if not path.name.startswith("gpu_")]
USED_FILES = [*sorted(Path(law.__file__).parent.glob("*.py")), Path(cpu_roots.__file__)]
SOURCES = b"".join(path.read_bytes() for path in (*USED_FILES, *KERNEL_FILES))
"""The source code of the kernels, read at import, since the files may change before the first kernel is compiled."""


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
        return Basis(self.order, self.dimensions, self.law == "plummer", self.potential)

    @property
    def real(self) -> type:
        """The type of the kernel's numbers."""
        return np.float32 if self.precision == "float32" else np.float64

    @property
    def degree(self) -> int:
        """The highest moments of M2P: the quadrupole up to order 5. For higher orders as accurate as M2L: sparse targets
        would take very long lists of direct sums."""
        return min(2, self.order - 1) if self.order <= 5 else self.order - 1

    def text(self) -> str:
        """The string that kernels close over."""
        return f"{self.order} {self.dimensions} {self.law} {self.precision} {self.potential} {_made_of()}"


@cache
def _made_of() -> str:
    return hashlib.sha256(SOURCES + str(bare_estimates()).encode()).hexdigest()


@cache
def variant_of(text: str) -> Variant:
    """The variant that a kernel's string names."""
    order, dimensions, law, precision, potential, _ = text.split()
    return Variant(int(order), int(dimensions), law, precision, potential == "True")


def piece(build: Callable[[Variant], Callable]) -> Callable:
    """A function for kernels, ``function(variant, …)``: it calls what ``build`` makes for the variant that a constant
    string names."""
    built = cache(build)

    def function(variant, *arguments):
        raise NotImplementedError("for kernels only")

    @overload(function, prefer_literal=True)
    def in_a_kernel(variant, *arguments):
        compiled = built(variant_of(variant.literal_value))

        def function(variant, *arguments):
            return compiled(*arguments)

        return function

    return function


def compiled(text: Text, variant: Variant, called: str) -> Callable:
    """The compiled function ``called`` that a text defines. It knows ``compile_for_vectors``, ``rsqrt`` and ``sqrt``."""
    real = variant.real
    space: dict[str, Any] = {key: real(float(value)) for key, value in text.constants.items()}
    space |= {"rsqrt": roots(real).rsqrt, "compile_for_vectors": compile_for_vectors, "zero": real(0)}
    space["sqrt"] = math.sqrt
    exec("\n".join(text.lines), space)
    return njit(fastmath=FAST, error_model="numpy")(space[called])
