"""The picture of the integrators suite: energy error against seconds, a panel per problem, a line per scheme."""

from pathlib import Path

from nbody.bench.report import Report
from nbody.bench.row import distinct
from nbody.figures import RC, SERIES, plain
from nbody.integrators import INTEGRATORS


def plot(report: Report, path: Path) -> None:
    """Draw all rows with a time to a PNG. Needs no display."""
    import matplotlib
    from matplotlib.figure import Figure

    rows = [row for row in report.of("integrators") if row.seconds]
    panels = distinct(rows, "problem", "particles", "backend")
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(4.2 * max(1, len(panels)), 4.6), layout="constrained")
        figure.suptitle(f"Error against time: {report.device}", fontsize=10)
        lines = {}
        for axes, panel in zip(figure.subplots(1, max(1, len(panels)), squeeze=False)[0], panels, strict=False):
            for k, name in enumerate(INTEGRATORS):
                own = [r for r in rows if (r.problem, r.particles, r.backend) == panel and r.name == name]
                if own:
                    style = {"marker": "os^D"[k // len(SERIES)], "ls": ("-", "--")[k // len(SERIES)], "ms": 4}
                    errors = [max(row.energy_error, 1e-16) for row in own]  # a logarithm has no zero
                    (lines[name],) = axes.loglog(
                        [r.seconds for r in own], errors, color=SERIES[k % len(SERIES)], **style
                    )
            problem, count, backend = panel
            plain(axes, f"{problem}, N = {count}, {backend.upper()}")
            axes.set_xlabel("seconds")
            axes.set_ylabel("energy error")
        figure.legend(list(lines.values()), list(lines), loc="outside lower center", ncols=7)
        figure.savefig(path, format="png", dpi=130, metadata={"Description": report.device})
