"""What a rung's kernel reads and writes, counted from its trace in the simulator."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody.compute.simulator.traced import BARRIER, Access, Trace, trace
from nbody.linalg import (
    LADDER,
    k01_one_block,
    k04_bank_conflicts,
    k07_results_per_thread,
    k09_sliding_window,
    k11_outer_products,
    k14_transposed,
)  # fmt: skip
from nbody.linalg.k17_champion import TILINGS, tiled_launch
from nbody.linalg.rung import ProductShape

BANKS, LINE = 32, 128
"""Banks of shared memory, each a word of 4 bytes wide, and bytes of a line of global memory."""

CHAMPION = TILINGS["float32"][0][1]
"""The large tiling of k17."""

ONE_BLOCK = {
    name: ProductShape(side, side, depth)
    for names, side, depth in (
        ("k01", k01_one_block.LARGEST, k01_one_block.LARGEST),
        ("k04 k05 k06", k04_bank_conflicts.TILE, k04_bank_conflicts.TILE),
        ("k07 k08", k07_results_per_thread.TILE, k07_results_per_thread.TILE),
        ("k09 k10", k09_sliding_window.TILE, k09_sliding_window.DEPTH),
        ("k11", 2 * k11_outer_products.SIDE, k11_outer_products.DEPTH),
        ("k12", 4 * k11_outer_products.SIDE, k11_outer_products.DEPTH),
        ("k13", 8 * k11_outer_products.SIDE, k11_outer_products.DEPTH),
        ("k14", k14_transposed.TILE, k14_transposed.DEPTH),
        ("k15", k14_transposed.TILE, 2 * k14_transposed.DEPTH),
        ("k17", CHAMPION.block[0], CHAMPION.depth),
    )
    for name in names.split()
}
"""Float32 products that take one block, and one window of shared memory (k15: two)."""


@cache
def traced(name: str, shape: ProductShape | None = None) -> Trace:
    """The trace of a rung's kernel for random float32 matrices, of one block where no shape is given. (k17 has its
    large tiling.)"""
    shape = shape or ONE_BLOCK[name]
    dtype = np.dtype(np.float32)
    launch = LADDER.load(name).launch(shape, dtype)
    if name == "k17":
        launch = tiled_launch(shape, dtype, CHAMPION, 1)
    found, error = trace_of(launch, shape)
    assert error < 1e-4
    return found


def trace_of(launch: Any, shape: ProductShape) -> tuple[Trace, float]:
    """The trace of a ``ProductLaunch`` for random float32 matrices, and the largest relative error of its product."""
    rng = np.random.default_rng(1)
    a, b = (rng.random(size, dtype=np.float32) for size in ((shape.m, shape.k), (shape.k, shape.n)))
    c = np.full((shape.m, shape.n), np.nan, np.float32)
    more = {f"scratch{i}": np.zeros(scratch.shape, scratch.dtype) for i, scratch in enumerate(launch.scratch)}
    found = trace(launch.kernel, launch.grid, launch.block, a=a, b=b, c=c, **more)
    right = a.astype(np.float64) @ b
    return found, float(np.nan_to_num(abs(c - right) / right, nan=np.inf).max())


def of_warp(threads: list[list[Access]], array: str, write: bool, warp: int = 0) -> np.ndarray:
    """Flat indices (accesses, 32) of the accesses of one warp to an array, in order."""
    lanes = threads[32 * warp : 32 * warp + 32]
    return np.array([[e.index for e in lane if e.array == array and e.write == write] for lane in lanes]).T


def conflicts(words: np.ndarray) -> int:
    """How many different words of one bank the lanes of an access ask for: the times that shared memory has to serve."""
    wanted = np.unique(words)
    return int(np.bincount(wanted % BANKS).max())


class Count(NamedTuple):
    """Multiply-adds of a thread, and its accesses to read factors from global and from shared memory."""

    products: int
    from_global: float
    from_shared: float


def count(name: str) -> Count:
    """What thread 0 of a rung's block does."""
    return counted(traced(name)[0, 0], ONE_BLOCK[name].k, "vector loads" in LADDER.load(name).claims)


def counted(threads: list[list[Access]], depth: int, vectors: bool) -> Count:
    """What thread 0 of a block does in a product of this k. A number that it reads again before the next barrier stays in a
    register, and with vectors four neighbours are one access."""
    results = len({e.index for e in threads[0] if e.array == "c" and e.write})
    shared = 0
    window: dict[str, set[int]] = {}
    for event in [*threads[0], Access(BARRIER, False, 0)]:
        if event.array == BARRIER:
            shared += sum(_accesses(words, vectors) for words in window.values())
            window = {}
        elif event.array.startswith("shared") and not event.write:
            window.setdefault(event.array, set()).add(event.index)
    all_reads = sum(len({e.index for e in one if e.array == name and not e.write}) for one in threads for name in "ab")
    return Count(results * depth, all_reads / len(threads), shared)


def _accesses(words: set[int], vectors: bool) -> int:
    """Loads that bring these words: one for each, or one for four where a whole vector is wanted."""
    if not vectors:
        return len(words)
    groups = [set(range(4 * q, 4 * q + 4)) & words for q in {w // 4 for w in words}]
    return sum(1 if len(group) == 4 else len(group) for group in groups)
