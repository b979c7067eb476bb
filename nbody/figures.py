"""One look for all figures: dark grey text, few colours, a light grid, no box around a diagram."""

import math
from io import BytesIO
from typing import Any

INK, GRID, GREY = "#1f2933", "#c5ccd3", "#68737f"
BLUE, ORANGE, GREEN, VIOLET, RED = "#0072b2", "#e08a00", "#009e73", "#c0578f", "#d55e00"
SERIES = (BLUE, ORANGE, GREEN, VIOLET, RED, "#56b4e9", INK, "#8c6d46")
"""Colours of things of one kind, in order: distinguishable for colour-blind readers (after Okabe & Ito 2008), and dark
enough for thin lines on white."""

FONTS = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.labelsize": 8.5,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
}
"""Sizes in points, for matplotlib's rcParams: legible where a panel of 3.4 inches is as wide as a journal's column."""

RC: Any = FONTS | {
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    "axes.edgecolor": GREY,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "axes.formatter.limits": (-4, 5),  # labels such as -400000 meet
    "axes.formatter.use_mathtext": True,
    "pdf.fonttype": 42,  # text in a PDF stays text
    "svg.hashsalt": "nbody",  # the same data give the same file
}


def plain(axes: Any, title: str = "") -> None:
    """A diagram's axes: no frame at the top and right, a light grid, a title to the left."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color=GRID, alpha=0.5, linewidth=0.6)
    axes.set_axisbelow(True)
    if title:
        axes.set_title(title, loc="left")


def tidy_log(axis: Any) -> None:
    """Label a logarithmic axis with plain numbers (0.01, 20) where they are short, and with enough of them."""
    from matplotlib.ticker import AutoLocator, FuncFormatter, LogFormatterSciNotation, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    decades = math.log10(high / low) if low > 0 else math.inf
    powers = LogFormatterSciNotation(labelOnlyBase=False)
    powers.set_axis(axis)
    short = low >= 1e-4 and high <= 1e5
    if decades < 0.5:
        axis.set_major_locator(AutoLocator())
    elif decades < 2:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda x, k: f"{x:.6g}" if short else powers(x, k)))
    axis.set_minor_formatter(NullFormatter())


def ramp(count: int) -> list[Any]:
    """``count`` colours in an order (times, fractions of the mass): viridis without the end that is near the background."""
    from matplotlib import colormaps, colors, rcParams

    first = 0.25 if sum(colors.to_rgb(rcParams["axes.facecolor"])) < 1.5 else 0.0
    return [colormaps["viridis"](first + 0.75 * k / max(count - 1, 1)) for k in range(count)]


def dots(points: Any, pixels: int) -> bytes:
    """A PNG of bodies on a dark square: ``points`` (N, 2), of which those between -1 and 1 are shown."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1, 1), dpi=pixels, facecolor="#0b0e14")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-1, 1), ylim=(-1, 1))
    axes.axis("off")
    few = 1 / (1 + len(points) / 2000)  # 1 for few bodies, 0 for many
    size, alpha = 0.04 + 1.2 * few**2, 0.35 + 0.6 * few
    axes.scatter(points[:, 0], points[:, 1], s=size, color="#ffe3b8", alpha=alpha, linewidths=0)
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=pixels)
    return drawn.getvalue()
