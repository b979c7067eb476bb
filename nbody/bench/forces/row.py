"""A row of the force suite: what was measured of a contestant at one N."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from nbody.bench.forces.accuracy import ForceError
from nbody.bench.report import Report, rows_of
from nbody.bench.timing import Timing
from nbody.units import duration

FLOPS = 20
"""Operations that an interaction counts for, by convention (Nyland, Harris & Prins 2007)."""


@dataclass(frozen=True)
class ForceRow:
    """One contestant at one N. Times in seconds; None where nothing was measured, and then ``note`` says why.

    ``seconds`` is one evaluation of all forces, ``spread`` how far the fastest was below that, as a part of it;
    ``lecture_seconds`` is ten steps with copies, for no more bodies than the lecture had; ``compile_seconds`` what the
    first call took longer than later ones.
    Speed-ups are ratios of interactions per second (N² a force evaluation) to one core, and to all cores, of the
    ``cpu`` engine in the same precision, and to the NumPy reference, at the same N or the largest below it that was
    measured. ``error`` is the largest relative force error, ``error_bound`` the most that rounding explains; ``wrong``
    is True where it is exceeded (by any particle its own, where rounding explains more for one than for another).
    """

    name: str
    device: str
    backend: str
    precision: str
    threads: int
    particles: int
    suite: str = "forces"
    seconds: float | None = None
    spread: float | None = None
    interactions_per_s: float | None = None
    gflops: float | None = None
    speedup: float | None = None
    speedup_all_cores: float | None = None
    speedup_reference: float | None = None
    error: float | None = None
    error_median: float | None = None
    error_99: float | None = None
    error_bound: float | None = None
    lecture_seconds: float | None = None
    compile_seconds: float | None = None
    wrong: bool = False
    note: str = ""

    def timed(self, time: Timing) -> Self:
        """This row with the time of an evaluation."""
        rate = self.particles**2 / time.median
        row = replace(self, seconds=time.median, spread=time.spread, interactions_per_s=rate, gflops=FLOPS * rate / 1e9)
        if not time.disturbed:
            return row
        return row.noted(f"disturbed by other programs; its fastest evaluation took {duration(time.best)}")

    def noted(self, note: str, wrong: bool = False) -> Self:
        """This row with one more note."""
        return replace(self, note="; ".join(filter(None, (self.note, note))), wrong=self.wrong or wrong)

    def judged(self, error: ForceError, bound: np.ndarray | float) -> Self:
        """This row with its error, and marked wrong where that is beyond the bound."""
        most = float(np.max(bound))
        row = replace(
            self, error=error.maximum, error_median=error.median, error_99=error.percentile_99, error_bound=most
        )
        return row.noted(how_wrong("forces", error), True) if error.excess > 1 else row


def how_wrong(what: str, error: ForceError) -> str:
    """A note about a result beyond its bound."""
    return (
        f"{what} are wrong: largest relative error {error.maximum:.1e}, {error.excess:.2g} times what rounding explains"
    )


def force_rows(found: Report) -> list[ForceRow]:
    """The rows of the force suite in a report."""
    return rows_of(found, "forces", ForceRow)
