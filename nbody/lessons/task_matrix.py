"""Tasks of the matrix course: write the kernel of a rung, and have its results and accesses checked.

Checked are how often its threads read global and shared memory, and how many words of a bank and lines of memory an access
of a warp asks for.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from nbody.errors import InputError

if TYPE_CHECKING:
    from nbody.compute.simulator.traced import Access

NAMES = ("k01", "k04", "k05", "k06", "k07", "k08", "k09", "k10", "k11", "k12", "k13", "k14", "k15")
FUNCTION = "launch"

START = '''"""{title}

The kernel below has one thread per result and reads global memory only. Change it, and say
    nbody course check {name} {file}
until every line of the answer begins with "ok". It runs without a GPU; print() works in it.
"""

from numba import cuda
from numpy import float32

from nbody.linalg.rung import ProductLaunch

TILE = 32


@cuda.jit
def kernel(a, b, c):
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    column = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if row < c.shape[0] and column < c.shape[1]:
        total = float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


def launch(shape, dtype):
    """The kernel with its grid and block, for C (shape.m, shape.n) = A (shape.m, shape.k) B (shape.k, shape.n)."""
    return ProductLaunch(kernel, (-(-shape.n // TILE), -(-shape.m // TILE)), (TILE, TILE))
'''


def check(launch: Callable, name: str) -> Iterator[tuple[bool, str]]:
    """What is right and what is not in a solution, in the simulator. Raises InputError: it returns no launch."""
    from nbody.lessons.accesses import ONE_BLOCK, counted, trace_of, traced
    from nbody.linalg import LADDER
    from nbody.linalg.rung import ProductLaunch, ProductShape

    rung, shape, vectors = LADDER.load(name), ONE_BLOCK[name], "vector loads" in LADDER.load(name).claims
    found = {}
    ragged = shape if name == "k01" else ProductShape(shape.m + 1, shape.n + 5, shape.k + 3)
    for each in dict.fromkeys((shape, ragged)):
        made = launch(each, np.dtype(np.float32))
        if not isinstance(made, ProductLaunch):
            raise InputError(f"launch() returns {type(made).__name__}, not a ProductLaunch")
        found[each], error = trace_of(made, each)
        yield error < rung.tolerance(each.k, "float32"), f"results of {each}: largest relative error {error:.1e}"
    threads = found[shape][0, 0]
    own, claimed = counted(threads, shape.k, vectors), rung.reads(shape)
    for kind in ("global", "shared"):
        reads = getattr(own, f"from_{kind}") / max(own.products, 1)
        allowed = getattr(claimed, f"from_{kind}") / shape.k
        text = f"reads of {kind} memory per multiply-add: {reads:.4g}, the rung has {allowed:.4g}"
        yield reads <= allowed * 1.001, text
    (banks, lines), (most_banks, most_lines) = _worst(threads), _worst(traced(name)[0, 0])
    yield banks <= most_banks, f"words of one bank in a read: {banks}, the rung has {most_banks}"
    yield lines <= most_lines, f"lines of global memory in a read: {lines}, the rung has {most_lines}"


def _worst(threads: "list[list[Access]]") -> tuple[int, int]:
    """The most words of one bank, and the most lines of global memory, that a read of the first warp asks for."""
    from nbody.lessons.accesses import LINE, conflicts

    lanes = [[e for e in lane if not e.write] for lane in threads[:32]]
    banks = lines = 1
    for reads in zip(*lanes, strict=False):
        words: dict[str, set[int]] = {}
        for e in reads:
            words.setdefault(e.array, set()).add(e.index)
        for array, indices in words.items():
            if array.startswith("shared"):
                banks = max(banks, conflicts(np.array(sorted(indices))))
            elif array in "ab":
                lines = max(lines, len({index * 4 // LINE for index in indices}))
    return banks, lines
