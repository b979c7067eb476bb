"""The tables of the force suite's report, for the terminal and the README files; and its picture."""

from collections.abc import Iterator, Sequence

from nbody.bench.columns import Sheet, TableColumn, code, column, columns, grouped, markdown, ratio, three
from nbody.bench.forces import crossings
from nbody.bench.forces.lecture import COUNTS
from nbody.bench.forces.rows import ALL_CORES, ONE_CORE, EvaluationRow, ForceRow, LectureRow, TreeRow
from nbody.bench.plot import Line, Panel, Picture
from nbody.bench.report import Report
from nbody.forces import ENGINES
from nbody.forces.engine import ROUNDOFF
from nbody.number_format import rate

ROWS = (ForceRow, LectureRow, TreeRow)

WHO = "particles name precision"
SPEED = f"{WHO} seconds interactions_per_s gflops"
ERRORS = "error_median error_99 error"
"""Names of columns that several tables have."""

FORCES = columns(ForceRow, f"{SPEED} speedup speedup_all_cores speedup_reference {ERRORS} lecture_seconds")

LECTURE = columns(LectureRow, f"{WHO} seconds speedup speedup_all_cores k40c_seconds k40c_speedup error")

TREES = [
    *columns(TreeRow, f"{WHO} seconds particles_per_s"),
    TableColumn("interactions\nper particle", three, value=lambda row: ratio(row.interactions, row.particles)),
    *columns(TreeRow, ERRORS),
]

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

TREES_EXPLAINED = (
    "The same bodies, by trees, excluding compilation: order, tree and forces of one evaluation after another. The number "
    "after a tree's name is the median error that was asked for."
)


def sheets(report: Report) -> Iterator[Sheet]:
    """The tables of direct sums, of the lecture and of trees, with one group per N."""
    if rows := report.of(ForceRow):
        yield Sheet(f"Forces on {report.device}", report.about(EXPLAINED, rows), FORCES, rows)
    if runs := report.of(LectureRow):
        yield Sheet(f"The lecture's table on {report.device}", LECTURE_EXPLAINED, LECTURE, runs)
    if trees := report.of(TreeRow):
        found = "; ".join(map(str, crossings.crossings(report)))
        about = report.about(TREES_EXPLAINED, trees) + f"\nFaster than direct sums: {found}." * bool(found)
        yield Sheet(f"Trees on {report.device}", about, TREES, trees)


def picture(report: Report) -> Picture:
    """Interactions per second against N; with trees the time of an evaluation, and the errors."""
    if report.of(TreeRow):
        return crossings.picture(report)
    return speeds(f"Direct-sum gravity, 3-D, softened: {report.device}", report.of(ForceRow))


def speeds(title: str, rows: Sequence[EvaluationRow]) -> Picture:
    """Interactions per second, a panel per precision: a line per competitor with its last speed; dotted ones for bounds."""
    timed = [row for row in rows if row.interactions_per_s]
    by = grouped(sorted(timed, key=lambda row: list(ROUNDOFF).index(row.precision)), "precision")
    return Picture(title, [_speeds(precision, own) for precision, own in by.items()], shared=True)


def _speeds(precision: str, rows: Sequence[EvaluationRow]) -> Panel:
    lines, ticks = [], sorted({row.count for row in rows})
    for name, own in grouped(rows, "name").items():
        text = f"{name}  {rate(own[-1].interactions_per_s)}".rstrip()
        bound = getattr(own[-1], "slot_bound", None)  # of the roofline suite
        if bound:
            lines.append(Line(name, [ticks[0], ticks[-1]], [bound, bound], dotted=True))
            text += f" of {rate(bound)}".rstrip()
        lines.append(Line(name, [row.count for row in own], [row.interactions_per_s or 0 for row in own], text))
    what = "interactions per second (N² per force evaluation)"
    return Panel(precision, "N, number of particles", what, lines, ticks=ticks, show=rate)


Lines = list[dict[int, ForceRow]]
"""The lines of a Markdown table, each with the rows of an engine in a precision, by N."""


def _lines(report: Report) -> Lines:
    timed = [row for row in report.of(ForceRow) if row.seconds]
    return [{row.count: row for row in own} for own in grouped(timed, "name", "precision").values()]


def _columns(counts: Sequence[int]) -> list[TableColumn]:
    """The engine, its speed at each N, and what is known of the largest."""
    speed = column(ForceRow, "interactions_per_s")
    return [
        column(ForceRow, "name")._replace(show=lambda name: code(name) + ENGINES.mark(name)).of_line(),
        column(ForceRow, "precision").of_line(),
        *(speed.of_line(f"N = {n}", n) for n in counts),
        column(ForceRow, "speedup").of_line("× one core"),
        column(ForceRow, "error_median").of_line("error, median"),
    ]


def full_table(report: Report) -> str:
    """A line per engine and precision, a column per N; empty where the report has no forces."""
    if not (lines := _lines(report)):
        return ""
    runs = [n for line in lines for n, row in line.items() if row.lecture_seconds] or COUNTS
    n = max(COUNTS) if max(COUNTS) in runs else max(runs)
    explained = (
        f"Interactions per second on {report.provenance}. At the largest N that was measured: the speed-up against one core "
        "of the `cpu` engine, and the relative force error against float64 sums. The lecture's run is ten steps of the 2-D "
        "disc, copies included, excluding compilation and memory allocation."
    )
    found = [
        *_columns(sorted({n for line in lines for n in line})),
        column(ForceRow, "error").of_line("error, largest"),
        column(ForceRow, "lecture_seconds").of_line(f"lecture's run, N = {n}", n),
    ]
    return markdown(found, lines, explained)


def speed_table(report: Report) -> str:
    """The front page's table: the ``cpu`` engine, and the fastest engine on the GPU in each precision."""
    last = {(row.name, row.precision): (row, line) for line in _lines(report) for row in [line[max(line)]]}
    on_cpu = [(ONE_CORE, "float32"), (ALL_CORES, "float32"), (ALL_CORES, "float64")]
    chosen = [last[key][1] for key in on_cpu if key in last]
    on_gpu = [(row, line) for row, line in last.values() if row.backend == "gpu" and not ENGINES.mark(row.name)]
    for precision in dict.fromkeys(row.precision for row, _ in on_gpu):
        own = [each for each in on_gpu if each[0].precision == precision]
        chosen.append(max(own, key=lambda each: each[0].interactions_per_s or 0.0)[1])
    if not chosen:
        return ""
    counts = sorted({n for line in chosen for n in line})
    shown = _columns(sorted({counts[0], counts[len(counts) // 2], counts[-1]}))
    return markdown(shown, chosen, f"Interactions per second on {report.provenance}.")


PAGES = {"bench": full_table, "speed": speed_table}
