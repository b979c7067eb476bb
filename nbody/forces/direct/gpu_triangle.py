"""Each pair once: how the triangle of pairs is divided among the blocks, and how their partial sums are added.

The bodies are the rows (in tiles) and the columns (in chunks) of a square; only its half on and above the diagonal is
computed.

            chunk 0   1   2   3   4   5   6   7            tile = BODIES chunks (2 in this picture)
    tile 0      [ D   D ] .   .   .   .   .   .            D: on the diagonal, each pair is computed twice
    tile 1              [ D   D ] .   .   .   .            .: off the diagonal, each pair is computed once
    tile 2                      [ D   D ] .   .
    tile 3                              [ D   D ]          a unit: one tile and one chunk

The units, counted along the rows, are divided into equal runs, one per block that fits on the card at a time. So every block
has the same work for any N; a grid of equal squares would leave up to a third of the card idle at N = 20480. A block writes
the sums of its rows once per tile of its run, and the sums of its columns once per unit off the diagonal. :func:`build_sum`
adds them in the order of the units: the bits are the same every time, and no atomics are needed.

For many bodies the tiles are divided into panels, one launch each: the column sums of all tiles would not fit the memory,
and one launch would take seconds. The panels determine the order of the sums; they depend on N, the tiling and the card,
and not on how much memory is free.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nbody import gpu
from nbody.forces.direct.gpu_pieces import interactions_per_piece
from nbody.gpu import cuda

LANES = 32
SLICES = 8
"""Threads that share the partial sums of one number."""

COLUMNS_BUDGET = 2 << 30
"""The most bytes for column sums. If the tiles need more, they are divided into panels."""

COLUMNS_SHARE = 4
"""On a small card the most is 1/COLUMNS_SHARE of its memory, rounded down to a power of two: the driver reserves a varying
amount for itself, and the bits must not depend on it."""


class Tiling(NamedTuple):
    """``warps`` per block and ``bodies`` per thread."""

    warps: int
    bodies: int

    @property
    def chunk(self) -> int:
        """Columns per unit, and threads per block."""
        return self.warps * LANES

    @property
    def tile(self) -> int:
        """Rows per unit."""
        return self.chunk * self.bodies


def units_before(tile, chunks, bodies):
    """The number of units in the rows above a tile."""
    return tile * chunks - bodies * (tile * (tile - 1) // 2)


def first_unit(block, blocks, share, extra):
    """block · units // blocks, the first unit of a block's run, for units = share · blocks + extra.

    A 64-bit division is a function call in a kernel. After a call the assembler no longer assumes that the threads of a warp
    stay together, and adds instructions to every shuffle: 2 % slower (one H200, N = 262144).
    """
    return block * share + np.int64(np.uint32(np.uint32(block) * np.uint32(extra)) // np.uint32(blocks))


def block_of(unit, units, blocks):
    """The block whose run ``[b units // blocks, (b+1) units // blocks)`` holds a unit."""
    return ((unit + 1) * blocks - 1) // units


class Room(NamedTuple):
    """What a card has room for: ``blocks`` of the kernel at a time, ``budget`` bytes of column sums, and ``piece``
    interactions per launch (see :mod:`nbody.forces.direct.gpu_pieces`)."""

    blocks: int
    budget: int
    piece: int


def room_on_card(tiling: Tiling, dtype: np.dtype, blocks: int | None = None) -> Room:
    """The room on the current card, or on an H200 if there is none; ``dtype`` is the type of a pair's arithmetic.

    ``blocks``: blocks of the kernel that the card holds at a time; None: the most that it holds of any kernel.
    """
    memory = gpu.facts().memory_total if gpu.available() else 139 << 30
    share = 1 << (memory // COLUMNS_SHARE).bit_length() - 1
    most = gpu.blocks_at_most(tiling.chunk) if blocks is None else blocks
    return Room(most, min(COLUMNS_BUDGET, share), interactions_per_piece(dtype))


@dataclass(frozen=True)
class Panel:
    """Tiles ``first`` to ``last`` (not included): ``units`` units, computed in one launch of ``blocks`` blocks."""

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

    ``itemsize``: bytes per number of a column sum.
    """
    chunks = -(-count // tiling.chunk)
    tiles = -(-count // tiling.tile)
    size = max(1, min(room.budget // (count * 4 * itemsize), room.piece // (2 * tiling.tile * count)))
    for first in range(0, tiles, size):
        last = min(first + size, tiles)
        units = units_before(last, chunks, tiling.bodies) - units_before(first, chunks, tiling.bodies)
        yield Panel(first, last, min(room.blocks, units), units)


class Buffers:
    """The partial sums of rows and columns on the device, for the largest panel and all smaller ones.

    Attributes:
        columns: (tiles, 4, N): the sum over tile R for body j, for j after the tile: three components of the force, and
            the potential if it is computed for each body.
        rows: (blocks + tiles, 4, T): the sum of block b for tile R, in row b + R. (Along the runs neither b nor R ever
            decreases, and at least one of them increases: b + R is distinct for each.)
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
    """The kernel that adds the partial sums of each body: SLICES threads per body; blockIdx.y is the component.

    Sums are float64 with some hundred terms per body; a single thread would wait for each read. ``masses`` determines the
    factor that the sums still lack, see :func:`nbody.forces.direct.gpu_pairs.masses_of`. Those of the potential (component
    3) are weighted by the other body's mass only; with ``of_each`` they are the potential of each body, else the energy's.

    It is ``kernel(body, rows, columns, acceleration, G, first, last, blocks)``, a grid of (⌈N/LANES⌉, 3 or 4) blocks of
    (LANES, SLICES) threads. It sets acceleration (N, 4) if ``first`` is 0, and else adds to it.
    """
    column_components = 4 if of_each else 3
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
            if component < column_components:
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
        if component == column_components:
            factor += factor  # the energy: the whole term of a pair was added to one body
        if first > 0:
            acceleration[i, component] += factor * total
        else:
            acceleration[i, component] = factor * total

    return add
