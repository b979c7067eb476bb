"""What the ladder's benchmark says: a table for each size and precision, and the README's, from one report."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from nbody.bench.ladder.row import CUBLAS, Row
from nbody.bench.report import Report, error, machine_line, markdown_table, ratio
from nbody.errors import InputError
from nbody.linalg import CHAMPIONS
from nbody.linalg.rung import LECTURE_SIZE
from nbody.units import duration, rate, size


def ladder_rows(found: Report) -> list[Row]:
    """The rows of the ladder in a report. Raises InputError where there are none."""
    rows = [row for row in found["rows"] if row.get("suite") == "matmul"]
    if not rows:
        raise InputError("--from: no row of the matrix ladder is in this report; 'nbody bench --matmul' makes one")
    return rows


def groups(rows: Sequence[Row]) -> Iterator[tuple[str, int, list[Row]]]:
    """The rows of each precision and n, in the order of the report."""
    for precision, n in dict.fromkeys((row["precision"], row["size"]) for row in rows):
        yield precision, n, [row for row in rows if (row["precision"], row["size"]) == (precision, n)]


def shown_size(rows: Sequence[Row]) -> int:
    """The lecture's n where it was measured, else the largest."""
    sizes = {row["size"] for row in rows}
    return LECTURE_SIZE if LECTURE_SIZE in sizes else max(sizes)


# --- On the terminal ------------------------------------------------------------------------------------------------

HEADINGS: tuple[tuple[str, Literal["left", "right"]], ...] = (
    ("rung", "left"), ("", "left"), ("\ntime", "right"), ("\nGFLOP/s", "right"), ("% of\npeak", "right"),
    ("% of\ncuBLAS", "right"), ("× naive", "right"), ("by the\nmodel", "right"), ("global reads\na result", "right"),
    ("global\nreads", "right"), ("\nGB/s", "right"), ("error:\nlargest", "right"), ("\nmean", "right"),
)  # fmt: skip

EXPLAINED = (
    "Random matrices in [0, 1). The peak is that of the float pipes, without tensor cores (cuBLAS uses "
    "them in float64). '× naive' compares with k02, "
    "and 'by the model' is what the lecture's simple model expects of that: a read from global memory takes 1000 "
    "cycles, one from shared memory 10, arithmetic nothing. GB/s counts each matrix once. Errors are relative, against "
    "float64."
)


def ladder_tables(found: Report) -> list[Any]:
    """Rich tables, one for each precision and n; the notes stand below each, and what the columns mean below the last."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = []
    for precision, n, rows in groups(ladder_rows(found)):
        table = Table(
            title=f"{precision}, n = {n}, on {machine_line(found['machine'])}", box=SIMPLE_HEAD, padding=0,
            title_justify="left", caption_justify="left", caption="\n".join(_notes(rows)),
        )  # fmt: skip
        for heading, justify in HEADINGS:
            table.add_column(heading, justify=justify)
        for row in rows:
            table.add_row(*_cells(row), style="red" if row["wrong"] else None)
        made.append(table)
    made[-1].caption = "\n".join([EXPLAINED, *filter(None, [no_rival(found)]), *_notes(rows)])
    return made


def no_rival(found: Report) -> str:
    """Why cuBLAS took no part; empty if it did."""
    reason = found["machine"].get("no_cublas")
    return f"cuBLAS took no part: {reason}." if reason else ""


def _notes(rows: Sequence[Row]) -> list[str]:
    return [f"{row['name']}: {row['note']}" for row in rows if row["note"]]


def _cells(row: Row) -> tuple[str, ...]:
    moved = row.get("bytes_global")
    return (
        row["name"],
        row["title"] + shape_told(row),
        "WRONG" if row["wrong"] else duration(row["seconds"]),
        *(_number(row[key]) for key in ("gflops", "percent_of_peak", "percent_of_cublas")),
        ratio(row["speedup"]),
        ratio(row.get("predicted_speedup")),
        _number(row.get("reads_global")),
        "–" if moved is None else size(moved),
        _number(row["gbytes_per_s"]),
        error(row["error"]),
        error(row["error_mean"]),
    )


def shape_told(row: Row) -> str:
    """The shape of a product that is not n x n by n x n, as a few words."""
    if row["m"] == row["n"] == row["size"]:
        return ""
    return f", {row['m']}x{row['k']} by {row['k']}x{row['n']}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}" if value < 999.5 else f"{value:.0f}"


# --- In the README --------------------------------------------------------------------------------------------------


def markdown(found: Report) -> str:
    """The report as two Markdown tables: every rung at one n, and the rungs that meet cuBLAS at every n."""
    rows, facts = ladder_rows(found), found["machine"]
    n, sizes = shown_size(rows), sorted({row["size"] for row in rows})
    precisions = list(dict.fromkeys(row["precision"] for row in rows))
    heads = ["rung", "idea", "global reads a result", "× by the model"]
    for precision in precisions:
        heads += [f"{precision}: time", "FLOP/s", "% of peak", "% of cuBLAS", "× naive", "error, largest"]
    about = f"On {machine_line(facts)}, {facts['started'][:10]}, nbody {facts['version']}, n = {n}. {EXPLAINED}"
    table = []
    for name in dict.fromkeys(row["name"] for row in rows):
        own = [row for row in rows if row["name"] == name]
        at = n if any(row["size"] == n for row in own) else max(row["size"] for row in own)
        cells = _readme_cells({row["precision"]: row for row in own if row["size"] == at}, precisions)
        cells[1] += f", n = {at}" if at != n else ""  # too slow for the others' n
        table.append(cells)
    by_size = ["", *_by_size(rows, sizes)] if len(sizes) > 1 else []
    return "\n".join([about, "", *markdown_table(heads, table), *by_size])


def _readme_cells(own: dict[str, Row], precisions: Sequence[str]) -> list[str]:
    """A rung's line: what it is, and its figures in each precision."""
    row = next(iter(own.values()))
    idea = f"`{row['name']}`", row["title"] + shape_told(row)
    cells = [*idea, _number(row.get("reads_global")), ratio(row.get("predicted_speedup"))]
    for precision in precisions:
        at = own.get(precision)
        if at is None:
            cells += ["–"] * 6
            continue
        figures = _number(at["percent_of_peak"]), _number(at["percent_of_cublas"]), ratio(at["speedup"])
        cells += [duration(at["seconds"]), _speed(at), *figures, error(at["error"])]
    return cells


def _speed(row: Row) -> str:
    """FLOP/s; for an element-wise kernel, the bytes that it moves a second."""
    if row["gflops"]:
        return rate(1e9 * row["gflops"]).strip()
    return f"{size(1e9 * row['gbytes_per_s'])}/s" if row["gbytes_per_s"] else "–"


def _by_size(rows: Sequence[Row], sizes: Sequence[int]) -> list[str]:
    """FLOP/s at each n, with the percentage of cuBLAS, of the champion and of those that at the largest n are faster
    or reach half of cuBLAS."""
    measured = {(row["name"], row["precision"], row["size"]): row for row in rows if row["gflops"]}
    table = []
    for name, precision in dict.fromkeys((name, precision) for name, precision, _ in measured):
        own = [measured.get((name, precision, n)) for n in sizes]
        last = next(row for row in reversed(own) if row)
        champion = measured.get((CHAMPIONS[precision], precision, last["size"]), last)
        fast = (last["percent_of_cublas"] or 0) >= 50 or last["gflops"] > champion["gflops"]
        if fast or name in (*CUBLAS, CHAMPIONS[precision]):
            table.append([f"`{name}`", precision, *map(_with_share, own)])
    return markdown_table(["FLOP/s", "precision", *(f"n = {n}" for n in sizes)], table)


def _with_share(row: Row | None) -> str:
    if row is None:
        return "–"
    share = "" if row["name"] in CUBLAS or not row["percent_of_cublas"] else f" ({row['percent_of_cublas']:.0f} %)"
    return rate(1e9 * row["gflops"]).strip() + share
