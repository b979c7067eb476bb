"""The picture of force rows: interactions per second against N, a panel per precision, beside the bounds of the card. With
trees: the time of an evaluation against N, beside the errors."""

import math
from pathlib import Path
from typing import Any

from nbody.bench.forces.trees import crossings
from nbody.bench.report import Report
from nbody.bench.row import Row, distinct
from nbody.forces.engine import ROUNDOFF
from nbody.units import rate


def plot(report: Report, path: Path) -> None:
    """Draw the force suite's rows to a PNG. Needs no display."""
    if report.of("trees"):
        return scaling(report, path)
    speeds("Direct-sum gravity, 3-D, softened", "forces", report, path)


def scaling(report: Report, path: Path) -> None:
    """Draw seconds per force evaluation against N, where trees overtake direct sums, and the errors of both."""
    from matplotlib.figure import Figure

    rows = [row for suite in ("forces", "trees") for row in report.of(suite) if row.seconds]
    title = f"Direct sums and trees, 3-D, softened: {report.device}"
    figure = Figure(figsize=(14, 5.5), layout="constrained")
    figure.suptitle(title, fontsize=11)
    times, errors = figure.subplots(1, 2)
    largest = max((row.particles for row in rows), default=1)
    for k, (name, precision) in enumerate(distinct(rows, "name", "precision")):
        line = [row for row in rows if (row.name, row.precision) == (name, precision)]
        style = {"color": f"C{k % 10}", "markersize": 4, "label": f"{name}, {precision}"}
        x, last = [row.particles for row in line], line[-1]
        times.plot(x, [row.seconds for row in line], "s-" if last.suite == "trees" else "o-", **style)
        if last.suite == "forces" and last.particles < largest:
            beyond = [last.seconds, last.seconds * (largest / last.particles) ** 2]
            times.plot([last.particles, largest], beyond, ":", color=style["color"])
        errors.plot(x, [row.error_median for row in line], "o-", **style)
        errors.plot(x, [row.error_99 for row in line], ":", color=style["color"])
    for at in crossings(report):
        if 0 < at.particles < math.inf:
            times.axvline(at.particles, color="0.5", linewidth=0.9, linestyle="-.")
            text = f"{at.name}: {at.rounded}"
            times.annotate(
                text, (at.particles, 0.98), xycoords=("data", "axes fraction"), rotation=90, fontsize=7, va="top"
            )
    for axes, what in (
        (times, "seconds per force evaluation (dotted: as N²)"),
        (errors, "relative error: median (dotted: 99 %)"),
    ):
        axes.set(xscale="log", yscale="log", xlabel="N, number of particles", ylabel=what)
        axes.grid(True, which="major", alpha=0.3)
    errors.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    figure.savefig(path, format="png", dpi=130, metadata={"Description": title})


def speeds(what: str, suite: str, report: Report, path: Path) -> None:
    """Draw the rows of a suite: solid lines for engines, dotted ones for bounds."""
    from matplotlib.figure import Figure

    rows = [row for row in report.of(suite) if row.interactions_per_s]
    precisions = [precision for precision in ROUNDOFF if any(row.precision == precision for row in rows)] or ["none"]
    title = f"{what}: {report.device}"
    figure = Figure(figsize=(1 + 7 * len(precisions), 6), layout="constrained")
    figure.suptitle(title, fontsize=11)
    panels = figure.subplots(1, len(precisions), sharey=True, squeeze=False)[0]
    colours = {name: f"C{k % 10}" for k, (name,) in enumerate(distinct(rows, "name"))}
    for axes, precision in zip(panels, precisions, strict=True):
        _panel(axes, precision, [row for row in rows if row.precision == precision], colours)
    panels[0].set_ylabel("interactions per second (N² per force evaluation)")
    figure.savefig(path, format="png", dpi=130, metadata={"Description": title})


def _panel(axes: Any, precision: str, rows: list[Any], colours: dict[str, str]) -> None:
    """One precision: a line per contestant, named in the legend with its last speed, the fastest first."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for name, colour in colours.items():
        line = [row for row in rows if row.name == name]
        if not line:
            continue
        last = line[-1]
        text, bound = f"{name}  {rate(last.interactions_per_s)}".rstrip(), last.slot_bound
        if bound:
            axes.axhline(bound, color=colour, linewidth=0.9, linestyle=":")
            text += f" of {rate(bound)}".rstrip()
        x, y = [row.particles for row in line], [row.interactions_per_s for row in line]
        axes.plot(x, y, "o-", color=colour, markersize=4, label=text)
    for text, bound in {bound for row in rows for bound in _levels(row)}:
        axes.axhline(bound, color="0.45", linewidth=0.9, linestyle="-.")
        axes.annotate(
            f"{text}  {rate(bound)}", (0.01, bound), xycoords=("axes fraction", "data"), fontsize=7, va="bottom"
        )
    ticks = sorted({row.particles for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_title(precision, fontsize=10)
    axes.set_xlabel("N, number of particles")
    axes.set_xticks(ticks, [str(tick) for tick in ticks], rotation=30, fontsize=8)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: rate(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", alpha=0.3)
    lines = sorted(zip(*axes.get_legend_handles_labels(), strict=True), key=lambda each: -each[0].get_ydata()[-1])
    if lines:
        axes.legend(*zip(*lines, strict=True), loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)


def _levels(row: Row) -> list[tuple[str, float]]:
    """The bounds by roots and by the float peak, rounded to two digits so that rows share them."""
    found = [("a root per pair" if row.interactions_a_root == 2 else "a root per interaction", row.root_bound)]
    if row.root_bound and row.percent_of_peak and row.interactions_per_s:
        found.append(("the float peak at 20 operations", 100 * row.interactions_per_s / row.percent_of_peak))
    return [(text, float(f"{bound:.1e}")) for text, bound in found if bound]
