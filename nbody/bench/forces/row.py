"""The rows of the force suite: the measurements of one contestant at one N."""

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from nbody.bench.forces.accuracy import ForceError
from nbody.bench.row import Amount, Count, Row
from nbody.bench.timing import Timing
from nbody.units import duration

FLOPS = 20
"""Floating-point operations per interaction, by convention (Nyland, Harris & Prins 2007)."""


@dataclass(frozen=True, kw_only=True)
class ForceRow(Row):
    """One contestant at one N.

    ``seconds`` is the time of one evaluation of all forces, ``spread`` the relative difference between the median and the
    fastest; ``lecture_seconds`` is ten steps with copies, for at most as many bodies as in the lecture;
    ``compile_seconds`` is the extra time of the first call.
    Speed-ups are ratios of interactions per second (N² per force evaluation) to one core, and to all cores, of the
    ``cpu`` engine in the same precision, and to the NumPy reference, at the same N or the largest below it that was
    measured. ``error_bound`` is the largest error that rounding explains for any particle.
    """

    suite: Literal["forces"] = "forces"  # type: ignore[assignment]
    particles: Count
    backend: str
    threads: Count
    spread: Amount | None = None
    speedup_all_cores: Amount | None = None
    speedup_reference: Amount | None = None
    error_median: Amount | None = None
    error_99: Amount | None = None
    error_bound: Amount | None = None
    lecture_seconds: Amount | None = None
    compile_seconds: Amount | None = None

    def timed(self, time: Timing, evaluations: int = 1) -> Self:
        """This row with the times of ``timing``."""
        rate = evaluations * self.particles**2 / time.median
        row = replace(self, seconds=time.median, spread=time.spread, interactions_per_s=rate, gflops=FLOPS * rate / 1e9)
        if not time.disturbed:
            return row
        return row.noted(f"disturbed by other programs; the fastest took {duration(time.best)}")

    def judged(self, error: ForceError, bound: np.ndarray | float, what: str = "forces") -> Self:
        """This row with its error; it is marked wrong if the error exceeds the bound."""
        row = replace(
            self, error=error.maximum, error_median=error.median, error_99=error.percentile_99,
            error_bound=float(np.max(bound)),
        )  # fmt: skip
        return row.noted(how_wrong(what, error), True) if error.excess > 1 else row


@dataclass(frozen=True, kw_only=True)
class LectureRow(ForceRow):
    """One engine's run of the lecture's disc: ``seconds`` is ten steps with copies. ``k40c_seconds`` and
    ``k40c_speedup`` are the lecture's own figures, on its card and processor, where it has them."""

    suite: Literal["lecture"] = "lecture"  # type: ignore[assignment]
    steps: Count = 10
    k40c_seconds: Amount | None = None
    k40c_speedup: Amount | None = None


@dataclass(frozen=True, kw_only=True)
class TreeRow(ForceRow):
    """One tree at one N. ``accuracy`` is the median error that was asked for, ``interactions`` what one evaluation computed
    (pairs, and moments on bodies and cells); without it, the tree does not count them."""

    suite: Literal["trees"] = "trees"  # type: ignore[assignment]
    accuracy: Amount | None = None
    particles_per_s: Amount | None = None
    interactions: Count | None = None

    def timed(self, time: Timing, evaluations: int = 1) -> Self:
        # The rate is that of the interactions that were computed.
        row = super().timed(time, evaluations)
        computed = None if self.interactions is None else self.interactions / time.median
        return replace(row, particles_per_s=self.particles / time.median, interactions_per_s=computed, gflops=None)


ROWS: dict[str, type] = {"forces": ForceRow, "lecture": LectureRow, "trees": TreeRow}


def how_wrong(what: str, error: ForceError) -> str:
    """A note about a result beyond its bound."""
    return (
        f"{what} are wrong: largest relative error {error.maximum:.1e}, {error.excess:.2g} times what rounding explains"
    )
