"""How much of a force evaluation one kernel launch computes.

A running kernel can't be stopped, and a process that ends waits for it. So an evaluation of many particles is divided into
pieces of about 0.2 s. Between two pieces the run shows its progress and reacts to Ctrl-C (see
:meth:`nbody.state.ForceProgress.report`). The size of a piece depends on N and the card alone, never on time: in
``gpu-symmetric`` it determines the order of a sum, and the same run must give the same bits.
"""

from functools import cache

import numpy as np

from nbody import compute

PIECE = 1 << 25
"""Interactions per floating-point lane of the card (see :class:`nbody.compute.Facts`) in one piece. On an H200 that takes
0.17 s with ``gpu-symmetric`` and 0.3 s with ``gpu-tiled``; lanes of other cards are about as fast."""


@cache
def interactions_per_piece(dtype: np.dtype) -> int:
    """Interactions per piece on the current device; ``dtype`` is the type of a pair's arithmetic."""
    if not compute.available():
        return PIECE * 132 * 128  # an H200, to estimate the memory of a run on a machine without a GPU
    card = compute.facts()
    lanes = card.lanes_float64 if dtype == np.float64 else card.lanes_float32
    return PIECE * card.multiprocessors * lanes
