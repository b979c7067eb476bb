"""The README's tables, written from reports and never by hand."""

from collections.abc import Callable, Sequence
from pathlib import Path

from nbody.bench.forces import ForceRow
from nbody.bench.lecture import LARGEST
from nbody.bench.report import Report, force_rows, machine_line
from nbody.errors import InputError
from nbody.units import duration, rate

LECTURE_COUNT = LARGEST
"""The N at which the lecture's run is shown, where it was measured."""


def markers(suite: str) -> tuple[str, str]:
    """The lines between which a suite's tables stand."""
    return f"<!-- {suite}:begin -->", f"<!-- {suite}:end -->"


BEGIN, END = markers("bench")


def around(path: Path, suite: str = "bench") -> tuple[str, str]:
    """A Markdown file's text before and after the place of a suite's tables (better asked before the measuring).

    Raises:
        InputError: the file can't be read, or does not have each marker once, in order.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: can't be read ({getattr(error, 'strerror', error)}); check the path") from None
    begin, end = markers(suite)
    if not (text.count(begin) == text.count(end) == 1 and text.index(begin) < text.index(end)):
        raise InputError(f"{path}: the table's place must be marked by a line {begin} and, below it, a line {end}")
    return text.split(begin)[0], text.split(end)[1]


def rewrite(
    path: Path, reports: Sequence[Report], suite: str = "bench", table: Callable[[Report], str] | None = None
) -> None:
    """Put the reports' tables between the markers of a Markdown file, and leave the rest of it alone. ``table`` makes
    Markdown of a report (:func:`markdown`).

    Raises:
        InputError: the file can't be read or written, or does not have each marker once, in order.
    """
    begin, end = markers(suite)
    before, after = around(path, suite)
    if table is None and not all(map(force_rows, reports)):
        raise InputError("--readme: there is no force suite in this report; make one with 'nbody bench', no --roofline")
    tables = "\n\n".join((table or markdown)(each) for each in reports)
    try:
        path.write_text(f"{before}{begin}\n{tables}\n{end}{after}", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: can't be written ({error.strerror}); check its permissions") from None


def markdown(found: Report) -> str:
    """A report's force rows as a Markdown table: a line an engine and precision, a column an N."""
    rows = force_rows(found)
    counts = sorted({row.particles for row in rows})
    runs = {row.particles for row in rows if row.lecture_seconds}
    lecture = LECTURE_COUNT if LECTURE_COUNT in runs or not runs else max(runs)
    facts = found["machine"]
    heads = [
        "engine", "precision", *(f"N = {count}" for count in counts), "× one core", "error, median", "error, largest",
        f"lecture's run, N = {lecture}",
    ]  # fmt: skip
    lines = [
        f"Interactions per second on {machine_line(facts)}, {facts['started'][:10]}, nbody {facts['version']}. At the "
        "largest N that was measured: the speed-up against one core of the `cpu` engine, and the relative force error "
        "against float64 sums. The lecture's run is ten steps of the 2-D disc, copies included, compilation and the "
        "taking of memory apart.",
        "",
        _line(heads),
        _line([":--", ":--"] + ["--:"] * (len(heads) - 2)),
    ]
    for name, precision in dict.fromkeys((row.name, row.precision) for row in rows):
        own = {row.particles: row for row in rows if (row.name, row.precision) == (name, precision) and row.seconds}
        if own:
            lines.append(_line([f"`{name}`", precision, *_cells(own, counts, lecture)]))
    return "\n".join(lines)


def _cells(own: dict[int, ForceRow], counts: Sequence[int], lecture: int) -> list[str]:
    """The speeds of one engine and precision at each N, and its other figures at its largest N."""
    last = own[max(own)]
    run = duration(own[lecture].lecture_seconds) if lecture in own else "–"
    speeds = [rate(own[count].interactions_per_s).strip() if count in own else "–" for count in counts]
    speedup = "–" if last.speedup is None else f"{last.speedup:.3g}"
    return [*speeds, speedup, f"{last.error_median:.1e}", f"{last.error:.1e}", run]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
