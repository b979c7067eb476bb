"""Each pair once: how the triangle of pairs is shared out over the blocks, and how their partial sums are added.

The bodies are rows (in tiles) and columns (in chunks) of a square; only the half on and above its diagonal is worked on.

            chunk 0   1   2   3   4   5   6   7            tile = BODIES chunks (2 in this picture)
    tile 0      [ D   D ] .   .   .   .   .   .            D: on the diagonal, both ways of each pair are computed
    tile 1              [ D   D ] .   .   .   .            .: off it, once for both
    tile 2                      [ D   D ] .   .
    tile 3                              [ D   D ]          a unit: one tile and one chunk

The units, counted along the rows, are cut into as many equal runs as blocks fit on the card, and a block works through
its run: every block has the same work whatever N is, where a grid of equal squares leaves up to a third of the card idle
at N = 20480. A block writes what its rows felt once for each tile it touched, and what its columns felt once for each
unit off the diagonal; :func:`build_sum` adds them in the order of the units, so that the same bits come every time and
no atomics are needed.

Of many bodies the tiles are worked on in panels, one after another: what columns felt would not fit the memory, and one
launch for all would take seconds. The panels decide the order of the sums; they follow from N, the tiling and the card, and
not from what is free or busy at the moment.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.direct.gpu_pieces import interactions_a_piece
from nbody.gpu import cuda

LANES = 32
SLICES = 8
"""Threads that share the partial sums of one number."""

COLUMNS_BUDGET = 2 << 30
"""Bytes of what columns felt that are kept at once, at most. More tiles than that are worked on in panels."""

COLUMNS_SHARE = 4
"""The same on a small card: this part of its memory, rounded down to a power of two (drivers keep a little for themselves,
now more, now less, and the bits must not depend on it)."""


class Tiling(NamedTuple):
    """``warps`` a block and ``bodies`` a thread."""

    warps: int
    bodies: int

    @property
    def chunk(self) -> int:
        """Columns a unit, and threads a block."""
        return self.warps * LANES

    @property
    def tile(self) -> int:
        """Rows a unit."""
        return self.chunk * self.bodies


def units_before(tile, chunks, bodies):
    """The number of units in the rows above a tile."""
    return tile * chunks - bodies * (tile * (tile - 1) // 2)


def first_unit(block, blocks, share, extra):
    """block · units // blocks, where a block's run of units begins, for units = share · blocks + extra.

    A division of 64 bits would be a call in a kernel, after which the assembler can't tell any more whether the threads of
    a warp go the same way, and prepares every shuffle for lanes apart: 2 % slower (one H200, N = 262144).
    """
    return block * share + np.int64(np.uint32(np.uint32(block) * np.uint32(extra)) // np.uint32(blocks))


def block_of(unit, units, blocks):
    """The block whose run ``[b units // blocks, (b+1) units // blocks)`` holds a unit."""
    return ((unit + 1) * blocks - 1) // units


class Room(NamedTuple):
    """What a card has room for: ``blocks`` of the kernel at a time, ``budget`` bytes of what columns felt, and a ``piece``
    of so many interactions (see :mod:`nbody.forces.direct.gpu_pieces`)."""

    blocks: int
    budget: int
    piece: int


def room_on_card(tiling: Tiling, dtype: np.dtype, blocks: int | None = None) -> Room:
    """The room on the current card, or on an H200 where there is none, for pair arithmetic of a dtype.

    ``blocks``: how many of the kernel it holds; if that is not known yet, the most that it could hold of any.
    """
    memory = gpu.facts().memory_total if gpu.available() else 139 << 30
    share = 1 << (memory // COLUMNS_SHARE).bit_length() - 1
    most = gpu.blocks_at_most(tiling.chunk) if blocks is None else blocks
    return Room(most, min(COLUMNS_BUDGET, share), interactions_a_piece(dtype))


@dataclass(frozen=True)
class Panel:
    """Tiles ``first`` to ``last`` (not included), worked on in one launch of so many blocks: so many ``units``."""

    first: int
    last: int
    blocks: int
    units: int

    @property
    def shares(self) -> tuple[np.int64, np.uint32]:
        """``share`` and ``extra`` of :func:`first_unit`."""
        return np.int64(self.units // self.blocks), np.uint32(self.units % self.blocks)


def panels(count: int, tiling: Tiling, itemsize: int, room: Room) -> Iterator[Panel]:
    """The launches that cover the triangle of ``count`` bodies, in order; the first is the largest.

    ``itemsize``: bytes of a number of what columns felt.
    """
    chunks = -(-count // tiling.chunk)
    tiles = -(-count // tiling.tile)
    size = max(1, min(room.budget // (count * 4 * itemsize), room.piece // (2 * tiling.tile * count)))
    for first in range(0, tiles, size):
        last = min(first + size, tiles)
        units = units_before(last, chunks, tiling.bodies) - units_before(first, chunks, tiling.bodies)
        yield Panel(first, last, min(room.blocks, units), units)


class Buffers:
    """What rows and columns felt, on the device, in a panel and in those that are smaller.

    Attributes:
        columns: (tiles, 4, N): what tile R did to body j, for j behind the tile: a force's three components, and the
            potential, if that of each body is wanted.
        rows: (blocks + tiles, 4, T): what block b found for tile R, in row b + R. (From one run to the next either the
            block or the tile changes, or both, and neither ever falls: b + R is different for each.)
    """

    def __init__(self, count: int, tiling: Tiling, row_dtype: np.dtype, column_dtype: np.dtype, largest: Panel) -> None:
        rows, columns = shapes_of_buffers(count, tiling, largest)
        needed = math.prod(rows) * row_dtype.itemsize + math.prod(columns) * column_dtype.itemsize
        with gpu.out_of_memory(f"the sums of {count} particles", needed):
            self.columns = cuda.device_array(columns, column_dtype)
            self.rows = cuda.device_array(rows, row_dtype)


def shapes_of_buffers(count: int, tiling: Tiling, largest: Panel) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of the rows and of the columns of :class:`Buffers`."""
    tiles = largest.last - largest.first
    return (largest.blocks + tiles, 4, tiling.tile), (tiles, 4, count)


def build_sum(tiling: Tiling, masses: str, real: type, of_each: bool) -> Any:
    """The kernel that adds partial sums to accelerations: SLICES threads for each body, and blockIdx.y is the component.

    Sums are float64 and some hundred terms a body; a thread alone would wait for one read after another. ``masses`` says
    by what they still must be multiplied, see :func:`nbody.forces.direct.gpu_pairs.masses_of`; those of the potential
    (component 3) were weighted by the other's mass only, and are those of each body or the energy's.

    It is ``kernel(body, rows, columns, acceleration, G, first, last, blocks)``, a grid of (⌈N/LANES⌉, 3 or 4) blocks of
    (LANES, SLICES) threads; acceleration (N, 4) is added to where ``first`` > 0, and else set.
    """
    felt_by_columns = 4 if of_each else 3
    tile_size, chunk_size, bodies = tiling.tile, tiling.chunk, tiling.bodies
    before, block_with = gpu.device_function(units_before), gpu.device_function(block_of)

    @gpu.kernel
    def add(body, rows, columns, acceleration, G, first, last, blocks):
        of_slice = cuda.shared.array((SLICES, LANES), np.float64)
        lane, piece, component = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.y
        i = cuda.blockIdx.x * LANES + lane
        n = body.shape[0]
        total = 0.0
        if i < n:
            tile = i // tile_size
            if component < felt_by_columns:
                for above in range(first + piece, min(tile, last), SLICES):
                    total += columns[above - first, component, i]
            if first <= tile < last:
                chunks = (n + chunk_size - 1) // chunk_size
                start = before(first, chunks, bodies)
                units = before(last, chunks, bodies) - start
                lowest = block_with(before(tile, chunks, bodies) - start, units, blocks)
                highest = block_with(before(tile + 1, chunks, bodies) - start - 1, units, blocks)
                for block in range(lowest + piece, highest + 1, SLICES):
                    total += rows[block + tile - first, component, i - tile * tile_size]
        of_slice[piece, lane] = total
        cuda.syncthreads()
        if piece > 0 or i >= n:
            return
        for other in range(1, SLICES):
            total += of_slice[other, lane]
        factor = G
        if masses == "equal":
            factor = G * body[i, 3]
        elif masses == "product" and component < 3:
            factor = G / real(body[i, 3])  # as the pairs were weighted
        if component == felt_by_columns:
            factor += factor  # the energy's: the whole term of a pair went to one body
        if first > 0:
            acceleration[i, component] += factor * total
        else:
            acceleration[i, component] = factor * total

    return add
