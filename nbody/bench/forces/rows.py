"""The rows of the force suite, with their columns. (The roofline suite has the same figures of an evaluation.)"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np

from nbody.bench.columns import TableColumn, ratio, relative_error, three
from nbody.bench.row import Amount, Count, Row
from nbody.bench.timing import Timing
from nbody.forces import ENGINES
from nbody.number_format import duration, rate

FLOPS = 20
"""Floating-point operations per interaction, by convention (Nyland, Harris & Prins 2007)."""

ALL_CORES, ONE_CORE = "cpu", "cpu (1 core)"
"""The engine to which speed-ups refer, with all threads and with one."""

ENGINE = TableColumn("engine", lambda name: name + ENGINES.mark(name), left=True)


class ErrorStatistics(NamedTuple):
    """Relative errors |a_i - a_i,ref| / |a_i,ref| of the checked particles. ``excess`` is the largest ratio of an error to
    the error that rounding explains; above 1 the force is wrong."""

    median: float
    percentile_99: float
    maximum: float
    excess: float


@dataclass(frozen=True, kw_only=True)
class EvaluationRow(Row):
    """An evaluation of all forces. Errors are relative; ``error_bound`` is the largest that rounding explains for any
    particle."""

    name: Annotated[str, ENGINE]
    seconds: Annotated[Amount | None, TableColumn("a force\nevaluation", duration, if_wrong="WRONG")] = None
    interactions_per_s: Annotated[Amount | None, TableColumn("inter-\nactions/s", rate)] = None
    gflops: Annotated[Amount | None, TableColumn("\nGFLOP/s", three)] = None
    error_median: Annotated[Amount | None, TableColumn("error:\nmedian", relative_error)] = None
    error_99: Annotated[Amount | None, TableColumn("\n99 %", relative_error)] = None
    error: Annotated[Amount | None, TableColumn("\nlargest", relative_error)] = None
    error_bound: Amount | None = None

    @property
    def count(self) -> int:
        return self.particles or 0

    def with_rates(self, time: Timing, interactions: float | None) -> Self:
        """A copy with a time, and the rates of this many interactions in it."""
        rates = ratio(interactions, time.median)
        return replace(self.timed(time), interactions_per_s=rates, gflops=rates and FLOPS * rates / 1e9)

    def with_error(self, found: ErrorStatistics, bound: np.ndarray | float, what: str = "forces") -> Self:
        """A copy with its error; it is marked wrong if the error exceeds the bound."""
        bounds: dict[str, Any] = {"error_99": found.percentile_99, "error_bound": float(np.max(bound))}
        row = replace(self, error=found.maximum, error_median=found.median, **bounds)
        if found.excess <= 1:
            return row
        largest = f"largest relative error {found.maximum:.1e}, {found.excess:.2g} times what rounding explains"
        return row.noted(f"{what} are wrong: {largest}", True)


@dataclass(frozen=True, kw_only=True)
class ForceRow(EvaluationRow):
    """Direct sums. Speed-ups are relative to one core, to all cores and to NumPy, at the same N or the largest below it;
    ``lecture_seconds`` is the time of ten steps with copies, up to the lecture's N."""

    suite: ClassVar[str] = "forces"

    speedup: Annotated[Amount | None, TableColumn("× one\ncore", three)] = None
    speedup_all_cores: Annotated[Amount | None, TableColumn("× all\ncores", three)] = None
    speedup_reference: Annotated[Amount | None, TableColumn("×\nNumPy", three)] = None
    lecture_seconds: Annotated[Amount | None, TableColumn("lecture's\nrun", duration, if_wrong="WRONG")] = None


@dataclass(frozen=True, kw_only=True)
class LectureRow(EvaluationRow):
    """The lecture's own run, with the lecture's own figures."""

    suite: ClassVar[str] = "lecture"
    whole_run: ClassVar[bool] = True

    seconds: Annotated[Amount | None, TableColumn("ten steps\nwith copies", duration, if_wrong="WRONG")] = None
    speedup: Annotated[Amount | None, TableColumn("rate:\n× one core", three)] = None
    speedup_all_cores: Annotated[Amount | None, TableColumn("\n× all cores", three)] = None
    speedup_reference: Amount | None = None
    k40c_seconds: Annotated[Amount | None, TableColumn("Tesla K40c", duration)] = None
    k40c_speedup: Annotated[Amount | None, TableColumn("rate:\n× a Core2", three)] = None
    error: Annotated[Amount | None, TableColumn("error:\nlargest", relative_error)] = None
    steps: Count | None = None


@dataclass(frozen=True, kw_only=True)
class TreeRow(EvaluationRow):
    """A tree: the error that was asked for, and the pairs and moments that it computed."""

    suite: ClassVar[str] = "trees"

    accuracy: Amount | None = None
    particles_per_s: Annotated[Amount | None, TableColumn("particles/s", rate)] = None
    interactions: Count | None = None
