"""The graded tasks of the matrix course: write the kernel of a rung, and have it checked in Numba's simulator.

A file of a task has a function ``launch(shape, dtype)`` that returns a :class:`~nbody.linalg.rung.ProductLaunch`, as rungs
have. Checked are its results, how often its threads read global and shared memory, and how many words
of a bank and lines of memory an access of a warp asks for. ``python -m nbody.lessons.task k06 FILE`` checks one.
"""

import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nbody.errors import InputError, last_line, printable, unknown

if TYPE_CHECKING:
    from nbody.compute.simulator.traced import Access

TASKS = ("k01", "k04", "k05", "k06", "k07", "k08", "k09", "k10", "k11", "k12", "k13", "k14", "k15")
"""Rungs whose kernels can be written as a task."""

START = '''"""{title}. {idea}

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


def start(name: str, file: str) -> str:
    """The file with which a task begins. Raises InputError: there is no such task."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    from nbody.linalg import LADDER

    rung = LADDER.load(name)
    return START.format(name=name, file=file, title=rung.title[0].upper() + rung.title[1:], idea=rung.idea)


def check(name: str, path: Path) -> Iterator[tuple[bool, str]]:
    """What is right and what is not in a solution, in the simulator. Raises InputError: the file can't be used."""
    from nbody.lessons.accesses import ONE_BLOCK, counted, trace_of, traced
    from nbody.linalg import LADDER
    from nbody.linalg.rung import ProductLaunch, ProductShape

    try:
        launch = runpy.run_path(str(path))["launch"]
    except KeyError:
        raise InputError(f"{printable(path)}: has no function 'launch(shape, dtype)'") from None
    rung, shape, vectors = LADDER.load(name), ONE_BLOCK[name], "vector loads" in LADDER.load(name).claims
    found = {}
    ragged = shape if name == "k01" else ProductShape(shape.m + 1, shape.n + 5, shape.k + 3)
    for each in dict.fromkeys((shape, ragged)):
        made = launch(each, np.dtype(np.float32))
        if not isinstance(made, ProductLaunch):
            raise InputError(f"{printable(path)}: launch() returns {type(made).__name__}, not a ProductLaunch")
        found[each], error = trace_of(made, each)
        yield error < rung.tolerance(each.k, "float32"), f"results of {each}: largest relative error {error:.1e}"
    threads = found[shape][0, 0]
    own, claimed = counted(threads, shape.k, vectors), rung.reads(shape)
    for kind, per_product, allowed in (
        ("global", own.from_global, claimed.from_global),
        ("shared", own.from_shared, claimed.from_shared),
    ):
        reads, allowed = per_product / max(own.products, 1), allowed / shape.k
        yield (
            reads <= allowed * 1.001,
            f"reads of {kind} memory per multiply-add: {reads:.4g}, the rung has {allowed:.4g}",
        )
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


def main(name: str, path: str) -> int:
    """Print an answer; 0 if all is right, 1 if not, 2 if the file can't be used."""
    good = True
    try:
        for right, text in check(name, Path(path)):
            print("ok     " if right else "not yet", text, flush=True)
            good = good and right
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        last = last_line(str(error), "")
        print(f"error: {printable(path)}: {type(error).__name__}: {last}", file=sys.stderr)
        return 2
    return 0 if good else 1


if __name__ == "__main__":
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # before Numba is imported
    sys.exit(main(*sys.argv[1:]))
