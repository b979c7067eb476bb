"""The roofline suite's tables: speeds beside their bounds, the kernels behind them, and the lecture's table."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from nbody.bench.forces.lecture import LectureRow
from nbody.bench.report import Report, error, machine_line, ratio, rows_of
from nbody.bench.roofline.row import RooflineRow
from nbody.forces import ENGINES
from nbody.units import duration, rate


class Column(NamedTuple):
    """A table's column: its heading, what stands in it, and on which side."""

    heading: str
    cell: Callable[[Any], str]
    justify: str = "right"


def percent(value: float | None) -> str:
    """A share with a digit behind the point, or a dash."""
    return "–" if value is None else f"{value:.1f}"


def number(value: float | None) -> str:
    """A count, or a dash."""
    return "–" if value is None else f"{value:.0f}"


WHO = (
    Column("N", lambda row: str(row.particles)),
    Column("engine", lambda row: row.name + ENGINES.mark(row.name), "left"),
    Column("precision", lambda row: row.precision, "left"),
)

SPEEDS = (
    *WHO,
    Column("a force\nevaluation", lambda row: "WRONG" if row.wrong else duration(row.seconds)),
    Column("inter-\nactions/s", lambda row: rate(row.interactions_per_s)),
    Column("\nGFLOP/s", lambda row: number(row.gflops)),
    Column("% of\npeak", lambda row: percent(row.percent_of_peak)),
    Column("% of\nslots", lambda row: percent(row.percent_of_slots)),
    Column("% of\nroots", lambda row: percent(row.percent_of_roots)),
    Column(
        "clock,\nGHz", lambda row: f"{row.clock / 1e9:.2f}" if row.clock and row.clock_source == "measured" else "–"
    ),
    Column("power,\nW", lambda row: number(row.power)),
    Column("error:\nmedian", lambda row: error(row.error_median)),
    Column("\n99 %", lambda row: error(row.error_99)),
    Column("\nlargest", lambda row: error(row.error)),
)

KERNELS = (
    *WHO,
    Column("slots", lambda row: "–" if row.slots is None else f"{row.slots:.2f}{'' if row.slots_source == 'SASS' else '*'}"),
    Column("regis-\nters", lambda row: number(row.registers)),
    Column("shared,\nbytes", lambda row: number(row.shared_bytes)),
    Column("local,\nbytes", lambda row: number(row.local_bytes)),
    Column("threads", lambda row: number(row.threads_a_block)),
    Column("occu-\npancy", lambda row: "–" if row.occupancy is None else f"{100 * row.occupancy:.0f} %"),
    Column("blocks", lambda row: number(row.blocks)),
    Column("waves", lambda row: "–" if row.waves is None else f"{row.waves:.2f}"),
    Column("laun-\nches", lambda row: number(row.launches)),
    Column("a whole\nstep", lambda row: duration(row.step_seconds)),
    Column("launch\n%", lambda row: percent(row.percent_launch)),
    Column("record\n%", lambda row: percent(row.percent_recording)),
)  # fmt: skip

LECTURE = (
    Column("N", lambda row: str(row.particles)),
    Column("engine", lambda row: row.name + ENGINES.mark(row.name), "left"),
    Column("ten steps\nwith copies", lambda row: "WRONG" if row.wrong else duration(row.seconds)),
    Column("rate:\n× one core", lambda row: ratio(row.speedup)),
    Column("\n× all cores", lambda row: ratio(row.speedup_all_cores)),
    Column("Tesla K40c", lambda row: duration(row.k40c_seconds)),
    Column("rate:\n× a Core2", lambda row: ratio(row.k40c_speedup)),
    Column("error:\nlargest", lambda row: error(row.error)),
)

EXPLAINED = (
    "3-D, Plummer softening, unequal masses; device time, launches left out (JAX: the host's clock). GFLOP/s at 20 "
    "operations an interaction, which a kernel that computes each pair once does not all do. Slots: 4 warp instructions "
    "a clock and multiprocessor, and its float pipes; roots: 16 reciprocal square roots. Errors are relative, against "
    "float64 sums."
)

STEPS_EXPLAINED = (
    "Slots: instructions an interaction in the innermost loop of the kernel, counted in its machine code{ptx}. Launch: "
    "what of a leapfrog step, replayed from a graph, is no force kernel's time. Copies: what recording every step adds "
    "to one that Python launches."
)

LECTURE_EXPLAINED = (
    "The lecture's disc, 2-D, float32: bodies to the device, ten steps, everything back; compilation and the taking of "
    "memory apart. Rates refer to the cpu engine on this machine, and on the right to the lecture's own program on one "
    "core of a Core2."
)


def roofline_tables(found: Report) -> Iterator[Any]:
    """Two rich tables of the roofline's rows: of speeds, with the notes below them, and of kernels and steps."""
    rows = rows_of(found, "roofline", RooflineRow)
    notes = [f"{row.name} {row.precision}, N = {row.particles}: {row.note}" for row in rows if row.note]
    absent = found.get("absent")
    if absent:
        notes.append(f"Not in the table: {', '.join(absent)}.")
    title = f"Forces and their bounds on {machine_line(found['machine'])}"
    yield _table(title, "\n".join([EXPLAINED, *notes]), SPEEDS, rows)
    own = [row for row in rows if row.kernel]
    if own:
        guessed = any(row.slots_source == "PTX" for row in own)
        ptx = " (*: in its PTX; there is no nvdisasm here)" if guessed else " by nvdisasm"
        yield _table("Their kernels, and whole steps", STEPS_EXPLAINED.format(ptx=ptx), KERNELS, own)


def lecture_table(found: Report) -> Any:
    """A rich table of the lecture's runs, with its own figures beside them."""
    rows = rows_of(found, "lecture", LectureRow)
    title = f"The lecture's table on {machine_line(found['machine'])}"
    return _table(title, LECTURE_EXPLAINED, LECTURE, rows)


def _table(title: str, caption: str, columns: Sequence[Column], rows: Sequence[Any]) -> Any:
    """Rows under columns, a group an N."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=title, caption=caption, caption_justify="left", title_justify="left", box=SIMPLE_HEAD, padding=0
    )
    for column in columns:
        table.add_column(column.heading, justify=column.justify)  # type: ignore[arg-type]
    for before, row in zip([None, *rows], rows, strict=False):
        if before is not None and row.particles != before.particles:
            table.add_section()
        table.add_row(*(column.cell(row) for column in columns), style="red" if row.wrong else None)
    return table
