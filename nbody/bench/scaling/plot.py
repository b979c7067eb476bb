"""The scaling suite's picture: speed-up against the number of GPUs, a line per N."""

from pathlib import Path

from nbody.bench.report import Report
from nbody.bench.row import distinct


def plot(report: Report, path: Path) -> None:
    """Draw the speed-ups to a PNG. Needs no display."""
    from matplotlib.figure import Figure

    rows = report.of("scaling")
    figure = Figure(figsize=(5.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    most = max((row.gpus for row in rows), default=1)
    axes.plot([1, most], [1, most], color="0.7", linewidth=1, label="ideal")
    for each in distinct(rows, "name", "precision", "particles"):
        of = [row for row in rows if (row.name, row.precision, row.particles) == each and row.speedup]
        label = "{}, {}, N = {}".format(*each)
        axes.plot([row.gpus for row in of], [row.speedup for row in of], "o-", label=label)
    axes.set_xticks(sorted({row.gpus for row in rows}))
    axes.set(xlabel="GPUs", ylabel="speed-up", title=f"Whole steps on several GPUs\n{report.device}")
    axes.legend()
    figure.savefig(path, format="png", dpi=130, metadata={"Description": report.device})
