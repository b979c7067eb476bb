"""The figure of rounding: how the error of a sum in float32 grows with its length."""

import numpy as np
from matplotlib.figure import Figure

from nbody.figures import BLUE, GREEN, ORANGE, plain
from nbody.lessons.style import panels

TILE, TRIALS, LONGEST = 256, 64, 1 << 17


def errors() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Lengths, and for each way to add up random numbers in [0, 1) the mean relative error at these lengths."""
    numbers = np.random.default_rng(1).random((LONGEST, TRIALS)).astype(np.float32)
    exact = np.cumsum(numbers, axis=0, dtype=np.float64)
    lengths = 2 ** np.arange(8, LONGEST.bit_length())
    in_order = np.cumsum(numbers, axis=0, dtype=np.float32)
    tiles = np.cumsum(numbers.reshape(-1, TILE, TRIALS), axis=1, dtype=np.float32)[:, -1]
    by_tiles = np.repeat(np.cumsum(tiles, axis=0, dtype=np.float32), TILE, axis=0)
    total = lost = np.zeros(TRIALS, np.float32)
    compensated = np.empty_like(numbers)
    for k, number in enumerate(numbers):
        term = number - lost
        new = total + term
        lost = (new - total) - term
        total = compensated[k] = new
    ways = {
        "one after the other (k02)": in_order,
        "by tiles of 256 (gpu-tiled)": by_tiles,
        "Kahan (k16, gpu-kahan)": compensated,
    }
    at = lengths - 1
    return lengths, {name: (np.abs(sums[at] - exact[at]) / exact[at]).mean(axis=1) for name, sums in ways.items()}


def rounding() -> Figure:
    """Mean relative error against the number of terms, with the unit roundoff of float32."""
    lengths, ways = errors()
    figure, axes = panels(1, 1, 2.9)
    panel = axes[0, 0]
    for (name, values), colour in zip(ways.items(), (BLUE, ORANGE, GREEN), strict=True):
        panel.loglog(lengths, np.maximum(values, 1e-9), "o-", color=colour, markersize=3, label=name, base=10)
    panel.axhline(2.0**-24, color="0.4", linestyle="--", linewidth=1, label="unit roundoff, 2⁻²⁴")
    panel.set_xlabel("terms of the sum")
    panel.set_ylabel("relative error, mean of 64 sums")
    panel.legend(frameon=False, fontsize=8)
    plain(panel, "sums of random numbers in [0, 1), float32")
    return figure
