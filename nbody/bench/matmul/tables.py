"""The tables of the ladder's report, one for each size and precision, and those of the README; and its picture."""

from collections.abc import Iterator, Sequence
from typing import Required

from typing_extensions import TypedDict

from nbody.bench.matmul.cublas import CUBLAS
from nbody.bench.plot import Bar, Panel, Picture
from nbody.bench.report import Report
from nbody.bench.row import Amount, Count, Row, grouped
from nbody.bench.tables import Joined, Sheet, TableColumn, about, checked_time, error, markdown, named, of, three
from nbody.linalg import LADDER
from nbody.linalg.rung import LECTURE_SIZE
from nbody.number_format import duration, rate, size


class MatmulFacts(TypedDict, total=False):
    """Of C (m, n) = A (m, k) B (k, n), where m = n = k = size unless the rung says otherwise.

    Attributes:
        percent_of_peak: of the float pipes, without tensor cores.
        gbytes_per_s: counts each matrix once.
        reads_global, bytes_global: elements read from global memory per result, and bytes for the whole product.
        predicted_cycles, predicted_speedup: by the model of the course.
    """

    percent_of_peak: Amount
    percent_of_cublas: Amount
    gbytes_per_s: Amount
    reads_global: Amount
    bytes_global: Amount
    predicted_cycles: Amount
    predicted_speedup: Amount
    error_mean: Amount
    size: Required[Count]
    m: Required[Count]
    n: Required[Count]
    k: Count
    title: Required[str]
    improves: str


FACTS = {"matmul": MatmulFacts}

COLUMNS = (
    TableColumn("rung", "name", left=True),
    TableColumn("", lambda row: shown(row), left=True),
    TableColumn("\ntime", checked_time),
    TableColumn("\nGFLOP/s", "gflops", three),
    TableColumn("% of\npeak", "percent_of_peak", three),
    TableColumn("% of\ncuBLAS", "percent_of_cublas", three),
    TableColumn("× naive", "speedup", three),
    TableColumn("by the\nmodel", "predicted_speedup", three),
    TableColumn("global reads\nper result", "reads_global", three),
    TableColumn("global\nreads", "bytes_global", size),
    TableColumn("\nGB/s", "gbytes_per_s", three),
    TableColumn("error:\nlargest", "error", error),
    TableColumn("\nmean", "error_mean", error),
)

EXPLAINED = (
    "Random matrices in [0, 1). The peak is that of the float pipes, without tensor cores (cuBLAS uses them in float64). "
    "'× naive' compares with the first kernel for matrices of any size, and 'by the model' is what the lecture's simple "
    "model expects of that: a read from global memory takes 1000 cycles, one from shared memory 10, arithmetic nothing. "
    "GB/s counts each matrix once. Errors are relative, against float64."
)


def shown(row: Row) -> str:
    """The title, and the shape of a product that is not n x n by n x n."""
    return row["title"] if row["m"] == row["n"] == row["size"] else "{title}, {m}x{k} by {k}x{n}".format_map(row.facts)


def shown_size(rows: Sequence[Row]) -> int:
    """The lecture's n if it was measured, else the largest."""
    sizes = {row["size"] or 0 for row in rows}
    return LECTURE_SIZE if LECTURE_SIZE in sizes else max(sizes)


def sheets(report: Report) -> Iterator[Sheet]:
    """A table for each precision and n; the meaning of the columns is below the last one."""
    rows = report.of("matmul")
    groups = grouped(rows, "precision", "size")
    for (precision, n), own in groups.items():
        explained = EXPLAINED if (precision, n) == list(groups)[-1] else ""
        yield Sheet(f"{precision}, n = {n}, on {report.device}", about(report, explained, own), COLUMNS, own, "size")


def picture(report: Report) -> Picture:
    """The rungs' TFLOP/s at one n, a bar per rung in the order of the course, a panel per precision."""
    n = shown_size(report.of("matmul"))
    rows = [row for row in report.of("matmul") if row["size"] == n]
    panels = [_bars(precision, own) for (precision,), own in grouped(rows, "precision").items()]
    most = max((len(panel.bars) for panel in panels), default=0)
    return Picture(f"The matrix ladder, n = {n}: {report.device}", panels, height=1.8 + 0.3 * max(4, most))


def _bars(precision: str, rows: Sequence[Row]) -> Panel:
    """One precision, with cuBLAS and the peak of the float pipes as lines. (Tensor cores, which that peak does not bound,
    have another colour.)"""
    timed = [row for row in rows if row.gflops]
    bars, marks = [], []
    for row in timed:
        value = row.gflops / 1e3  # type: ignore[operator]
        if row.name == CUBLAS[0]:
            marks.append((f"cuBLAS {rate(1e12 * value)}FLOP/s", value))
        elif row.name not in CUBLAS:
            tensor = row.name in LADDER and "tensor cores" in LADDER.load(row.name).claims
            bars.append(Bar(f"{row.name}  {shown(row)}", value, _figure(row), int(tensor)))
    if peaks := [row.gflops / row["percent_of_peak"] / 10 for row in timed if row.gflops and row["percent_of_peak"]]:
        marks.append((f"float pipes {rate(1e12 * peaks[0])}FLOP/s", peaks[0]))
    return Panel(precision, "TFLOP/s", bars=bars, marks=marks)


def _figure(row: Row) -> str:
    """The label at a bar's end; for a skinny product, which memory bounds, its bandwidth."""
    percentage = "" if row["percent_of_cublas"] is None else f", {row['percent_of_cublas']:.3g} % of cuBLAS"
    skinny = (row["n"] or 0) < (row["m"] or 0)
    return (f"{row['gbytes_per_s']:.0f} GB/s" if skinny else f"{(row.gflops or 0) / 1e3:.3g}") + percentage


def full_table(report: Report) -> str:
    """The report as two Markdown tables: every rung at one n with all figures, and its speed at every n."""
    rows = [row for row in report.of("matmul") if row.seconds or row["size"] == shown_size(report.of("matmul"))]
    if not rows:
        return ""
    n, sizes = shown_size(rows), sorted({row["size"] for row in rows})
    lines = []
    for own in grouped(rows, "name").values():
        timed = [row for row in own if row.seconds] or own
        at = n if any(row["size"] == n for row in timed) else max(row["size"] for row in timed)  # too slow for n
        lines.append(Joined([row for row in timed if row["size"] == at], "precision"))
    columns = [
        named("rung"),
        TableColumn("idea", lambda line: shown(line.last) + f", n = {line['size']}" * (line["size"] != n), left=True),
        TableColumn("global reads per result", "reads_global", three),
        TableColumn("× by the model", "predicted_speedup", three),
    ]
    for (precision,) in grouped(rows, "precision"):
        columns += [
            of(precision, f"{precision}: time", "seconds", duration),
            TableColumn("FLOP/s", lambda line, p=precision: _speed(line.by.get(p))),  # type: ignore[misc]
            of(precision, "% of peak", "percent_of_peak", three),
            of(precision, "% of cuBLAS", "percent_of_cublas", three),
            of(precision, "× naive", "speedup", three),
            of(precision, "error, largest", "error", error),
        ]
    explained = f"On {report.provenance}, n = {n}. {EXPLAINED}"
    return "\n\n".join([markdown(columns, lines, explained), *([_by_size(rows, sizes)] if len(sizes) > 1 else [])])


PAGES = {"matmul": full_table}


def _speed(row: Row | None) -> str | None:
    """FLOP/s; for an element-wise kernel, the bytes that it moves per second."""
    if row and row.gflops:
        return rate(1e9 * row.gflops)
    return f"{size(1e9 * row['gbytes_per_s'])}/s" if row and row["gbytes_per_s"] else None


def _by_size(rows: Sequence[Row], sizes: Sequence[int]) -> str:
    """FLOP/s at each n, with the percentage of cuBLAS."""
    groups = grouped([row for row in rows if row.gflops], "precision", "name").values()
    columns = [
        named("FLOP/s"),
        TableColumn("precision", "precision", left=True),
        *(TableColumn(f"n = {n}", lambda line, n=n: line.by.get(n), _with_percentage) for n in sizes),  # type: ignore[misc]
    ]
    return markdown(columns, [Joined(own, "size") for own in groups])


def _with_percentage(row: Row) -> str:
    percentage = "" if row.name in CUBLAS or not row["percent_of_cublas"] else f" ({row['percent_of_cublas']:.0f} %)"
    return rate(1e9 * (row.gflops or 0)).strip() + percentage
