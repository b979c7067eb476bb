"""What the force suite says: a table for the terminal, and the README's, from one report."""

from collections.abc import Sequence
from typing import Any, Literal

from nbody.bench.forces.lecture import LARGEST
from nbody.bench.forces.row import ForceRow, force_rows
from nbody.bench.report import Report, error, machine_line, markdown_table, ratio
from nbody.errors import InputError
from nbody.forces import ENGINES
from nbody.units import duration, rate

# --- On the terminal ------------------------------------------------------------------------------------------------

HEADINGS: tuple[tuple[str, Literal["left", "right"]], ...] = (
    ("N", "right"), ("engine", "left"), ("precision", "left"), ("a force\nevaluation", "right"),
    ("inter-\nactions/s", "right"), ("\nGFLOP/s", "right"), ("× one\ncore", "right"), ("× all\ncores", "right"),
    ("×\nNumPy", "right"), ("error:\nmedian", "right"), ("\n99 %", "right"), ("\nlargest", "right"),
    ("lecture's\nrun", "right"),
)  # fmt: skip


def force_table(found: Report) -> Any:
    """A rich table of the force suite's rows, one group an N; the notes stand below it."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=f"Forces on {machine_line(found['machine'])}", caption=_caption(found), caption_justify="left",
        title_justify="left", box=SIMPLE_HEAD, padding=0,
    )  # fmt: skip
    for heading, justify in HEADINGS:
        table.add_column(heading, justify=justify)
    before = None
    for row in force_rows(found):
        if row.particles != before and before is not None:
            table.add_section()
        before = row.particles
        table.add_row(*_cells(row), style="red" if row.wrong else None)
    return table


def _cells(row: ForceRow) -> tuple[str, ...]:
    return (
        str(row.particles),
        row.name + ENGINES.mark(row.name),
        row.precision,
        "WRONG" if row.wrong and not row.seconds else duration(row.seconds),
        rate(row.interactions_per_s),
        f"{row.gflops:.3g}" if row.gflops else "–",
        *(ratio(value) for value in (row.speedup, row.speedup_all_cores, row.speedup_reference)),
        *(error(value) for value in (row.error_median, row.error_99, row.error)),
        "WRONG" if row.wrong and row.seconds else duration(row.lecture_seconds),
    )


def _caption(found: Report) -> str:
    lines = [f"{row.name} {row.precision}, N = {row.particles}: {row.note}" for row in force_rows(found) if row.note]
    explained = (
        "3-D, Plummer softening, unequal masses; compilation apart. GFLOP/s at 20 operations an interaction. Speed-ups "
        "refer to the cpu engine in the same precision and to NumPy. Errors are relative, against float64 sums. The "
        f"lecture's run, up to its N of {LARGEST}: 10 steps of its 2-D disc, with the copies to the device and back; memory "
        "is taken before."
    )
    return "\n".join([explained, *lines])


# --- In the README --------------------------------------------------------------------------------------------------


def markdown(found: Report) -> str:
    """A report's force rows as a Markdown table: a line an engine and precision, a column an N. Raises InputError where
    there are none."""
    rows = force_rows(found)
    if not rows:
        raise InputError("--readme: there is no force suite in this report; make one with 'nbody bench', no --roofline")
    counts = sorted({row.particles for row in rows})
    runs = {row.particles for row in rows if row.lecture_seconds}
    lecture = LARGEST if LARGEST in runs or not runs else max(runs)
    facts = found["machine"]
    heads = [
        "engine", "precision", *(f"N = {count}" for count in counts), "× one core", "error, median", "error, largest",
        f"lecture's run, N = {lecture}",
    ]  # fmt: skip
    about = (
        f"Interactions per second on {machine_line(facts)}, {facts['started'][:10]}, nbody {facts['version']}. At the "
        "largest N that was measured: the speed-up against one core of the `cpu` engine, and the relative force error "
        "against float64 sums. The lecture's run is ten steps of the 2-D disc, copies included, compilation and the "
        "taking of memory apart."
    )
    table = []
    for name, precision in dict.fromkeys((row.name, row.precision) for row in rows):
        own = {row.particles: row for row in rows if (row.name, row.precision) == (name, precision) and row.seconds}
        if own:
            table.append([f"`{name}`{ENGINES.mark(name)}", precision, *_readme_cells(own, counts, lecture)])
    return "\n".join([about, "", *markdown_table(heads, table)])


def _readme_cells(own: dict[int, ForceRow], counts: Sequence[int], lecture: int) -> list[str]:
    """The speeds of one engine and precision at each N, and its other figures at its largest N."""
    last = own[max(own)]
    run = duration(own[lecture].lecture_seconds) if lecture in own else "–"
    speeds = [rate(own[count].interactions_per_s).strip() if count in own else "–" for count in counts]
    speedup = "–" if last.speedup is None else f"{last.speedup:.3g}"
    return [*speeds, speedup, error(last.error_median), error(last.error), run]
