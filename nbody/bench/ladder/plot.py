"""The picture of the ladder: a bar a rung, from the top down as one reads it, cuBLAS and the peak as lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nbody.bench.ladder.row import CUBLAS, Row
from nbody.bench.ladder.tables import groups, ladder_rows, shape_told, shown_size
from nbody.bench.report import Report, machine_line
from nbody.units import rate

TENSOR_CORES = ("k19", "k20")
"""Rungs that the peak of the float pipes does not bound; their bars have another colour."""


def plot_ladder(found: Report, path: Path) -> None:
    """Draw the rungs' TFLOP/s at one n, a panel a precision, to a PNG. Needs no display."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows = ladder_rows(found)
    n = shown_size(rows)
    panels = [(precision, own) for precision, at, own in groups(rows) if at == n]
    names = list(dict.fromkeys(row["name"] for _, own in panels for row in own if _drawn(row)))
    figure, axes = plt.subplots(
        1, len(panels), sharey=True, squeeze=False, figsize=(3.5 + 5.0 * len(panels), 1.8 + 0.3 * max(4, len(names)))
    )
    for panel, (precision, own) in zip(axes[0], panels, strict=True):
        _panel(panel, precision, own, names)
    titles = {row["name"]: f"{row['name']}  {row['title']}{shape_told(row)}" for row in rows if row["size"] == n}
    axes[0][0].set_yticks(range(len(names)), [titles[name] for name in names], fontsize=8)
    axes[0][0].set_ylim(len(names) - 0.4, -0.6)
    figure.suptitle(f"The matrix ladder, n = {n}: {machine_line(found['machine'])}", fontsize=11)
    figure.tight_layout()
    figure.savefig(path, format="png", dpi=130, metadata={"Description": machine_line(found["machine"])})
    plt.close(figure)


def _drawn(row: Row) -> bool:
    """True for a rung with a rate of operations. (The element-wise kernels have none worth the name.)"""
    return bool(row["gflops"]) and row["name"] not in CUBLAS


def _panel(axes: Any, precision: str, rows: Sequence[Row], names: Sequence[str]) -> None:
    """One precision: the bars, each with its figure at its end, and the lines."""
    for row in filter(_drawn, rows):
        y, value = names.index(row["name"]), _tflops(row)
        axes.barh(y, value, color="C1" if row["name"] in TENSOR_CORES else "C0", height=0.7)
        axes.annotate(
            _figure(row),
            (value, y),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8},
        )
    peaks = [100 * _tflops(row) / row["percent_of_peak"] for row in rows if row["percent_of_peak"]]
    lines = [(_tflops(row), "cuBLAS", "C3", "-") for row in rows if row["name"] == CUBLAS[0] and row["gflops"]]
    lines += [(peak, "peak of the pipes", "0.4", "--") for peak in peaks[:1]]
    for value, label, colour, style in lines:
        told = f"{label} {rate(1e12 * value)}FLOP/s"
        axes.axvline(value, color=colour, linestyle=style, linewidth=1.2, label=told, zorder=0)
    largest = max([value for value, *_ in lines] + [_tflops(row) for row in filter(_drawn, rows)], default=1.0)
    axes.set_xlim(0, 1.3 * largest)
    axes.set_title(precision, fontsize=10, loc="left")
    axes.set_xlabel("TFLOP/s")
    if lines:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1.005), fontsize=7, frameon=False, ncols=2, borderaxespad=0.1)
    axes.grid(True, axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _tflops(row: Row) -> float:
    return row["gflops"] / 1e3


def _figure(row: Row) -> str:
    """What stands at a bar's end; for the skinny product, which memory bounds, its bandwidth."""
    share = "" if row["percent_of_cublas"] is None else f", {row['percent_of_cublas']:.3g} % of cuBLAS"
    if row["n"] < row["m"]:
        return f"{row['gbytes_per_s']:.0f} GB/s{share}"
    return f"{_tflops(row):.3g}{share}"
