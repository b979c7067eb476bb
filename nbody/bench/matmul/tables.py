"""The rows of the ladder's report, their tables (one for each size and precision, and those of the README) and picture."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from nbody.bench.columns import Sheet, TableColumn, code, column, columns, grouped, markdown, three
from nbody.bench.matmul.cublas import CUBLAS
from nbody.bench.plot import Bar, Panel, Picture
from nbody.bench.report import Report
from nbody.bench.row import Amount, Count, Row
from nbody.linalg import LADDER
from nbody.linalg.rung import LECTURE_SIZE
from nbody.number_format import duration, rate, size


@dataclass(frozen=True, kw_only=True)
class ProductRow(Row):
    """C (m, n) = A (m, k) B (k, n), where m = n = k = size unless the rung says otherwise.

    Attributes:
        speedup: relative to the naive kernel.
        percent_of_peak: of the float pipes, without tensor cores.
        gbytes_per_s: counts each matrix once.
        reads_global: elements read from global memory per result.
        predicted_cycles, predicted_speedup: by the model of the course.
    """

    suite: ClassVar[str] = "matmul"

    name: Annotated[str, TableColumn("rung", left=True)]
    title: str
    size: Count
    m: Count
    n: Count
    k: Count | None = None
    seconds: Annotated[Amount | None, TableColumn("\ntime", duration, if_wrong="WRONG")] = None
    gflops: Annotated[Amount | None, TableColumn("\nGFLOP/s", three)] = None
    percent_of_peak: Annotated[Amount | None, TableColumn("% of\npeak", three)] = None
    percent_of_cublas: Annotated[Amount | None, TableColumn("% of\ncuBLAS", three)] = None
    speedup: Annotated[Amount | None, TableColumn("× naive", three)] = None
    predicted_cycles: Amount | None = None
    predicted_speedup: Annotated[Amount | None, TableColumn("by the\nmodel", three)] = None
    reads_global: Annotated[Amount | None, TableColumn("global reads\nper result", three)] = None
    gbytes_per_s: Annotated[Amount | None, TableColumn("\nGB/s", three)] = None

    @property
    def what(self) -> str:
        return f"{self.name} {self.precision}, n = {self.size}"

    @property
    def idea(self) -> str:
        """The title, and the shape of a product that is not n x n by n x n."""
        square = self.m == self.n == self.size
        return self.title if square else f"{self.title}, {self.m}x{self.k} by {self.k}x{self.n}"

    @property
    def speed(self) -> str | None:
        """FLOP/s; for an element-wise kernel, the bytes that it moves per second."""
        if self.gflops:
            return rate(1e9 * self.gflops)
        return f"{size(1e9 * self.gbytes_per_s)}/s" if self.gbytes_per_s else None


ROWS = (ProductRow,)

COLUMNS = [
    column(ProductRow, "name"),
    TableColumn("", left=True, value=lambda row: row.idea),
    *columns(ProductRow, "seconds gflops percent_of_peak percent_of_cublas speedup predicted_speedup reads_global"),
    *columns(ProductRow, "gbytes_per_s error"),
]

EXPLAINED = (
    "Random matrices in [0, 1). The peak is that of the float pipes, without tensor cores (cuBLAS uses them in float64). "
    "'× naive' compares with the first kernel for matrices of any size, and 'by the model' is what the lecture's simple "
    "model expects of that: a read from global memory takes 1000 cycles, one from shared memory 10, arithmetic nothing. "
    "GB/s counts each matrix once. Errors are relative, against float64."
)


def shown_size(rows: Sequence[ProductRow]) -> int:
    """The lecture's n if it was measured, else the largest."""
    sizes = {row.size for row in rows}
    return LECTURE_SIZE if LECTURE_SIZE in sizes else max(sizes)


def sheets(report: Report) -> Iterator[Sheet]:
    """A table for each precision and n; the meaning of the columns is below the last one."""
    groups = grouped(report.of(ProductRow), "precision", "size")
    for (precision, n), own in groups.items():
        about = report.about(EXPLAINED if (precision, n) == list(groups)[-1] else "", own)
        yield Sheet(f"{precision}, n = {n}, on {report.device}", about, COLUMNS, own, "size")


def picture(report: Report) -> Picture:
    """The rungs' TFLOP/s at one n, a bar per rung in the order of the course, a panel per precision."""
    n = shown_size(report.of(ProductRow))
    rows = [row for row in report.of(ProductRow) if row.size == n]
    panels = [_bars(precision, own) for precision, own in grouped(rows, "precision").items()]
    most = max((len(panel.bars) for panel in panels), default=0)
    return Picture(f"The matrix ladder, n = {n}: {report.device}", panels, height=1.8 + 0.3 * max(4, most))


def _bars(precision: str, rows: Sequence[ProductRow]) -> Panel:
    """One precision, with cuBLAS and the peak of the float pipes as lines. (Tensor cores, which that peak does not bound,
    have another colour.)"""
    bars, marks, peaks = [], [], []
    for row in rows:
        if not row.gflops:
            continue
        value = row.gflops / 1e3
        if row.percent_of_peak:
            peaks.append(100 * value / row.percent_of_peak)
        if row.name == CUBLAS[0]:
            marks.append((f"cuBLAS {rate(1e12 * value)}FLOP/s", value))
        elif row.name not in CUBLAS:
            tensor = row.name in LADDER and "tensor cores" in LADDER.load(row.name).claims
            bars.append(Bar(f"{row.name}  {row.idea}", value, _figure(row), int(tensor)))
    marks += [(f"float pipes {rate(1e12 * peak)}FLOP/s", peak) for peak in peaks[:1]]
    return Panel(precision, "TFLOP/s", bars=bars, marks=marks)


def _figure(row: ProductRow) -> str:
    """The label at a bar's end; for a skinny product, which memory bounds, its bandwidth."""
    percentage = "" if row.percent_of_cublas is None else f", {row.percent_of_cublas:.3g} % of cuBLAS"
    skinny = row.n < row.m
    return (f"{row.gbytes_per_s or 0:.0f} GB/s" if skinny else f"{(row.gflops or 0) / 1e3:.3g}") + percentage


def full_table(report: Report) -> str:
    """The report as two Markdown tables: every rung at one n with all figures, and its speed at every n."""
    every = report.of(ProductRow)
    rows = [row for row in every if row.seconds or row.size == shown_size(every)]
    if not rows:
        return ""
    n, sizes, lines = shown_size(rows), sorted({row.size for row in rows}), []
    for own in grouped(rows, "name").values():
        timed = [row for row in own if row.seconds] or own
        at = n if any(row.size == n for row in timed) else max(row.size for row in timed)  # too slow for n
        lines.append({row.precision: row for row in timed if row.size == at})
    idea = TableColumn("idea", lambda row: row.idea + f", n = {row.size}" * (row.size != n), left=True)
    found = [
        column(ProductRow, "name")._replace(show=code).of_line(),
        idea.of_line(),
        column(ProductRow, "reads_global").of_line(),
        column(ProductRow, "predicted_speedup").of_line("× by the model"),
    ]
    for precision in grouped(rows, "precision"):
        found += [
            column(ProductRow, "seconds").of_line(f"{precision}: time", precision),
            TableColumn("FLOP/s", value=lambda row: row.speed).of_line(key=precision),
            *(each.of_line(key=precision) for each in columns(ProductRow, "percent_of_peak percent_of_cublas speedup")),
            column(ProductRow, "error").of_line("error, largest", precision),
        ]
    explained = f"On {report.provenance}, n = {n}. {EXPLAINED}"
    return "\n\n".join([markdown(found, lines, explained), *([_by_size(rows, sizes)] if len(sizes) > 1 else [])])


def _by_size(rows: Sequence[ProductRow], sizes: Sequence[int]) -> str:
    """FLOP/s at each n, with the percentage of cuBLAS."""
    groups = grouped([row for row in rows if row.gflops], "precision", "name").values()
    found = [
        column(ProductRow, "name")._replace(show=code).of_line("FLOP/s"),
        column(ProductRow, "precision").of_line(),
        *(TableColumn("", _with_percentage).of_line(f"n = {n}", n) for n in sizes),
    ]
    return markdown(found, [{row.size: row for row in own} for own in groups])


def _with_percentage(row: ProductRow) -> str:
    percentage = "" if row.name in CUBLAS or not row.percent_of_cublas else f" ({row.percent_of_cublas:.0f} %)"
    return f"{row.speed}".strip() + percentage


PAGES = {"matmul": full_table}
