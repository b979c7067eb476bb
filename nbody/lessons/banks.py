"""Figures of single accesses of a warp: the banks of shared memory, the lines of global memory, vectors."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nbody.errors import counted
from nbody.figures import BLUE, GREEN, ORANGE, RED, plain
from nbody.lessons.accesses import BANKS, LINE, ONE_BLOCK, conflicts, of_warp, traced
from nbody.lessons.style import cells, panels
from nbody.linalg import k14_transposed
from nbody.linalg.k04_bank_conflicts import TILE
from nbody.linalg.k05_padded_tile import WIDTH

TILED = {"k04": ("shared0", "A", TILE), "k05": ("shared0", "A", WIDTH), "k06": ("shared1", "B", TILE)}
"""The shared array that a warp reads with the most conflicts, whose tile it is, and the words of its rows."""


def banks() -> Figure:
    """k04, k05, k06, from the top: words that one read of a warp takes from shared memory, how many of each bank, and the
    numbers of A that one read from global memory takes."""
    figure, axes = panels(3, 3, 6.3, height_ratios=(3, 1.4, 3))
    for column, (name, (array, matrix, width)) in enumerate(TILED.items()):
        block = traced(name)[0, 0]
        words, numbers = of_warp(block, array, False)[0], of_warp(block, "a", False)[0]
        served = _bars(axes[1, column], words, 34)
        plain(axes[1, column], f"words of each bank: served {served}×")
        touched = _touched((TILE, width), words, RED if served > 1 else GREEN)
        cells(axes[0, column], touched, f"{name}: {matrix}'s tile, rows of {width} words")
        lines = len(np.unique(numbers * 4 // LINE))
        label = f"A, global: {counted(lines, 'line')} of {LINE} B"
        cells(axes[2, column], _touched((TILE, TILE), numbers, RED if lines > 1 else GREEN), label)
    axes[1, 0].set_ylabel("words")
    axes[1, 1].set_xlabel("bank")
    return figure


def _touched(shape: tuple[int, int], indices: np.ndarray, colour: str) -> np.ndarray:
    grid = np.full(shape, "", dtype=object)
    grid.flat[np.unique(indices)] = colour
    return grid


def _bars(panel: Axes, words: np.ndarray, top: int) -> int:
    """Draw the number of words of each bank. Returns how often shared memory has to serve the access."""
    served = conflicts(words)
    counts = np.bincount(np.unique(words) % BANKS, minlength=BANKS)
    panel.bar(range(BANKS), counts, color=RED if served > 1 else GREEN, width=0.85)
    panel.set_ylim(0, top)
    return served


def vectors() -> Figure:
    """k09 and k10: the numbers of A that one load of a warp brings; k14: the banks of one write of the transposed slab, as
    it is and without the extra vector in each row."""
    figure, axes = panels(1, 4, 2.9, width_ratios=(1, 1, 1.7, 1.7))
    shape = (ONE_BLOCK["k09"].m, ONE_BLOCK["k09"].k)
    for panel, name, per_lane, colour in ((axes[0, 0], "k09", 1, BLUE), (axes[0, 1], "k10", 4, ORANGE)):
        lanes = of_warp(traced(name)[0, 0], "a", False)
        first = lanes[:1] if per_lane == 1 else lanes[1:5]  # the simulator looks at the first number's type before
        label = f"{name}: one load,\n{np.unique(first).size * 4} bytes"
        cells(panel, _touched(shape, first, colour), label)
    written = of_warp(traced("k14")[0, 0], "shared0", True)[0]
    padded = k14_transposed.pieces(np.float32).pitch
    depth = np.unique(written // padded)
    for panel, pitch in ((axes[0, 2], k14_transposed.TILE), (axes[0, 3], padded)):
        served = _bars(panel, written // padded * pitch + written % padded, 4)
        panel.set_yticks(range(5))
        panel.set_xlabel("bank")
        plain(panel, f"k14: a write to rows {depth[0]} and {depth[-1]},\nrows of {pitch} words: served {served}×")
    return figure
