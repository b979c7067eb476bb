"""The description of a rung of the ladder: its idea, how to launch it for a shape, and its properties."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nbody.compute.compiling.precompile import rehearsing
from nbody.errors import InputError

LECTURE_SIZE = 2048
"""The n of the lecture's table of square products."""


class ProductShape(NamedTuple):
    """C (m, n) = A (m, k) · B (k, n)."""

    m: int
    n: int
    k: int

    def __str__(self) -> str:
        return f"{self.m}x{self.k} by {self.k}x{self.n}"

    @property
    def matrices(self) -> tuple[tuple[int, int], ...]:
        """The shapes of A, B and C."""
        return (self.m, self.k), (self.k, self.n), (self.m, self.n)

    @property
    def flops(self) -> float:
        """Operations of the product, a multiply-add counted as two."""
        return 2.0 * self.m * self.n * self.k


class Reads(NamedTuple):
    """Numbers that one thread reads per result from global and from shared memory, for the simple model."""

    from_global: float
    from_shared: float

    @property
    def cycles(self) -> float:
        """The lecture's model of cost: a global read takes 1000 cycles, a shared one 10, arithmetic nothing."""
        return 1000 * self.from_global + 10 * self.from_shared


def every_number(shape: ProductShape) -> Reads:
    """Reads of a kernel that reads a row of A and a column of B from global memory for each result."""
    return Reads(2.0 * shape.k, 0.0)


def tile_reads(block: tuple[int, int], thread: tuple[int, int] = (1, 1), words: int = 1) -> Callable[[ProductShape], Reads]:
    """Reads of a kernel whose blocks compute tiles of ``block`` = (rows, columns) and whose threads hold
    ``thread`` = (rows, columns) results in registers: every number is used for a whole row or column of them;
    ``words`` numbers are read from shared memory in one access."""

    def reads(shape: ProductShape) -> Reads:
        from_global = shape.k / block[0] + shape.k / block[1]
        from_shared = (shape.k / thread[0] + shape.k / thread[1]) / words
        return Reads(from_global, from_shared)

    return reads


class Scratch(NamedTuple):
    """Device memory that a kernel takes as an argument after A, B and C: zero at first, then unchanged since the last
    launch."""

    dtype: Any
    shape: tuple[int, ...]


def _device() -> int:
    """The number of the current device."""
    from nbody.compute import SIMULATED, cuda

    return 0 if SIMULATED else cuda.current_context().device.id


@lru_cache(maxsize=16)
def _allocate(scratch: Scratch, index: int, device: int) -> Any:
    """The array on the current ``device``, cached for later launches; ``index`` distinguishes the arrays of one launch."""
    from nbody.compute import cuda

    return cuda.to_device(np.zeros(scratch.shape, scratch.dtype))


@lru_cache(maxsize=64)
def _allow_shared(launch: "ProductLaunch", dtype: np.dtype, device: int) -> None:
    """Permit a launch its dynamic shared memory on the current ``device``, once."""
    from nbody.compute import SIMULATED, allow_shared

    if not SIMULATED:
        allow_shared(launch.kernel, launch.signature(dtype), launch.dynamic_shared)


@dataclass(frozen=True)
class ProductLaunch:
    """A compiled kernel with its grid and block; called with device arrays (a, b, c) it starts the product."""

    kernel: Any
    grid: tuple[int, ...]
    block: tuple[int, ...]
    scratch: tuple[Scratch, ...] = ()
    dynamic_shared: int = 0
    """Bytes of dynamic shared memory; a kernel that needs more than 48 KB must use it."""

    def __post_init__(self) -> None:
        if max(self.grid[1:], default=0) > 65535:  # only the first dimension of a grid may be larger
            raise InputError(
                f"a grid of {self.grid} blocks is more than a GPU takes (65535 in y); multiply in blocks of rows"
            )

    def __call__(self, a: Any, b: Any, c: Any, stream: Any = 0) -> None:
        """Enqueue c = a·b on a stream; the arrays are on the device, C-contiguous, 16-byte aligned. Launches of one kernel
        share their scratch memory: they must not run at the same time on two streams."""
        if self.dynamic_shared and not rehearsing():  # it would be compiled at once
            _allow_shared(self, np.dtype(a.dtype), _device())
        self.kernel[self.grid, self.block, stream, self.dynamic_shared](a, b, c, *self._scratch_arrays())

    def _scratch_arrays(self) -> list[Any]:
        return [_allocate(scratch, index, _device()) for index, scratch in enumerate(self.scratch)]

    def direct(self, shape: ProductShape, dtype: Any) -> Callable[[int, int, int], None]:
        """The same launch for the addresses of a, b and c, on the default stream: a few microseconds of Python instead of
        about a hundred."""
        from nbody.compute import DirectLaunch

        shapes = [*shape.matrices, *(s.shape for s in self.scratch)]
        launch = DirectLaunch(self.kernel, self.signature(dtype), shapes, self.grid, self.block, self.dynamic_shared)
        launch.fix(3, self._scratch_arrays())
        return launch

    @property
    def threads(self) -> int:
        """Threads per block."""
        return int(np.prod(self.block))

    def signature(self, dtype: Any) -> tuple:
        """Numba's types of the arguments, to compile without a device."""
        from numba import from_dtype, types

        matrix = types.Array(from_dtype(np.dtype(dtype)), 2, "C")
        extra = [types.Array(from_dtype(np.dtype(s.dtype)), len(s.shape), "C") for s in self.scratch]
        return (matrix, matrix, matrix, *extra)


def by_tiles(
    kernel: Callable[[Any], Any], tile: int, block: tuple[int, int]
) -> Callable[[ProductShape, Any], ProductLaunch]:
    """How to launch ``kernel(scalar type)``: a block of threads for each tile of ``tile`` x ``tile`` results."""

    def launch(shape: ProductShape, dtype: Any) -> ProductLaunch:
        return ProductLaunch(kernel(dtype.type), (-(-shape.n // tile), -(-shape.m // tile)), block)

    return launch


@dataclass(frozen=True)
class Rung:
    """One step of the ladder. ``launch(shape, dtype)`` returns a callable (a, b, c) that computes c = a·b: a
    :class:`ProductLaunch` on the GPU, a Python function if ``on`` is "cpu".

    Attributes:
        title, idea: what it is, and its idea in one sentence.
        limit: what limits it, a clause that can follow a colon.
        reads: the reads of the simple model, for a shape.
        improves: the rung from which the idea starts.
        claims: properties of its PTX that the tests check ("vector loads", "asynchronous copies", "tensor cores").
        largest: the largest m and n.
        roundoff: the unit roundoff of its factors if that is coarser than the dtype's.
        compensated: True if the error of a sum does not grow with its length.
        example: the n of the square product for which the rung is explained.
        columns: the columns of B in that product, if the rung is made for few.
    """

    title: str
    idea: str
    limit: str
    launch: Callable[[ProductShape, Any], Callable[[Any, Any, Any], None]]
    reads: Callable[[ProductShape], Reads] = every_number
    improves: str = ""
    on: str = "gpu"
    dtypes: tuple[str, ...] = ("float32", "float64")
    claims: frozenset[str] = field(default_factory=frozenset)
    largest: int | None = None
    roundoff: float = 0.0
    compensated: bool = False
    example: int = LECTURE_SIZE
    columns: int | None = None

    def shape(self, n: int) -> ProductShape:
        """The product of the size n that the rung is measured on: square, unless the rung is made for few columns."""
        side = self.largest or n
        return ProductShape(side, self.columns or side, side)

    @property
    def example_shape(self) -> ProductShape:
        """The product for which the rung is explained."""
        return self.shape(self.example)

    def check(self, shape: ProductShape, dtype: Any) -> None:
        """Raise InputError if this rung has no kernel for the dtype, or the shape is too large for it."""
        if np.dtype(dtype).name not in self.dtypes:
            raise InputError(f"the rung '{self.title}' multiplies {' and '.join(self.dtypes)}, not {np.dtype(dtype)}")
        if self.largest and max(shape.m, shape.n) > self.largest:
            raise InputError(
                f"the rung '{self.title}' has m and n up to {self.largest}, not {shape.m} and {shape.n}: {self.limit}"
            )

    def tolerance(self, k: int, dtype: Any) -> float:
        """A bound on the relative error of a sum of k products of positive numbers against the float64
        referee's: the rounding of the factors, and that of the additions, which grows at most like k u (Higham
        2002, section 3.1) and not at all when compensated. In float64 the referee's own sum errs too, by far less than this
        (it adds in blocks), so there it is no strict bound."""
        unit = float(np.finfo(dtype).eps) / 2
        additions = 4 if self.compensated and np.dtype(dtype) == np.float32 else k + 4
        return 2 * self.roundoff + additions * unit
