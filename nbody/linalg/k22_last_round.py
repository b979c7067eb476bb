"""k22: k21 with its last round of tiles split along k.

A card works at as many tiles at a time as blocks find room, its places: 132 multiprocessors times 4 on an H200. The last of
them leave most places empty: 4096 tiles are 7 rounds of 528, and 400 more that take as long as another round.

- The tiles of whole rounds are k21's. Each of those that are left is cut along k into parts, a block each: 400 tiles in 9
  parts are 3600 blocks of a ninth of the length, which fill 6.8 rounds of theirs, 7.78 rounds of tiles in all.
- The grid has one dimension: first the blocks of whole tiles, in k21's order, then the parts, those of a tile side by side.
- A block leaves the sums of a part as its threads hold them, and the last to arrive adds up those of all, always in the same
  order, see :func:`~nbody.linalg.partial_sums.tile_adder`. So the same product has the same bits every time.
- The loop over slabs is k21's.

One H200, n = 4096: 28.6 to 28.7 TFLOP/s with 5, 7 or 9 parts, 85.5 % of the peak, where k21 makes 27.9.

A sum in parts differs from k21's by rounding, and errs no more: each of its numbers goes through fewer additions. Where
there is no last round to fill (fewer tiles than places, or as many as fill them, or a short sum), this is k21.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from nbody.gpu import available, bounded, cuda, facts
from nbody.linalg import k17_champion, k21_factors_kept
from nbody.linalg.k21_factors_kept import (
    REAL,
    TILING,
    inlined,
    kernel_body,
    suits,
    tiles,
    variant,
)
from nbody.linalg.partial_sums import tile_adder
from nbody.linalg.rung import Launch, Rung, Scratch, Shape, tile_reads

RESULTS = TILING.thread[0] * TILING.thread[1]
MULTIPROCESSORS = 132
"""An H200's, taken where there is no card."""
MOST_PARTS = 12
LEAST_SLABS = 8
"""The shortest part worth a block of its own, in slabs."""
PART_COSTS = 0.003
"""What a part more takes, of the time of a tile: its first slab, which nothing hides, and leaving and adding its sums."""


@cache
def kernel(vectors: bool, guarded: bool) -> Any:
    """The kernel, see :func:`~nbody.linalg.k21_factors_kept.kernel_body`. Its scratch: ``partial`` (tiles to split, parts,
    numbers of a tile) and ``arrived`` (tiles to split)."""
    width, depth = TILING.block[1], TILING.depth
    add_up = tile_adder(REAL, RESULTS, TILING.threads)

    @inlined
    def own(scratch):
        """Blocks of whole tiles, the parts of others, and which of those blocks this is. All in 32 bits: in 64 a division
        is a call, behind which nothing is known of the registers."""
        parts = np.uint32(scratch[0].shape[1])
        whole = np.uint32(np.uint32(cuda.gridDim.x) - np.uint32(scratch[1].shape[0] * parts))
        return whole, parts, np.uint32(cuda.blockIdx.x)

    @inlined
    def work(a, c, scratch):
        whole, parts, tile = own(scratch)
        across, count = np.uint32((c.shape[1] + width - 1) // width), np.uint32((a.shape[1] + depth - 1) // depth)
        begin, end = np.uint32(0), count
        if tile >= whole:
            beyond = np.uint32(tile - whole)
            part = np.uint32(beyond % parts)
            tile = np.uint32(whole + beyond // parts)
            begin = np.uint32(np.uint32(count * part) // parts)
            end = np.uint32(np.uint32(count * (part + 1)) // parts)
        return np.uint32(tile // across), np.uint32(tile % across), begin, end

    @inlined
    def finished(sums, scratch, t):
        whole, parts, block = own(scratch)
        complete = True
        if block >= whole:
            beyond = np.uint32(block - whole)
            split, part = np.uint32(beyond // parts), np.uint32(beyond % parts)
            complete = add_up(sums, scratch[0], scratch[1], split, part, parts, t)
        return complete

    product = kernel_body(vectors, guarded, work, finished)

    @cuda.jit(**bounded(TILING.threads, TILING.resident))
    def last_round_split(a, b, c, partial, arrived):
        product(a, b, c, (partial, arrived))

    return last_round_split


def split_launch(made: Any, shape: Shape, split: int, parts: int) -> Launch:
    """The launch of a kernel with the last ``split`` tiles in ``parts`` parts each."""
    whole = math.prod(tiles(shape)) - split
    partial = Scratch(REAL, (split, parts, math.prod(TILING.block)))
    return Launch(made, (whole + split * parts,), (TILING.threads,), (partial, Scratch(np.uint32, (split,))))


@cache
def places() -> int:
    """The blocks that the card works at at a time; where there is none, an H200's."""
    return TILING.resident * (facts().multiprocessors if available() else MULTIPROCESSORS)


def plan(shape: Shape, places: int) -> tuple[int, int]:
    """The tiles to split, and the parts of each: those for which the last round, counted in rounds of whole tiles, and the
    cost of the parts come to least. No tiles, in one part, where that does not gain."""
    count, slabs = math.prod(tiles(shape)), -(-shape.k // TILING.depth)
    split = count % places

    def rounds(parts: int) -> float:
        return -(-split * parts // places) / parts + (parts > 1) * parts * PART_COSTS

    if count < places or split == 0:
        return 0, 1
    best = min(range(1, max(1, min(MOST_PARTS, slabs // LEAST_SLABS)) + 1), key=rounds)
    return (split, best) if best > 1 else (0, 1)


def own_launch(shape: Shape, parts: int | None = None) -> Launch:
    """The launch of this rung's own kernel for float64 matrices of any shape, or k21's where no tiles are to be split.
    ``parts``: another number than the planned one; with it, all tiles beyond whole rounds are split."""
    split, planned = plan(shape, places())
    if parts is not None:
        split, planned = math.prod(tiles(shape)) % places(), parts
    if split == 0 or planned == 1:
        return k21_factors_kept.own_launch(shape)
    return split_launch(kernel(*variant(shape)), shape, split, planned)


def launch(shape: Shape, dtype: Any) -> Launch:
    """This rung's own kernel where it suits, else k17's launch."""
    return own_launch(shape) if suits(shape, dtype) else k17_champion.launch(shape, dtype)


RUNG = Rung(
    title="last round split",
    idea="float64: the tiles of the last, unfull round are cut along k, so that few places are empty, and not for long.",
    limit="register reads, two operands in two cycles, and the reads of shared memory.",
    launch=launch,
    reads=tile_reads(TILING.block, TILING.thread, words=2),
    improves="k21",
    claims=frozenset({"vector loads", "asynchronous copies"}),
    example=4096,
)
