"""The position-update kernel, the third of the lecture: all moves of a particle between two force evaluations.

It makes the parts of moves (:mod:`nbody.state.moves`), and packs frames: it copies their data to their areas.

Each move is one line per particle, and a launch takes longer than any of them: 20480 bodies are 1 MB, which an H200 moves
in a microsecond. So a scheme that is a table of moves asks for all moves between two force evaluations at once. In a
recorded leapfrog run one launch makes the kick that ends a step, the packing of its frame, and the next step's kick and
drift.

One kernel makes all moves in a loop over their list. So the same moves give the same bits in every combination, and there is
only one kernel to compile.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from nbody.compute import cuda, device_function, kernel, row
from nbody.compute.in_kernels.reduction import sum_over_lanes
from nbody.state.clock import StateClock
from nbody.state.moves import (
    DRIFT,
    DRIFTS,
    KICK,
    NOTHING,
    TAYLOR,
    TAYLOR_DRIFT,
    TAYLOR_TERM,
    MoveKind,
    StateMove,
    StateMoves,
    parts_of,
)
from nbody.state.sums import SUMS

PACK = 6

MOST = 4
"""The most moves per launch."""

LANES, THREADS = 32, 128


class Area(NamedTuple):
    """The memory that a frame is packed into.

    Attributes:
        rows: (2, N, 3), positions and velocities.
        block_sums: (B, SUMS) float64, the sums over each block of threads; see :mod:`nbody.state.sums`.
        extras: (N,) float64 each, what else the frame brings; other kernels fill them.
    """

    rows: Any
    block_sums: Any
    extras: tuple[Any, ...] = ()


def blocks(count: int) -> int:
    """Blocks of threads for ``count`` particles."""
    return -(-count // THREADS)


@device_function
def _add_up(terms, block_sums):
    """Sum the terms of a block's particles, in float64 and always in the same order: 128 terms become 64, 32, 16 …, the
    last five times by shuffles."""
    t = np.uint32(cuda.threadIdx.x)
    lane = t % LANES
    for part in range(SUMS * LANES // THREADS):  # each warp computes some of the sums
        k = t // LANES + np.uint32(part * THREADS // LANES)
        total = (terms[k, lane] + terms[k, lane + 64]) + (terms[k, lane + 32] + terms[k, lane + 96])
        total = sum_over_lanes(total)
        if lane == 0:
            block_sums[cuda.blockIdx.x, k] = total


@kernel("gpu")
def make_moves(body, velocity, acceleration, kinds, factors, rows, block_sums):
    """Make MOST moves, given by ``kinds`` and ``factors``, one after the other; at most one of them packs a frame.

    body, velocity and acceleration are (N, 4) in the state's dtype, as in :mod:`nbody.state.device`; factors, in that
    dtype, are dt for a kick and a drift and dt²/2 for a Taylor term; rows and block_sums as in :class:`Area`.
    """
    terms = cuda.shared.array((SUMS, THREADS), np.float64)
    t, count = np.uint32(cuda.threadIdx.x), np.uint32(body.shape[0])
    i = np.uint32(cuda.blockIdx.x) * np.uint32(THREADS) + t
    i_clamped = min(i, count - np.uint32(1))
    x, y, z, m = row(body, i_clamped)
    vx, vy, vz, _ = row(velocity, i_clamped)
    ax, ay, az, q = row(acceleration, i_clamped)
    cx, cy, cz = ax, ay, az
    for move in range(MOST):
        kind, f = kinds[move], factors[move]
        if kind == KICK:
            vx += ax * f
            vy += ay * f
            vz += az * f
        elif kind == DRIFT:
            x += vx * f
            y += vy * f
            z += vz * f
        elif kind == TAYLOR:
            x += ax * f
            y += ay * f
            z += az * f
        elif kind == TAYLOR_TERM:
            cx, cy, cz = ax * f, ay * f, az * f
        elif kind == TAYLOR_DRIFT:  # one rounding in x, which is much larger than the summand
            x += vx * f + cx
            y += vy * f + cy
            z += vz * f + cz
        elif kind == PACK:
            if i < count:
                rows[0, i, 0], rows[0, i, 1], rows[0, i, 2] = x, y, z
                rows[1, i, 0], rows[1, i, 1], rows[1, i, 2] = vx, vy, vz
            mass = np.float64(m) if i < count else 0.0
            px, py, pz = mass * np.float64(vx), mass * np.float64(vy), mass * np.float64(vz)
            terms[0, t] = 0.5 * (px * np.float64(vx) + py * np.float64(vy) + pz * np.float64(vz))
            terms[1, t] = 0.5 * mass * np.float64(q) if mass != 0.0 else 0.0  # where q may be infinite
            terms[2, t], terms[3, t], terms[4, t] = px, py, pz
            terms[5, t] = np.float64(y) * pz - np.float64(z) * py
            terms[6, t] = np.float64(z) * px - np.float64(x) * pz
            terms[7, t] = np.float64(x) * py - np.float64(y) * px
            cuda.syncthreads()
            _add_up(terms, block_sums)
    if i < count:
        body[i, 0], body[i, 1], body[i, 2] = x, y, z
        velocity[i, 0], velocity[i, 1], velocity[i, 2] = vx, vy, vz


@kernel("gpu")
def copy_potential(acceleration, column):
    """Copy the potential of each body from acceleration (N, 4) to a column of a frame, (N,) float64."""
    i = cuda.grid(1)
    if i < column.shape[0]:
        column[i] = acceleration[i, 3]


@kernel("gpu")
def negate(rows):
    """Change the sign of (N, 4) numbers."""
    i = cuda.grid(1)
    if i < rows.shape[0]:
        for k in range(4):
            rows[i, k] = -rows[i, k]


class Packing(NamedTuple):
    """The value of the move ``pack``: the area of a frame, and what launches the kernels that fill its columns after it."""

    area: Area
    fill: Callable[[Area], None]


class DeviceMoves(StateMoves):
    """The moves of one state."""

    def __init__(self, arrays: tuple[Any, Any, Any], stream: Any, clock: StateClock) -> None:
        self._arrays, self._stream, self._count, dtype = arrays, stream, len(arrays[0]), np.dtype(arrays[0].dtype)
        super().__init__(dtype, clock)
        self._no_area = Area(cuda.device_array((2, 0, 3), dtype), cuda.device_array((0, SUMS), np.float64))

    def make(self, moves: Iterable[StateMove]) -> None:
        together, packing = list[tuple[int, Any]](), None
        for kind, value in moves:
            if kind == MoveKind.END:
                self._clock.end_steps()
                continue
            pack = kind == MoveKind.PACK  # a Taylor term stays in registers, so one launch makes both parts of a drift
            parts = [(PACK, self._dtype.type(0))] if pack else parts_of(kind, value, self._dtype)
            if len(together) + len(parts) > MOST or (packing and pack):
                self._launch(together, packing)
                together, packing = [], None
            together += parts
            if pack:
                packing = value
            elif kind in DRIFTS:
                self._clock.drift(value)
        if together:
            self._launch(together, packing)

    def rehearse(self) -> None:
        self._launch([], None)

    def _negate_velocities(self) -> None:
        negate[blocks(self._count), THREADS, self._stream](self._arrays[1])

    def _launch(self, moves: list[tuple[int, Any]], packing: Packing | None) -> None:
        kinds, factors = zip(*moves, *[(NOTHING, self._dtype.type(0))] * (MOST - len(moves)), strict=True)
        rows, block_sums, _ = packing.area if packing else self._no_area
        make_moves[blocks(self._count), THREADS, self._stream](*self._arrays, kinds, factors, rows, block_sums)
        if packing:
            packing.fill(packing.area)
