"""A row of the ladder: what was measured of a rung, and how it compares with cuBLAS and the baseline."""

from collections.abc import Callable
from typing import Any, NotRequired, TypedDict

from nbody.bench.card import float_peak
from nbody.bench.ladder.products import Problem
from nbody.bench.queued import device_seconds
from nbody.bench.timing import Rival, in_turns, seconds
from nbody.linalg.accuracy import ErrorReport

BASELINE = "k02"
"""Speed-ups are over the naive kernel."""
CUBLAS = ("cublas", "cublas-skinny")
"""Names of cuBLAS's rows: the square product and the skinny one."""

Row = dict[str, Any]
"""What :func:`nbody.bench.ladder.suite.measure` yields: a :class:`LadderRow`, which grows on its way."""


class LadderRow(TypedDict):
    """A row of the ladder in a report. Times in seconds; None where nothing was measured, or it makes no sense."""

    suite: str
    name: str
    title: str
    device: str
    precision: str
    size: int
    m: int
    n: int
    k: int | None
    seconds: float | None
    gflops: float | None
    percent_of_peak: float | None
    percent_of_cublas: float | None
    gbytes_per_s: float | None
    speedup: float | None
    error: float | None
    error_mean: float | None
    wrong: bool
    note: str
    improves: NotRequired[str]
    reads_global: NotRequired[float | None]
    bytes_global: NotRequired[float | None]
    predicted_cycles: NotRequired[float | None]
    predicted_speedup: NotRequired[float | None]


def checked_and_timed(
    name: str,
    title: str,
    problem: Problem,
    error: ErrorReport,
    tolerance: float,
    work: Callable[[], Any] | None,
    on: str = "gpu",
) -> Row:
    """What every row has; ``work``, if there is any, is timed only if its error is within the tolerance."""
    shape, itemsize = problem.shape, problem.dtype.itemsize
    wrong = not error.maximum <= tolerance
    clock = _host_seconds if on == "cpu" else device_seconds
    took = None if wrong or work is None else clock(work)
    rate = shape.flops / took if took else None
    numbers = shape.m * shape.k + shape.k * shape.n + shape.m * shape.n
    return {
        "suite": "matmul",
        "name": name,
        "title": title,
        "device": "CPU" if on == "cpu" else _device_name(),
        "precision": problem.dtype.name,
        "particles": None,
        "interactions_per_s": None,
        **shape._asdict(),
        "seconds": took,
        "gflops": rate and rate / 1e9,
        "percent_of_peak": _ratio(rate, float_peak(problem.dtype), 100),
        "gbytes_per_s": took and numbers * itemsize / took / 1e9,
        "error": error.maximum,
        "error_mean": error.mean,
        "wrong": wrong,
        "note": "the result is wrong; it was not timed" if wrong else "",
    }


def with_ratios(rows: list[Row]) -> list[Row]:
    """The rows of one size and precision with their speeds relative to cuBLAS and to the baseline."""
    by_name = {row["name"]: row for row in rows}
    base = by_name.get(BASELINE, {})
    rivals = {(row["m"], row["n"]): row for row in rows if row["name"] in CUBLAS}
    for row in rows:
        rival = rivals.get((row["m"], row["n"]), {})
        row["percent_of_cublas"] = _ratio(row["gflops"], rival.get("gflops"), 100)
        row["speedup"] = _ratio(row["gflops"], base.get("gflops"))
        row["predicted_speedup"] = _ratio(base.get("predicted_cycles"), row.get("predicted_cycles"))
    return rows


def _ratio(numerator: float | None, denominator: float | None, scale: float = 1.0) -> float | None:
    return scale * numerator / denominator if numerator and denominator else None


def _host_seconds(work: Callable[[], Any]) -> float:
    return in_turns([Rival(work, seconds(work))])[0].median


def _device_name() -> str:
    from nbody import gpu

    return gpu.facts().name
