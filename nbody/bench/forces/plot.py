"""The picture of a benchmark: interactions per second against N, a panel a precision, every line named at its end."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from nbody.bench.forces.accuracy import ROUNDOFF
from nbody.bench.forces.row import ForceRow, force_rows
from nbody.bench.report import Report, machine_line
from nbody.units import rate

LABEL_GAP = 0.045
"""The least distance of two labels, as a part of the panel's height."""


class End(NamedTuple):
    """Where a line ends, and what is written beside that."""

    y: float
    x: float
    text: str
    colour: str


@contextmanager
def panels(count: int, title: str, path: Path) -> Iterator[Sequence[Any]]:
    """So many axes side by side, at least one, with one scale; what is drawn on them becomes a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    count = max(1, count)
    figure, axes = plt.subplots(1, count, sharey=True, squeeze=False, figsize=(1.5 + 5.5 * count, 6))
    try:
        yield axes[0]
        axes[0][0].set_ylabel("interactions per second (N² a force evaluation)")
        figure.suptitle(title, fontsize=11)
        figure.tight_layout()
        figure.savefig(path, format="png", dpi=130, metadata={"Description": title})
    finally:
        plt.close(figure)


def plot_forces(found: Report, path: Path) -> None:
    """Draw the force suite's rows to a PNG. Needs no display."""
    rows = [row for row in force_rows(found) if row.interactions_per_s]
    precisions = [precision for precision in ROUNDOFF if any(row.precision == precision for row in rows)]
    title = f"Direct-sum gravity, 3-D, softened: {machine_line(found['machine'])}"
    with panels(len(precisions), title, path) as axes:
        whole_decades(axes[0], [row.interactions_per_s for row in rows])
        for panel, precision in zip(axes, precisions, strict=False):
            _panel(panel, precision, [row for row in rows if row.precision == precision], [row.name for row in rows])


def whole_decades(axes: Any, speeds: Iterable[float | None]) -> None:
    """Powers of ten below and above all speeds as the limits: equal heights mean equal factors in every report."""
    powers = [math.log10(speed) for speed in speeds if speed] or [0.0]
    axes.set_yscale("log")
    axes.set_ylim(10.0 ** math.floor(min(powers)), 10.0 ** (math.floor(max(powers)) + 1))


def numbers_of_particles(axes: Any, title: str, counts: Iterable[int]) -> None:
    """A panel's axes: N in powers of two below, rates as people read them on the left."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    ticks = sorted(set(counts))
    axes.set_xscale("log", base=2)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("N, number of particles")
    axes.set_xticks(ticks, [str(tick) for tick in ticks], rotation=30, fontsize=8)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: rate(value).replace(".00", "").replace(".0", "")))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _panel(axes: Any, precision: str, rows: Sequence[ForceRow], names: Sequence[str]) -> None:
    """One precision: a line a contestant on logarithmic axes, the same colour for a name in every panel."""
    colours = {name: f"C{k}" for k, name in enumerate(dict.fromkeys(names))}
    ends = []
    for name in dict.fromkeys(row.name for row in rows):
        line = [row for row in rows if row.name == name]
        x, y = [row.particles for row in line], [row.interactions_per_s or 0.0 for row in line]
        axes.plot(x, y, "o-", color=colours[name], markersize=4, linewidth=1.6)
        ends.append(End(y[-1], x[-1], f" {name}  {rate(y[-1])}".rstrip(), colours[name]))
    numbers_of_particles(axes, precision, [row.particles for row in rows])
    label_ends(axes, ends)


def label_ends(axes: Any, ends: Iterable[End]) -> None:
    """Write each line's name to the right of the panel at the height of its end, moved apart where they would touch."""
    axes.figure.canvas.draw()  # settles the limits that the heights refer to
    ordered = sorted(ends)
    heights = [float(axes.transAxes.inverted().transform(axes.transData.transform((x, y)))[1]) for y, x, *_ in ordered]
    for (y, x, text, colour), height in zip(ordered, _apart(heights), strict=True):
        axes.annotate(
            text, (x, y), xytext=(1.02, height), textcoords="axes fraction", va="center", fontsize=8, color=colour,
            arrowprops={"arrowstyle": "-", "color": colour, "alpha": 0.6, "linewidth": 0.8, "linestyle": ":",
                        "relpos": (0, 0.5)},
        )  # fmt: skip


def _apart(heights: Sequence[float]) -> list[float]:
    """Ascending heights with gaps between them, none above the panel if there is room: first up, then back down."""
    found: list[float] = []
    for height in heights:
        found.append(max(height, found[-1] + LABEL_GAP) if found else height)
    ceiling = 1.0
    for k in reversed(range(len(found))):
        found[k] = min(found[k], ceiling)
        ceiling = found[k] - LABEL_GAP
    return found
