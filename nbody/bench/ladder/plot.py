"""The picture of the ladder: a bar per rung, in the order of the course, cuBLAS and the peaks as lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nbody.bench.ladder.cublas import CUBLAS
from nbody.bench.ladder.tables import shown, shown_size
from nbody.bench.report import Report
from nbody.bench.row import Row, distinct
from nbody.linalg import LADDER
from nbody.units import rate


def plot(report: Report, path: Path) -> None:
    """Draw the rungs' TFLOP/s at one n, a panel per precision, to a PNG. Needs no display."""
    from matplotlib.figure import Figure

    rows = report.of("matmul")
    n = shown_size(rows)
    rows = [row for row in rows if row.size == n]
    precisions = distinct(rows, "precision")
    rungs = {row.name: f"{row.name}  {shown(row)}" for row in rows if row.gflops and row.name not in CUBLAS}
    figure = Figure(figsize=(3.5 + 5 * len(precisions), 1.8 + 0.3 * max(4, len(rungs))), layout="constrained")
    figure.suptitle(f"The matrix ladder, n = {n}: {report.device}", fontsize=11)
    panels = figure.subplots(1, len(precisions), sharey=True, squeeze=False)[0]
    for axes, (precision,) in zip(panels, precisions, strict=True):
        _panel(axes, precision, [row for row in rows if row.precision == precision and row.gflops], list(rungs))
    panels[0].set_yticks(range(len(rungs)), list(rungs.values()), fontsize=8)
    panels[0].set_ylim(len(rungs) - 0.4, -0.6)
    figure.savefig(path, format="png", dpi=130, metadata={"Description": report.device})


def _panel(axes: Any, precision: str, rows: Sequence[Row], rungs: list[str]) -> None:
    """One precision: the bars, each with its figure at its end, and the lines. (Tensor cores, which the peak of the pipes
    does not bound, have another colour.)"""
    for row in rows:
        value = (row.gflops or 0) / 1e3
        if row.name == CUBLAS[0]:
            axes.axvline(value, color="C3", zorder=0, label=f"cuBLAS {rate(1e12 * value)}FLOP/s")
        elif row.name in rungs:
            tensor = row.name in LADDER and "tensor cores" in LADDER.load(row.name).claims
            bar = axes.barh(rungs.index(row.name), value, color="C1" if tensor else "C0", height=0.7)
            axes.bar_label(bar, [_figure(row)], padding=4, fontsize=7)
    if peaks := [row.gflops / row.percent_of_peak / 10 for row in rows if row.gflops and row.percent_of_peak]:
        axes.axvline(
            peaks[0], color="0.4", linestyle="--", zorder=0, label=f"float pipes {rate(1e12 * peaks[0])}FLOP/s"
        )
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1.005), fontsize=7, frameon=False, ncols=2)
    axes.margins(x=0.3)
    axes.set_title(precision, fontsize=10, loc="left")
    axes.set_xlabel("TFLOP/s")
    axes.grid(True, axis="x", alpha=0.3)
    axes.set_axisbelow(True)


def _figure(row: Row) -> str:
    """The label at a bar's end; for a skinny product, which memory bounds, its bandwidth."""
    share = "" if row.percent_of_cublas is None else f", {row.percent_of_cublas:.3g} % of cuBLAS"
    return (f"{row.gbytes_per_s:.0f} GB/s" if (row.n or 0) < (row.m or 0) else f"{(row.gflops or 0) / 1e3:.3g}") + share
