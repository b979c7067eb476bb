"""The pieces into which direct sums of many bodies are divided on GPUs."""

from functools import cache

import numpy as np

from nbody import compute

SEGMENTS_FROM = 32768
"""From this number of bodies on an evaluation is divided among GPUs. Below, several GPUs would wait for each other longer
than they compute."""

PIECE = 1 << 25
"""Interactions of a piece per floating-point lane of the card (:class:`nbody.compute.DeviceProperties`): on an H200 0.17 s
with ``gpu-symmetric`` and 0.3 s with ``gpu-tiled``; lanes of other cards are about as fast.

A running kernel can't be stopped, and a process that ends waits for it. So an evaluation of many bodies is divided into
pieces, between which the run shows its progress and reacts to Ctrl-C (:meth:`nbody.state.ForceProgress.report`). Their size
depends on N and the card alone, never on time: in ``gpu-symmetric`` it determines the order of a sum."""


@cache
def interactions_per_piece(dtype: np.dtype) -> int:
    """Interactions per piece on the current device; ``dtype`` is the type of a pair's arithmetic."""
    if not compute.available():
        return PIECE * 132 * 128  # an H200, to estimate the memory of a run on a machine without a GPU
    card = compute.facts()
    lanes = card.lanes_float64 if dtype == np.float64 else card.lanes_float32
    return PIECE * card.multiprocessors * lanes
