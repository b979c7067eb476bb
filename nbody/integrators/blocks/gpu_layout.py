"""What the kernels of block steps on a GPU share: sizes, the clock, and the length of a step in ticks."""

from typing import Any

import numpy as np

from nbody.gpu import SIMULATED, cuda

THREADS = 64 if SIMULATED else 128
WARPS = THREADS // 32
TILE = 16 * WARPS
"""Bodies per tile; each of the block's warps takes its share."""

FAR = (1 << 62) - 1
"""A time in ticks that is never reached."""

# The clock, (CLOCK,) int64: the next time and the number of listed bodies (three slots each), then
REACHED, END, UNIT, SMALLEST, BUDGET, BLOCKS_DONE, SINGLE, FAILED, EXCEEDED, CLOCK = range(6, 16)
# The scale, (4,) float64: the length of a tick, eta, G, and the softening length squared.
TICK, ETA, STRENGTH, LENGTH2 = 0, 1, 2, 3

exact: Any = cuda.jit(device=True) if not SIMULATED else lambda function: function
"""Compiles a device function without fast mathematics."""


def real_of(mixed: bool) -> type[np.floating]:
    """The type of the numbers in the sums over pairs."""
    return np.float32 if mixed else np.float64


@exact
def in_ticks(h, tick, most):
    """The largest power of two of ticks that is at most h; 0 if there is none."""
    found = most
    while found > 0 and not found * tick <= h:
        found >>= 1
    return found
