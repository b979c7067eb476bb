"""The tables of the force suite's report, for the terminal and the README files; and its picture."""

import math
from collections.abc import Iterable, Iterator

from nbody.bench.forces.competitor import ALL_CORES, ONE_CORE
from nbody.bench.forces.crossing import crossings, rounded
from nbody.bench.forces.lecture import COUNTS
from nbody.bench.plot import Line, Panel, Picture
from nbody.bench.report import Report
from nbody.bench.row import Row, facts, grouped, ratio
from nbody.bench.tables import ERRORS, WHO, Joined, Sheet, TableColumn, about, checked_time, error, markdown, of, three
from nbody.forces import ENGINES
from nbody.forces.engine import ROUNDOFF
from nbody.number_format import duration, rate

CHECKED = "error_median error_99 error_bound compile_seconds "
"""The facts of a force evaluation: relative errors, the largest that rounding explains for any particle, and the extra time
of the first call."""

RELATIVE = "speedup_all_cores speedup_reference "
"""The speed relative to all cores and to NumPy."""

FACTS = {
    "forces": facts(CHECKED + RELATIVE + "lecture_seconds"),  # ten steps with copies, up to the lecture's N
    "lecture": facts(CHECKED + RELATIVE + "k40c_seconds k40c_speedup", counts="steps"),  # the lecture's own figures
    "trees": facts(
        CHECKED + "accuracy particles_per_s", counts="interactions"
    ),  # asked for; pairs and moments computed
}

COLUMNS = (
    *WHO,
    TableColumn("a force\nevaluation", checked_time),
    TableColumn("inter-\nactions/s", "interactions_per_s", rate),
    TableColumn("\nGFLOP/s", "gflops", three),
    TableColumn("× one\ncore", "speedup", three),
    TableColumn("× all\ncores", "speedup_all_cores", three),
    TableColumn("×\nNumPy", "speedup_reference", three),
    *ERRORS,
    TableColumn(
        "lecture's\nrun", lambda row: "WRONG" if row.wrong and row.seconds else duration(row["lecture_seconds"])
    ),
)

LECTURE = (
    *WHO,
    TableColumn("ten steps\nwith copies", checked_time),
    TableColumn("rate:\n× one core", "speedup", three),
    TableColumn("\n× all cores", "speedup_all_cores", three),
    TableColumn("Tesla K40c", "k40c_seconds", duration),
    TableColumn("rate:\n× a Core2", "k40c_speedup", three),
    TableColumn("error:\nlargest", "error", error),
)

EXPLAINED = (
    "3-D, Plummer softening, unequal masses; excluding compilation. GFLOP/s at 20 operations per interaction. Speed-ups "
    "refer to the cpu engine in the same precision and to NumPy. Errors are relative, against float64 sums. The lecture's "
    f"run, up to its N of {max(COUNTS)}: 10 steps of its 2-D disc, with the copies to the device and back, excluding memory "
    "allocation."
)


LECTURE_EXPLAINED = (
    "The lecture's disc, 2-D: bodies to the device, ten steps, everything back; excluding compilation and memory "
    "allocation. Rates refer to the cpu engine on this machine, and on the right to the lecture's own program on one core "
    "of a Core2."
)


TREES = (
    *WHO,
    TableColumn("a force\nevaluation", checked_time),
    TableColumn("particles/s", "particles_per_s", rate),
    TableColumn("interactions\nper particle", lambda row: ratio(row["interactions"], row.particles), three),
    *ERRORS,
)

TREES_EXPLAINED = (
    "The same bodies, by trees, excluding compilation: order, tree and forces of one evaluation after another. The number "
    "after a tree's name is the median error that was asked for."
)


def sheets(report: Report) -> Iterator[Sheet]:
    """The table of the force suite and that of the lecture, with one group per N."""
    rows, runs = report.of("forces"), report.of("lecture")
    if rows:
        yield Sheet(f"Forces on {report.device}", about(report, EXPLAINED, rows), COLUMNS, rows)
    if runs:
        yield Sheet(f"The lecture's table on {report.device}", LECTURE_EXPLAINED, LECTURE, runs)
    if trees := report.of("trees"):
        found = [f"Faster than direct sums: {'; '.join(map(str, at))}."] if (at := crossings(report)) else []
        yield Sheet(
            f"Trees on {report.device}", "\n".join([about(report, TREES_EXPLAINED, trees), *found]), TREES, trees
        )


def picture(report: Report) -> Picture:
    """Interactions per second against N; with trees the time of an evaluation, and the errors."""
    if report.of("trees"):
        return scaling(report)
    return speeds("Direct-sum gravity, 3-D, softened", "forces", report)


def speeds(what: str, suite: str, report: Report) -> Picture:
    """The rows of a suite, a panel per precision: a line per competitor with its last speed; dotted ones for bounds."""
    rows = [row for row in report.of(suite) if row.interactions_per_s]
    by = grouped(sorted(rows, key=lambda row: list(ROUNDOFF).index(row.precision)), "precision")
    panels = [_speeds(precision, own) for (precision,), own in by.items()]
    return Picture(f"{what}: {report.device}", panels, shared=True)


def _speeds(precision: str, rows: list[Row]) -> Panel:
    lines, ticks = [], sorted({row.count for row in rows})
    for (name,), own in grouped(rows, "name").items():
        text, bound = f"{name}  {rate(own[-1].interactions_per_s)}".rstrip(), own[-1]["slot_bound"]
        if bound:
            lines.append(Line(name, [ticks[0], ticks[-1]], [bound, bound], dotted=True))
            text += f" of {rate(bound)}".rstrip()
        lines.append(Line(name, [row.count for row in own], [row.interactions_per_s or 0 for row in own], text))
    levels = sorted({(f"{text}  {rate(bound)}", bound) for row in rows for text, bound in _levels(row)})
    what = "interactions per second (N² per force evaluation)"
    return Panel(precision, "N, number of particles", what, lines, levels=levels, ticks=ticks, show=rate)


def _levels(row: Row) -> list[tuple[str, float]]:
    """The bounds by roots and by the float peak, rounded to two digits so that rows share them."""
    found = [("a root per pair" if row["interactions_a_root"] == 2 else "a root per interaction", row["root_bound"])]
    if row["root_bound"] and row["percent_of_peak"] and row.interactions_per_s:
        found.append(("the float peak at 20 operations", 100 * row.interactions_per_s / row["percent_of_peak"]))
    return [(text, float(f"{bound:.1e}")) for text, bound in found if bound]


def scaling(report: Report) -> Picture:
    """Seconds per force evaluation against N, where trees overtake direct sums, and the errors of both."""
    rows = [row for suite in ("forces", "trees") for row in report.of(suite) if row.seconds]
    largest = max((row.count for row in rows), default=1)
    times, errors = [], []
    for (precision, name), own in grouped(rows, "precision", "name").items():
        label, last = f"{name}, {precision}", own[-1]
        x = [row.count for row in own]
        times.append(Line(label, x, [row["seconds"] for row in own]))
        errors.append(Line(label, x, [row["error_median"] for row in own]))
        errors.append(Line(label, x, [row["error_99"] for row in own], dotted=True))
        if last.suite == "forces" and last.count < largest:
            beyond = [last["seconds"], last["seconds"] * (largest / last.count) ** 2]
            times.append(Line(label, [last.count, largest], beyond, dotted=True))
    marks = [
        (f"{at.name}: {rounded(at.particles)}", at.particles) for at in crossings(report) if 0 < at.particles < math.inf
    ]
    what = "N, number of particles"
    panels = [
        Panel("seconds per force evaluation (dotted: as N²)", what, "seconds", times, marks=marks),
        Panel("relative error: median (dotted: 99 %)", what, "relative error", errors),
    ]
    return Picture(f"Direct sums and trees, 3-D, softened: {report.device}", panels)


def _lines(report: Report) -> list[Joined]:
    rows = [row for row in report.of("forces") if row.seconds]
    return [Joined(own, "particles") for own in grouped(rows, "name", "precision").values()]


def _columns(counts: Iterable[int]) -> list[TableColumn]:
    """The engine, its speed at each N, and what is known of the largest."""
    return [
        TableColumn("engine", "name", lambda name: f"`{name}`{ENGINES.mark(name)}", left=True),
        TableColumn("precision", "precision", left=True),
        *(of(n, f"N = {n}", "interactions_per_s", rate) for n in counts),
        TableColumn("× one core", "speedup", three),
        TableColumn("error, median", "error_median", error),
    ]


def full_table(report: Report) -> str:
    """A line per engine and precision, a column per N; empty where the report has no forces."""
    if not (lines := _lines(report)):
        return ""
    counts = sorted({n for line in lines for n in line.by})
    runs = [row.count for line in lines for row in line.by.values() if row["lecture_seconds"]] or COUNTS
    n = max(COUNTS) if max(COUNTS) in runs else max(runs)
    explained = (
        f"Interactions per second on {report.provenance}. At the largest N that was measured: the speed-up against one core "
        "of the `cpu` engine, and the relative force error against float64 sums. The lecture's run is ten steps of the 2-D "
        "disc, copies included, excluding compilation and memory allocation."
    )
    columns = [
        *_columns(counts),
        TableColumn("error, largest", "error", error),
        of(n, f"lecture's run, N = {n}", "lecture_seconds", duration),
    ]
    return markdown(columns, lines, explained)


def speed_table(report: Report) -> str:
    """The front page's table: the ``cpu`` engine, and the fastest engine on the GPU in each precision."""
    lines = {(line.last.name, line.last.precision): line for line in _lines(report)}
    on_cpu = [(ONE_CORE, "float32"), (ALL_CORES, "float32"), (ALL_CORES, "float64")]
    chosen = [lines[key] for key in on_cpu if key in lines]
    on_gpu = [line for line in lines.values() if line.last.backend == "gpu" and not ENGINES.mark(line.last.name)]
    for precision in dict.fromkeys(line.last.precision for line in on_gpu):
        own = [line for line in on_gpu if line.last.precision == precision]
        chosen.append(max(own, key=lambda line: line.last.interactions_per_s or 0.0))
    if not chosen:
        return ""
    counts = sorted({n for line in chosen for n in line.by})
    columns = _columns(sorted({counts[0], counts[len(counts) // 2], counts[-1]}))
    return markdown(columns, chosen, f"Interactions per second on {report.provenance}.")


PAGES = {"bench": full_table, "speed": speed_table}
