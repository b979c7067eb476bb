"""The matrix ladder, measured: every rung against a float64 product, cuBLAS beside it in the same run.

No rung is timed before its result is checked. Times are the device's own (:mod:`nbody.bench.queued`).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from nbody.bench import card
from nbody.bench.ladder import cublas
from nbody.bench.ladder.as_called import as_called
from nbody.bench.ladder.products import Problem, check_fits
from nbody.bench.ladder.row import CUBLAS, Row, checked_and_timed, with_ratios
from nbody.errors import DeviceError, InputError, unknown
from nbody.linalg import CHAMPIONS, ELEMENTWISE, LADDER
from nbody.linalg.accuracy import ErrorReport, error_report
from nbody.linalg.rung import Rung, Shape

SIZES = (512, 1024, 2048, 4096)
PRECISIONS = ("float32", "float64")
SKINNY = "k18"
"""The rung that multiplies with four columns."""
LARGEST = {"k00": 512, "numpy": 4096} | dict.fromkeys(("k02", "k03", "k04", "k05", "k16"), 4096)
"""Sizes beyond which a slow rung is left out: a larger product takes long and teaches nothing more."""


def run_suite(
    sizes: Sequence[int] = SIZES,
    precisions: Sequence[str] = PRECISIONS,
    rungs: Sequence[str] = (),
    notify: Callable[[str], None] = lambda line: None,
) -> list[Row]:
    """All rows of :func:`measure`, which see."""
    return [row for rows in measure(sizes, precisions, rungs, notify) for row in rows]


def measure(
    sizes: Sequence[int], precisions: Sequence[str], rungs: Sequence[str], notify: Callable[[str], None]
) -> Iterator[list[Row]]:
    """Measure rungs of :data:`LADDER` and the element-wise kernels, all when none are named, on random square
    matrices; the skinny rung multiplies (n, n) by (n, 4), the one-block rung matrices of its own largest size.

    Yields:
        The rows of a size and precision, cuBLAS's first, then a row for every rung (and one more for the champion as a
        user calls it, ``as-called``), with at least ``suite name title
        device precision size m n k seconds gflops percent_of_peak percent_of_cublas gbytes_per_s speedup error
        error_mean wrong note``, and for a rung ``improves reads_global bytes_global predicted_cycles
        predicted_speedup``. Peak is that of the float pipes, without tensor cores; gbytes_per_s counts each matrix
        once; speed-ups are over the naive kernel; errors are relative. What is not known is None; a wrong result has
        no time.

    Raises:
        InputError: a size below 1 or beyond the memory, a precision or a rung that does not exist.
        DeviceError: a rung needs a GPU and there is none, or too little memory on it.
    """
    check(sizes, precisions, rungs)
    for precision in dict.fromkeys(precisions):
        for size in sorted(set(sizes)):
            rows = list(_measure_size(size, precision, rungs, notify))
            yield with_ratios([row | {"size": size} for row in rows])


def check(sizes: Sequence[int], precisions: Sequence[str], rungs: Sequence[str]) -> None:
    """Nothing, if :func:`measure` can begin; else its error."""
    _check_names(sizes, precisions, rungs)
    reason = card.no_gpu()
    on_cpu = [name for name in LADDER if LADDER.load(name).on == "cpu"]
    if reason and not (rungs and set(rungs) <= set(on_cpu)):
        raise DeviceError(
            f"--matmul: there is no NVIDIA GPU to measure here ({reason}); --rungs {' '.join(on_cpu)}, --explain RUNG "
            "and --from REPORT need none"
        )
    for precision in precisions:
        check_fits(max(sizes), precision, on_gpu=not reason)


def _check_names(sizes: Sequence[int], precisions: Sequence[str], rungs: Sequence[str]) -> None:
    for size in sizes:
        if size < 1:
            raise InputError(f"--sizes: must be at least 1, got {size}")
    for precision in precisions:
        if precision not in PRECISIONS:
            raise unknown("precision", precision, PRECISIONS, "--precision: ")
    for name in rungs:
        check_rung(name, "--rungs: ")
    if rungs and all(min(sizes) > LARGEST.get(name, min(sizes)) for name in rungs):
        raise InputError(f"--sizes: {'; '.join(left_out(sizes, rungs))}; choose a smaller size")


def left_out(sizes: Sequence[int], rungs: Sequence[str]) -> list[str]:
    """A line on each rung that does not take part at each of the sizes; all rungs when none are named."""
    return [
        f"{name} is left out beyond n = {most}: it is slow, and a larger product teaches nothing more"
        for name, most in LARGEST.items()
        if max(sizes) > most and (not rungs or name in rungs)
    ]


def check_rung(name: str, where: str) -> None:
    """Raise an InputError, which begins with ``where``, unless there is a rung or element-wise kernel of this name."""
    if name not in (*LADDER, *ELEMENTWISE):
        raise unknown("rung", name, (*LADDER, *ELEMENTWISE), where)


def _measure_size(size: int, precision: str, rungs: Sequence[str], notify: Callable[[str], None]) -> Iterator[Row]:
    """Rows of one size and precision, without the ratios between them."""
    notify(f"making matrices, n = {size}, {precision}")
    square = Problem(Shape(size, size, size), precision)
    skinny = Problem(Shape(size, 4, size), precision)
    yield from filter(None, map(_cublas, (square, skinny), CUBLAS))
    for name in LADDER:
        rung: Rung = LADDER.load(name)
        if (rungs and name not in rungs) or precision not in rung.dtypes or size > LARGEST.get(name, size):
            continue
        notify(f"{name} {rung.title}, n = {size}, {precision}")
        problem = skinny if name == SKINNY else square
        if rung.largest:
            problem = Problem(Shape(rung.largest, rung.largest, rung.largest), precision)
        row = _measured_or_not(name, rung, problem)
        yield row
        if name == CHAMPIONS[precision] and row["seconds"]:
            yield as_called(row, problem)
    for name in ELEMENTWISE:
        if not rungs or name in rungs:
            yield _measure_elementwise(name, ELEMENTWISE.load(name), square)


def _measured_or_not(name: str, rung: Rung, problem: Problem) -> Row:
    """The row of a rung; one without a time where its kernel can't be compiled for this card (an older one has no
    asynchronous copies, or none of these tensor cores)."""
    try:
        return _measure(name, rung, problem)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        row = checked_and_timed(name, rung.title, problem, ErrorReport(np.inf, np.inf), np.inf, None)
        return row | {"improves": rung.improves, "note": f"does not run here ({type(error).__name__}: {reason})"}


def _measure(name: str, rung: Rung, problem: Problem) -> Row:
    """The row of a rung: check, then time."""
    shape, dtype = problem.shape, problem.dtype
    run = rung.launch(shape, dtype)
    if rung.on == "cpu":
        product = problem.nothing()
        work = partial(run, problem.a, problem.b, product)
        work()
    else:
        target = problem.cleared()
        work = partial(run, *problem.on_device)
        work()
        product = target.copy_to_host()
    reads = rung.reads(shape)
    error = problem.error(product)
    return checked_and_timed(name, rung.title, problem, error, rung.tolerance(shape.k, dtype), work, rung.on) | {
        "improves": rung.improves,
        "reads_global": reads.from_global,
        "bytes_global": reads.from_global * shape.m * shape.n * dtype.itemsize,
        "predicted_cycles": None if rung.on == "cpu" else reads.cycles,
    }


def _measure_elementwise(name: str, kernel: Any, problem: Problem) -> Row:
    """The row of an element-wise kernel on the same matrices; its work is bytes, not operations."""
    shape, dtype = problem.shape, problem.dtype
    target = problem.cleared()
    work = partial(kernel.launch(shape, dtype), *problem.on_device)
    work()
    expected = kernel.reference(problem.a.astype(np.float64), problem.b.astype(np.float64))
    error = error_report(target.copy_to_host(), expected)
    row = checked_and_timed(name, kernel.title, problem, error, float(np.finfo(dtype).eps), work)
    moved = kernel.moved * shape.m * shape.n * dtype.itemsize
    rate = moved / row["seconds"] / 1e9 if row["seconds"] else None
    return row | {"k": None, "gflops": None, "percent_of_peak": None, "gbytes_per_s": rate, "bytes_global": moved}


def _cublas(problem: Problem, name: str) -> Row | None:
    """cuBLAS's row, where the library is found."""
    library, _ = cublas.rival()
    if library is None:
        return None
    target = problem.cleared()
    work = partial(library.multiply, *problem.on_device)
    work()
    tolerance = (problem.shape.k + 4) * float(np.finfo(problem.dtype).eps)
    return checked_and_timed(
        name, f"cuBLAS {library.version}", problem, problem.error(target.copy_to_host()), tolerance, work
    )
