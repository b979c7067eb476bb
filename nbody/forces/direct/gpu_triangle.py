"""Each pair once: how the triangle of pairs is divided among the blocks, and how their partial sums are added.

The bodies are the rows (in tiles) and the columns (in chunks) of a square; only its half on and above the diagonal is
computed.

            chunk 0   1   2   3   4   5   6   7            tile = BODIES chunks (2 in this picture)
    tile 0      [ D   D ] .   .   .   .   .   .            D: on the diagonal, each pair is computed twice
    tile 1              [ D   D ] .   .   .   .            .: off the diagonal, each pair is computed once
    tile 2                      [ D   D ] .   .
    tile 3                              [ D   D ]          a unit: one tile and one chunk

The units, counted along the rows, are divided into equal runs, one per block of the kernel. So every block has the same work
for any N; a grid of equal squares would leave up to a third of the card idle at N = 20480. A block writes the sums of its
rows once per tile of its run, and the sums of its columns once per unit off the diagonal. The kernels in
:mod:`nbody.forces.direct.gpu_pair_sums` add them in a fixed order: the bits are the same every time, and no atomics are
needed.

For many bodies the runs are divided into segments, a power of two. Each segment is summed in the order of its units, and the
segments are added pairwise in one binary tree. So launches may compute any segments: several, because the column sums of all
tiles would not fit the memory and one launch would take seconds, or those of one GPU of several. Runs and segments follow
from N, the tiling and the card; the bits do not depend on the launches, nor on the number of GPUs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nbody import compute
from nbody.forces.direct.gpu_pieces import SEGMENTS_FROM, interactions_per_piece

LANES = 32

SEGMENTS = 64
"""The fewest segments, and the most of a launch. (There are more segments only if a launch can have one of them alone.)"""

WAVES, UNITS_PER_RUN, UNITS_PER_HALF = 64, 40, 20
"""With segments there are as many runs as fit on the card at a time, times the largest power of two, at most WAVES, that
leaves UNITS_PER_RUN; or times two, if that leaves UNITS_PER_HALF. So a part of the runs fills a card, too. A run costs half
a unit more than its units (one H200, N = 65536 and 262144)."""

MOST_RUNS = (1 << 16) - 1
"""The kernel computes the first unit of a run with 32-bit products."""

COLUMNS_BUDGET = 2 << 30
"""The most bytes for column sums. If the segments need more, they are divided among launches."""

COLUMNS_FRACTION = 4
"""On a small card the most is 1/COLUMNS_FRACTION of its memory, rounded down to a power of two: the driver reserves a
varying amount for itself, and the bits must not depend on it."""


class PairTiling(NamedTuple):
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


def first_unit(block, blocks, quotient, remainder):
    """block · units // blocks, the first unit of a block's run, for units = quotient · blocks + remainder.

    A 64-bit division is a function call in a kernel. After a call the assembler no longer assumes that the threads of a warp
    stay together, and adds instructions to every shuffle: 2 % slower (one H200, N = 262144).
    """
    return block * quotient + np.int64(np.uint32(np.uint32(block) * np.uint32(remainder)) // np.uint32(blocks))


def block_of(unit, units, blocks):
    """The block whose run ``[b units // blocks, (b+1) units // blocks)`` holds a unit."""
    return ((unit + 1) * blocks - 1) // units


class CardLimits(NamedTuple):
    """What fits on a card: ``blocks`` of the kernel at a time, ``budget`` bytes of column sums, and ``piece``
    interactions per launch (:data:`~nbody.forces.direct.gpu_pieces.PIECE`)."""

    blocks: int
    budget: int
    piece: int


def card_limits(tiling: PairTiling, dtype: np.dtype, blocks: int | None = None) -> CardLimits:
    """The limits of the current card, or of an H200 if there is none; ``dtype`` is the type of a pair's arithmetic.

    ``blocks``: blocks of the kernel that the card holds at a time; None: the most that it holds of any kernel.
    """
    memory = compute.facts().memory_total if compute.available() else 139 << 30
    fraction = 1 << (memory // COLUMNS_FRACTION).bit_length() - 1
    most = compute.blocks_at_most(tiling.chunk) if blocks is None else blocks
    return CardLimits(most, min(COLUMNS_BUDGET, fraction), interactions_per_piece(dtype))


@dataclass(frozen=True)
class PairLaunch:
    """The segments ``begin`` to ``end`` (not included), computed in one launch.

    Attributes:
        run, blocks: the first of its runs, and their number.
        first, tiles: the first tile of these runs, and the number of tiles.
        units: units of work.
    """

    begin: int
    end: int
    run: int
    blocks: int
    first: int
    tiles: int
    units: int


@dataclass(frozen=True)
class PairWork:
    """How the triangle of ``count`` bodies is divided into ``runs``, and these into ``segments``; a launch computes at most
    ``step`` segments, a power of two. Made by :func:`divided`."""

    count: int
    tiling: PairTiling
    runs: int
    segments: int
    step: int

    @property
    def chunks(self) -> int:
        """Chunks of columns."""
        return -(-self.count // self.tiling.chunk)

    @property
    def units(self) -> int:
        """Units of the triangle."""
        return units_before(-(-self.count // self.tiling.tile), self.chunks, self.tiling.bodies)

    @property
    def run_units(self) -> tuple[np.int64, np.uint32]:
        """``quotient`` and ``remainder`` of :func:`first_unit`."""
        return np.int64(self.units // self.runs), np.uint32(self.units % self.runs)

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each segment begins, (segments + 1, 3): tile, chunk, run."""
        tiles = -(-self.count // self.tiling.tile)
        run = np.arange(self.segments + 1) * self.runs // self.segments
        unit = run * self.units // self.runs
        before = units_before(np.arange(tiles + 1), self.chunks, self.tiling.bodies)
        tile = np.searchsorted(before, unit, side="right") - 1
        return np.stack((tile, tile * self.tiling.bodies + unit - before[tile], run), axis=1)

    def launches(self, begin: int, end: int) -> Iterator[PairLaunch]:
        """The launches that compute the segments ``begin`` to ``end``, in order."""
        while begin < end:
            stop = min(end, (begin // self.step + 1) * self.step)
            run, last = int(self.starts[begin, 2]), int(self.starts[stop, 2])
            first, unit = int(self.starts[begin, 0]), run * self.units // self.runs
            units = last * self.units // self.runs - unit
            tiles = int(self.starts[stop, 0] + (self._within(stop) > 0)) - first
            yield PairLaunch(begin, stop, run, last - run, first, tiles, units)
            begin = stop

    def _within(self, segment: int) -> int:
        """Units of the segment's first tile before it."""
        tile, chunk, _ = self.starts[segment]
        return int(chunk - tile * self.tiling.bodies)

    def width(self, launch: PairLaunch) -> int:
        """The number of bodies from a launch's first tile on."""
        return max(0, self.count - launch.first * self.tiling.tile)

    def columns(self, launch: PairLaunch) -> int:
        """Numbers in a launch's sums of columns."""
        return launch.tiles * 4 * self.width(launch)

    def rows(self, launch: PairLaunch) -> int:
        """Numbers in a launch's sums of rows."""
        return (launch.blocks + launch.tiles) * 4 * self.tiling.tile


def divided(count: int, tiling: PairTiling, itemsize: int, card: CardLimits) -> PairWork:
    """How the work on ``count`` bodies is divided on a card; ``itemsize``: bytes per number of a column sum."""
    one = PairWork(count, tiling, 1, 1, 1)
    if count < SEGMENTS_FROM:
        return PairWork(count, tiling, min(card.blocks, one.units), 1, 1)
    waves = 2 if 2 * card.blocks * UNITS_PER_HALF <= one.units else 1
    while 2 * waves <= WAVES and 2 * waves * card.blocks * UNITS_PER_RUN <= one.units:
        waves *= 2
    runs = min(waves * card.blocks, one.units, MOST_RUNS)
    segments, step = SEGMENTS, 0
    while not step:
        sizes = [2**k for k in range(segments.bit_length() - 1, -1, -1)]
        step = next((k for k in sizes if _fits(PairWork(count, tiling, runs, segments, k), itemsize, card)), 0)
        if not step and segments >= runs:
            step = 1  # a card too small for a single run
        segments *= 1 if step else 2
    return PairWork(count, tiling, runs, segments, step)


def _fits(work: PairWork, itemsize: int, card: CardLimits) -> bool:
    """True if every launch fits the budget and the piece."""
    pairs = work.tiling.tile * work.tiling.chunk
    launches = work.launches(0, work.segments)
    return all(work.columns(each) * itemsize <= card.budget and 2 * each.units * pairs <= card.piece for each in launches)
