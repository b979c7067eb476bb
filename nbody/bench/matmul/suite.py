"""Measures the matrix ladder: each rung is compared with a float64 product and with cuBLAS in the same run.

No rung is timed before its result is checked. Times are the device's own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from nbody.bench import Notify, card
from nbody.bench.columns import ratio
from nbody.bench.matmul import cublas
from nbody.bench.matmul.cublas import CUBLAS
from nbody.bench.matmul.products import ProductProblem, check_fits, error_report
from nbody.bench.matmul.tables import ProductRow
from nbody.bench.timing import TimedCall, Timing, device_times, in_turns, seconds
from nbody.errors import InputError, unknown
from nbody.linalg import CHAMPIONS, ELEMENTWISE, LADDER, matmul
from nbody.linalg.rung import ProductShape, Rung

SIZES = (512, 1024, 2048, 4096)
PRECISIONS = ("float32", "float64")

LONGEST = 0.5
"""A product that would take longer than this (in seconds) is left out: it would teach nothing more."""

PILOT = 256
"""The n of the product that gives the first estimate of a CPU rung's speed, if no smaller one was measured."""

CALLS, LARGE = 100, 4096
"""Calls of ``matmul`` between two events, and the n from which on a tenth of them are enough."""


def measure(
    sizes: Sequence[int], precisions: Sequence[str], rungs: Sequence[str] = (), notify: Notify = lambda _: None
) -> list[ProductRow]:
    """Measure rungs of ``LADDER`` and element-wise kernels (all if none is named) on random square matrices. A rung for few
    columns multiplies (n, n) by (n, columns); a rung with a largest size gets matrices of that size.

    Returns:
        For each precision and size, the rows of cuBLAS and then one row per rung. Unknown values are None; a wrong
        result has no time.
    """
    rows: list[ProductRow] = []
    for precision in precisions:
        rates: dict[str, float] = {}
        for size in sorted(sizes):
            rows += with_ratios(list(_measure_size(size, precision, rungs, rates, notify)), naive())
    return rows


def with_ratios(rows: list[ProductRow], naive: str) -> list[ProductRow]:
    """The rows of one size and precision with their speeds relative to cuBLAS and to the rung ``naive``."""
    base, cycles = next(((row.gflops, row.predicted_cycles) for row in rows if row.name == naive), (None, None))
    cublas_rates = {(row.m, row.n): row.gflops for row in rows if row.name in CUBLAS}
    return [
        replace(
            row,
            speedup=ratio(row.gflops, base),
            percent_of_cublas=ratio(row.gflops, cublas_rates.get((row.m, row.n)), 100),
            predicted_speedup=ratio(cycles, row.predicted_cycles),
        )
        for row in rows
    ]


def naive() -> str:
    """The rung to which speed-ups refer: the first on the GPU that multiplies matrices of any size."""
    return next(name for name in LADDER if (rung := LADDER.load(name)).on == "gpu" and not rung.largest)


def check(sizes: Sequence[int], precisions: Sequence[str], rungs: Sequence[str]) -> None:
    """Raise an error for a size below 1 or too large for the memory, an unknown precision or rung, or a missing
    GPU."""
    for size in sizes:
        if size < 1:
            raise InputError(f"--sizes: must be at least 1, got {size}")
    for precision in precisions:
        if precision not in PRECISIONS:
            raise unknown("precision", precision, PRECISIONS, "--precision: ")
    for name in rungs:
        check_rung(name, "--rungs: ")
    on_cpu = [name for name in LADDER if LADDER.load(name).on == "cpu"]
    if not rungs or set(rungs) - set(on_cpu):
        card.require_gpu("nbody bench matmul", f"--rungs {' '.join(on_cpu)} and --explain RUNG need none")
    for precision in precisions:
        check_fits(max(sizes), precision, on_gpu=not card.no_gpu())


def check_rung(name: str, where: str) -> None:
    """Raise an InputError, which begins with ``where``, unless there is a rung or element-wise kernel of this name."""
    if name not in (*LADDER, *ELEMENTWISE):
        raise unknown("rung", name, (*LADDER, *ELEMENTWISE), where)


def _measure_size(
    size: int, precision: str, rungs: Sequence[str], rates: dict[str, float], notify: Notify
) -> Iterator[ProductRow]:
    """Rows of one size and precision, without their ratios; ``rates`` are the FLOP/s of each rung so far."""
    notify(f"making matrices, n = {size}, {precision}")
    problem = cache(lambda shape: ProductProblem(shape, precision))
    square = problem(ProductShape(size, size, size))
    skinny = {rung.shape(size) for rung in map(LADDER.load, LADDER) if rung.columns}
    for name, shape in zip(CUBLAS, (square.shape, *skinny), strict=False):
        yield from _measure_cublas(name, problem(shape), size)
    for name in LADDER:
        rung: Rung = LADDER.load(name)
        if (not rungs or name in rungs) and precision in rung.dtypes:
            yield from _measure_rung(name, rung, problem(rung.shape(size)), size, rates, notify)
    for name in ELEMENTWISE:
        if not rungs or name in rungs:
            yield _measure_elementwise(name, ELEMENTWISE.load(name), square)


def _measure_rung(
    name: str, rung: Rung, problem: ProductProblem, size: int, rates: dict[str, float], notify: Notify
) -> Iterator[ProductRow]:
    """The row of a rung; after that of a champion, the row of a call of it."""
    row = _row(name, rung.title, problem, size, rung.on)
    try:
        notify(f"{name} {rung.title}, n = {size}, {row.precision}")
        if rung.on == "cpu" and name not in rates:
            rates[name] = _pilot(rung, row.precision)
        expected = problem.shape.flops / rates.get(name, np.inf)
        if expected > LONGEST:
            row = row.noted(f"left out: one product would take about {expected:.1g} s")
        else:
            row = _measure(rung, problem, row)
    except Exception as error:  # an older GPU lacks asynchronous copies or these tensor cores
        row = row.noted(f"does not run here ({type(error).__name__}: {' '.join(str(error).split())[:200]})")
    if row.gflops:
        rates[name] = 1e9 * row.gflops
    yield row
    if row.seconds and name == CHAMPIONS[row.precision]:
        yield as_called(row, problem)


def _row(name: str, title: str, problem: ProductProblem, size: int, on: str = "gpu") -> ProductRow:
    """The row of a product before it is measured."""
    from nbody import compute

    device, shape = "CPU" if on == "cpu" else compute.facts().name, problem.shape._asdict()
    return ProductRow(name=name, title=title, device=device, precision=problem.dtype.name, size=size, **shape)


def checked_and_timed(
    row: ProductRow, error: float, tolerance: float, work: Callable[[], Any], flops: float, moved: float
) -> ProductRow:
    """The row with its error, and with its time if the error is within the tolerance; ``moved``: bytes."""
    row = replace(row, error=error)
    if not error <= tolerance:
        return row.noted("the result is wrong; it was not timed", wrong=True)
    on_cpu = row.device == "CPU"
    time = in_turns([TimedCall(work, seconds(work))])[0] if on_cpu else device_times(work)
    return _with_time(row, time, flops, moved)


def _with_time(row: ProductRow, time: Timing, flops: float, moved: float) -> ProductRow:
    """The row with its time and the rates of these operations and bytes; relative to the peak of the card's float pipes."""
    from nbody import compute

    peak = None if card.no_gpu() else compute.facts().peak(row.precision)
    rate, bandwidth = flops / time.median, moved / time.median / 1e9
    percent = ratio(rate, peak, 100)
    return replace(row.timed(time), gflops=rate / 1e9 or None, percent_of_peak=percent, gbytes_per_s=bandwidth)


def as_called(champion: ProductRow, problem: ProductProblem) -> ProductRow:
    """The champion as a user calls it, :func:`nbody.linalg.matmul` on device arrays: Python's time per call counts, where it
    is longer than the kernel, so the clock is the host's."""
    from nbody import compute

    a, b, c = problem.on_device
    calls = CALLS if problem.shape.m < LARGE else CALLS // 10
    took = compute.milliseconds(lambda: matmul(a, b, out=c), inner=calls) / 1e3
    row = replace(champion, name="as-called", title="matmul() as called")
    return _with_time(row, Timing(took, took), problem.shape.flops, problem.bytes)


def _run(rung: Rung, problem: ProductProblem) -> tuple[Callable[[], Any], np.ndarray]:
    """The work of a product, and its result."""
    run = rung.launch(problem.shape, problem.dtype)
    if rung.on == "cpu":
        product = problem.nothing()
        work = partial(run, problem.a, problem.b, product)
        work()
        return work, product
    return _on_device(run, problem)


def _on_device(run: Callable[..., Any], problem: ProductProblem) -> tuple[Callable[[], Any], np.ndarray]:
    """The work of ``run`` on a problem's device arrays, and its result."""
    target = problem.cleared()
    work = partial(run, *problem.on_device)
    work()
    return work, target.copy_to_host()


def _pilot(rung: Rung, precision: str) -> float:
    """An estimate of the FLOP/s of a rung on the CPU."""
    small = ProductProblem(ProductShape(PILOT, PILOT, PILOT), precision)
    work, _ = _run(rung, small)
    return small.shape.flops / min(seconds(work) for _ in range(3))


def _measure(rung: Rung, problem: ProductProblem, row: ProductRow) -> ProductRow:
    """The row of a rung: check, then time."""
    work, product = _run(rung, problem)
    shape, reads = problem.shape, rung.reads(problem.shape)
    cycles = None if rung.on == "cpu" else reads.cycles
    row = replace(row, reads_global=reads.from_global, predicted_cycles=cycles)
    tolerance = rung.tolerance(shape.k, problem.dtype)
    return checked_and_timed(row, problem.error(product).maximum, tolerance, work, shape.flops, problem.bytes)


def _measure_elementwise(name: str, kernel: Any, problem: ProductProblem) -> ProductRow:
    """The row of an element-wise kernel on the same matrices; its work is bytes, not operations."""
    shape, dtype = problem.shape, problem.dtype
    work, result = _on_device(kernel.launch(shape, dtype), problem)
    expected = kernel.reference(problem.a.astype(np.float64), problem.b.astype(np.float64))
    moved = kernel.moved * shape.m * shape.n * dtype.itemsize
    row = replace(_row(name, kernel.title, problem, shape.n), k=None)
    error = error_report(result, expected).maximum
    return checked_and_timed(row, error, float(np.finfo(dtype).eps), work, 0.0, moved)


def _measure_cublas(name: str, problem: ProductProblem, size: int) -> Iterator[ProductRow]:
    """The row of cuBLAS, if the library is found."""
    library, _ = cublas.load()
    if library is None:
        return
    work, product = _on_device(library.multiply, problem)
    tolerance = (problem.shape.k + 4) * float(np.finfo(problem.dtype).eps)
    row = _row(name, f"cuBLAS {library.version}", problem, size)
    yield checked_and_timed(row, problem.error(product).maximum, tolerance, work, problem.shape.flops, problem.bytes)
