"""How much of a force evaluation is asked of the device at a time.

A kernel that has begun can't be stopped, and a process that ends waits for it. So an evaluation of many particles is
asked for in pieces of some 0.2 s: between two of them the run shows how far it is, and hears Ctrl-C (see
:meth:`nbody.state.State.report`). What a piece is follows from N and the card alone, never from time: where it decides the
order of a sum (``gpu-symmetric``), the same run has the same bits again.
"""

from functools import cache

import numpy as np

from nbody import gpu

PIECE = 1 << 25
"""Interactions a float lane of the card (see :class:`nbody.gpu.Facts`). On an H200 that is 0.17 s of ``gpu-symmetric`` and
0.3 s of ``gpu-tiled``; and on other cards about as much, for a lane does much the same everywhere."""


@cache
def interactions_a_piece(dtype: np.dtype) -> int:
    """How many interactions are asked of the current device at a time, in pair arithmetic of a dtype."""
    if not gpu.available():
        return PIECE * 132 * 128  # an H200's, for those who ask what a run would need
    card = gpu.facts()
    lanes = card.lanes_float64 if dtype == np.float64 else card.lanes_float32
    return PIECE * card.multiprocessors * lanes
