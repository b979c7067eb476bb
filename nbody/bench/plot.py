"""The picture of a benchmark: interactions per second against N, a panel a precision, every line named at its end."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nbody.bench.accuracy import ROUNDOFF
from nbody.bench.forces import ForceRow
from nbody.bench.report import Report, force_rows, machine_line
from nbody.units import rate

LABEL_GAP = 0.045
"""The least distance of two labels, as a part of the panel's height."""


def plot_forces(found: Report, path: Path) -> None:
    """Draw the force suite's rows to a PNG. Needs no display."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows = [row for row in force_rows(found) if row.interactions_per_s]
    precisions = [precision for precision in ROUNDOFF if any(row.precision == precision for row in rows)]
    figure, axes = plt.subplots(
        1, max(1, len(precisions)), sharey=True, squeeze=False, figsize=(1.5 + 5.5 * max(1, len(precisions)), 6)
    )
    _whole_decades(axes[0][0], rows)
    for panel, precision in zip(axes[0], precisions, strict=False):
        _panel(panel, precision, [row for row in rows if row.precision == precision], [row.name for row in rows])
    axes[0][0].set_ylabel("interactions per second (N² a force evaluation)")
    figure.suptitle(f"Direct-sum gravity, 3-D, softened: {machine_line(found['machine'])}", fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=130, metadata={"Description": machine_line(found["machine"])})
    plt.close(figure)


def _whole_decades(axes: Any, rows: Sequence[ForceRow]) -> None:
    """Powers of ten below and above all speeds as the limits: equal heights mean equal factors in every report."""
    speeds = [math.log10(row.interactions_per_s) for row in rows if row.interactions_per_s] or [0.0]
    axes.set_yscale("log")
    axes.set_ylim(10.0 ** math.floor(min(speeds)), 10.0 ** (math.floor(max(speeds)) + 1))


def _panel(axes: Any, precision: str, rows: Sequence[ForceRow], names: Sequence[str]) -> None:
    """One precision: a line a contestant on logarithmic axes, the same colour for a name in every panel."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    colours = {name: f"C{k}" for k, name in enumerate(dict.fromkeys(names))}
    ends: list[tuple[float, float, str, str]] = []
    for name in dict.fromkeys(row.name for row in rows):
        line = [row for row in rows if row.name == name]
        x, y = [row.particles for row in line], [row.interactions_per_s or 0.0 for row in line]
        axes.plot(x, y, "o-", color=colours[name], markersize=4, linewidth=1.6)
        ends.append((y[-1], x[-1], f" {name}  {rate(y[-1])}".rstrip(), colours[name]))
    axes.set_xscale("log", base=2)
    axes.set_title(precision, fontsize=10)
    axes.set_xlabel("N, number of particles")
    ticks = sorted({row.particles for row in rows})
    axes.set_xticks(ticks, [str(tick) for tick in ticks], rotation=30, fontsize=8)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: rate(value).replace(".00", "").replace(".0", "")))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    _label(axes, ends)


def _label(axes: Any, ends: list[tuple[float, float, str, str]]) -> None:
    """Write each line's name to the right of the panel at the height of its end, moved apart where they would touch."""
    axes.figure.canvas.draw()  # settles the limits that the heights refer to
    height = {text: float(axes.transAxes.inverted().transform(axes.transData.transform((x, y)))[1])
              for y, x, text, _ in ends}  # fmt: skip
    lowest = 0.0
    for y, x, text, colour in sorted(ends):
        lowest = max(height[text], lowest)
        axes.annotate(
            text, (x, y), xytext=(1.02, lowest), textcoords="axes fraction", va="center", fontsize=8, color=colour,
            arrowprops={"arrowstyle": "-", "color": colour, "alpha": 0.6, "linewidth": 0.8, "linestyle": ":"},
        )  # fmt: skip
        lowest += LABEL_GAP
