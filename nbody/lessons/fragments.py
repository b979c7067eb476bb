"""The figure of the tensor cores: which lane of a warp holds which elements of one instruction."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nbody.figures import BLUE, GRID, INK, ORANGE
from nbody.lessons.style import PALE, bare, coloured, image, panels
from nbody.linalg.intrinsics import round_tf32
from nbody.linalg.simulated_warp import row_and_column


def tf32_owners() -> dict[str, np.ndarray]:
    """The lane of each element of A (16, 8), B (8, 8) and the product (16, 8) of ``mma.m16n8k8``, by the table that the
    simulated warp multiplies with."""
    owners = {"A": np.full((16, 8), -1), "B": np.full((8, 8), -1), "C": np.full((16, 8), -1)}
    for lane in range(32):
        for matrix, registers in (("A", 4), ("B", 2), ("C", 4)):
            for register in range(registers):
                owners[matrix][row_and_column(lane, register)[matrix.lower()]] = lane
    return owners


def split_bits(x: float) -> tuple[np.ndarray, np.ndarray]:
    """The bits of the significands of x as a float32: those of its TF32 head, and those of the rest, at their places."""
    value = np.float32(x)
    head = round_tf32(value)
    exponent = np.frexp(np.float64(value))[1]
    places = 2.0 ** (exponent - 1 - np.arange(24))

    def bits(number: float) -> np.ndarray:
        left, found = abs(number), np.zeros(24, int)
        for k, place in enumerate(places):
            found[k] = left >= place
            left -= found[k] * place
        return found

    return bits(float(head)), bits(float(value) - float(head))


def fragments() -> Figure:
    """Who holds what in one instruction, with the elements of lane 5 dark; and a number in two TF32 parts."""
    figure, axes = panels(1, 4, 2.75, width_ratios=(8, 8, 8, 13))
    for panel, (matrix, lanes) in zip(axes[0], tf32_owners().items(), strict=False):
        image(panel, coloured(np.where(lanes == 5, INK, "")), "{}, {}×{}".format(matrix, *lanes.shape))
        for i, j in np.ndindex(lanes.shape):
            colour = "white" if lanes[i, j] == 5 else INK
            panel.text(j + 0.5, i + 0.54, lanes[i, j], ha="center", va="center", fontsize=6, color=colour)
        panel.set_ylim(16, 0)
    _split(axes[0, 3])
    return figure


def _split(panel: Axes) -> None:
    """k20: the bits of one number, and of its two parts."""
    head, rest = split_bits(np.pi / 4)
    for y, (name, bits, colour) in enumerate((("x", head + rest, INK), ("big", head, BLUE), ("small", rest, ORANGE))):
        used = np.nonzero(bits)[0]
        for k, bit in enumerate(bits):
            inside = used[0] <= k <= used[-1]
            panel.barh(y, 0.9, left=k, height=0.7, color=(colour if bit else GRID) if inside else PALE)
        panel.text(-0.6, y, name, ha="right", va="center")
    panel.set_xlim(-5, 24)
    panel.set_ylim(4.6, -2.4)
    bare(panel, "k20: x = big + small, π/4 in bits")
