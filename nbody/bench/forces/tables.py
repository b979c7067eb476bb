"""The tables of the force suite's report, for the terminal and the README files; and its picture."""

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from typing_extensions import TypedDict

from nbody.bench.forces.competitor import ALL_CORES, ONE_CORE
from nbody.bench.forces.lecture import COUNTS
from nbody.bench.plot import Line, Panel, Picture
from nbody.bench.report import Report
from nbody.bench.row import Amount, Count, Row, grouped, ratio
from nbody.bench.tables import (
    ERRORS,
    EVALUATION,
    SPEED,
    WHO,
    Joined,
    Sheet,
    TableColumn,
    about,
    checked_time,
    error,
    markdown,
    of,
    three,
)
from nbody.forces import ENGINES
from nbody.forces.engine import ROUNDOFF
from nbody.number_format import duration, rate


class CheckedFacts(TypedDict, total=False):
    """Of a force evaluation: relative errors, the largest that rounding explains for any particle, and the extra time of the
    first call."""

    error_median: Amount
    error_99: Amount
    error_bound: Amount
    compile_seconds: Amount


class ForceFacts(CheckedFacts, total=False):
    """The speed relative to all cores and to NumPy; and ten steps with copies, up to the lecture's N."""

    speedup_all_cores: Amount
    speedup_reference: Amount
    lecture_seconds: Amount


class LectureFacts(CheckedFacts, total=False):
    """The steps, the speed relative to all cores and to NumPy, and the lecture's own figures."""

    speedup_all_cores: Amount
    speedup_reference: Amount
    k40c_seconds: Amount
    k40c_speedup: Amount
    steps: Count


class TreeFacts(CheckedFacts, total=False):
    """The error that was asked for, the speed, and the pairs and moments that were computed."""

    accuracy: Amount
    particles_per_s: Amount
    interactions: Count


FACTS = {"forces": ForceFacts, "lecture": LectureFacts, "trees": TreeFacts}

COLUMNS = (
    *WHO,
    *SPEED,
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
    EVALUATION,
    TableColumn("particles/s", "particles_per_s", rate),
    TableColumn("interactions\nper particle", lambda row: ratio(row["interactions"], row.particles), three),
    *ERRORS,
)

TREES_EXPLAINED = (
    "The same bodies, by trees, excluding compilation: order, tree and forces of one evaluation after another. The number "
    "after a tree's name is the median error that was asked for."
)


class Crossing(NamedTuple):
    """A tree, and the number of particles from which it is faster than the fastest direct sums of its device: infinite if
    that is beyond the largest N, 0 if below the smallest; ``measured`` are these two, smallest first."""

    name: str
    precision: str
    particles: float
    measured: tuple[int, int]

    def __str__(self) -> str:
        """A clause about it."""
        if math.isinf(self.particles):
            return f"{self.name} ({self.precision}) above N = {self.measured[1]}"
        at = f"from N = {rounded(self.particles)} on" if self.particles else f"at every N from {self.measured[0]} on"
        return f"{self.name} ({self.precision}) {at}"


def rounded(particles: float) -> int:
    """A number of particles to two digits."""
    return int(float(f"{particles:.2g}"))


def crossings(report: Report) -> list[Crossing]:
    """Where each tree becomes faster than direct sums."""
    trees = [row for row in report.of("trees") if row.seconds and row.particles and row["accuracy"]]
    direct = [row for row in report.of("forces") if row.seconds and row.particles]
    found = []
    for (name, precision), own in grouped(trees, "name", "precision").items():
        sums = [row for row in direct if row.device == own[0].device and row.precision == precision]
        ratios = _ratios(own, sums)
        if ratios:
            ends = (round(math.exp(ratios[0][0])), round(math.exp(ratios[-1][0])))
            found.append(Crossing(name, precision, _crossing(ratios), ends))
    return found


def _ratios(trees: list[Row], direct: list[Row]) -> list[tuple[float, float]]:
    """Logarithms of N, and of the ratio of the direct sums' time to the tree's; direct sums beyond the last N that was
    measured take a time that grows like N²."""
    ratios = []
    for tree in sorted(trees, key=lambda row: row.count):
        below = [row for row in direct if row.count <= tree.count]
        if below:
            last = max(row.count for row in below)
            seconds = min(row.seconds or math.inf for row in below if row.count == last)
            longer = seconds * (tree.count / last) ** 2 / (tree.seconds or math.inf)
            ratios.append((math.log(tree.count), math.log(longer)))
    return ratios


def _crossing(ratios: list[tuple[float, float]]) -> float:
    """The N where the ratio of the two times is 1, on lines between the logarithms."""
    for (x, before), (y, after) in pairwise(ratios):
        if before < 0 <= after:
            return math.exp(x + (y - x) * before / (before - after))
    return math.inf if ratios[-1][1] < 0 else 0.0


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
