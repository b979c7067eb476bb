"""The row of a report: one measurement of any suite."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field

from nbody.bench.timing import Timing
from nbody.units import duration

Count = Annotated[int, Field(ge=0, lt=2**63)]
Amount = Annotated[float, Field(ge=0)]
"""Types of the numbers in a report; they are not negative."""

FLOPS = 20
"""Floating-point operations per interaction, by convention (Nyland, Harris & Prins 2007)."""

OF_BODIES = ("backend", "particles", "threads")
NEEDED = {
    "forces": OF_BODIES, "lecture": OF_BODIES, "trees": OF_BODIES, "roofline": OF_BODIES,
    "few": ("problem", "setting"),
    "integrators": ("problem", "backend", "particles", "setting"),
    "scaling": ("particles", "gpus", "steps"),
    "matmul": ("title", "size", "m", "n"),
}  # fmt: skip
"""The fields, beside those without a default, that each kind of row must have."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measurement. Times are in seconds. A value is None if it was not measured, or belongs to other suites.

    Attributes:
        suite: the kind of row: a suite, the force suite's ``lecture`` (its own run) and ``trees``, or ``few`` (small
            systems, of the integrators suite).
        error: the largest relative error; of an integrator the distance from the exact orbit, in semi-major axes.
        wrong: True if rounding does not explain the error.
        note: why nothing was measured, or what is special.
        backend, threads: ``cpu`` or ``gpu``, and CPU threads (0 on a GPU).
        spread: the relative difference between the median and the fastest time.
        speedup: the speed relative to one core (forces), the naive kernel (matmul) or one GPU (scaling); for forces at the
            same N or the largest below it. ``speedup_all_cores`` and ``speedup_reference`` refer to all cores and to NumPy.
        error_bound: the largest error that rounding explains for any particle.
        lecture_seconds: ten steps with copies, for at most as many bodies as in the lecture.
        compile_seconds: the extra time of the first call.
        steps: steps that were made.
        k40c_seconds, k40c_speedup: the lecture's own figures, on its card and processor.
        accuracy: the median error that a tree was asked for.
        interactions: what one evaluation of a tree computed: pairs, and moments on bodies and cells.
        problem, setting: an integrator's problem, and the option that sets its accuracy: ``dt: 0.01``.
        energy_error: abs(E/E₀ - 1) at the end.
        gpus, efficiency: their number, and the speed divided by that of as many single GPUs.
        size, m, n, k: a matrix product: C is (m, n), A (m, k), B (k, n); m = n = k = size unless the rung says otherwise.
        percent_of_peak: of the float pipes, without tensor cores; forces at 20 operations per interaction.
        gbytes_per_s: each matrix counted once.
        reads_global, bytes_global: matrix elements read from global memory per result; bytes of the whole product.
        predicted_cycles, predicted_speedup: by the simple model of the course.
        percent_of_slots, percent_of_roots, slot_bound, root_bound: the speed in per cent of the bounds by issue slots and
            by reciprocal square roots, and these bounds at the card's highest clock, in interactions per second.
        slots, interactions_a_root: issue slots per interaction, counted in the kernel's machine code; interactions per
            reciprocal square root: 2 if each pair is computed once, else 1.
        kernel, launches: the name of the kernel that computes the pairs, and kernels per force evaluation.
        registers, shared_bytes, local_bytes: registers per thread, shared memory per block, and local memory per thread.
        threads_a_block, blocks, waves: threads per block, blocks of the grid, and these divided by those that fit on the
            card.
        occupancy: the warps on a multiprocessor divided by the maximum.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, allow_inf_nan=False)

    suite: Literal["forces", "lecture", "trees", "roofline", "scaling", "integrators", "few", "matmul"]
    name: str
    device: str
    precision: str
    backend: str = ""
    threads: Count | None = None
    particles: Count | None = None
    seconds: Amount | None = None
    spread: Amount | None = None
    interactions_per_s: Amount | None = None
    gflops: Amount | None = None
    speedup: Amount | None = None
    speedup_all_cores: Amount | None = None
    speedup_reference: Amount | None = None
    error: Amount | None = None
    error_mean: Amount | None = None
    error_median: Amount | None = None
    error_99: Amount | None = None
    error_bound: Amount | None = None
    wrong: bool = False
    note: str = ""
    lecture_seconds: Amount | None = None
    compile_seconds: Amount | None = None
    steps: Count | None = None
    k40c_seconds: Amount | None = None
    k40c_speedup: Amount | None = None
    accuracy: Amount | None = None
    particles_per_s: Amount | None = None
    interactions: Count | None = None
    problem: str = ""
    setting: str = ""
    energy_error: Amount | None = None
    gpus: Count | None = None
    efficiency: Amount | None = None
    title: str = ""
    size: Count | None = None
    m: Count | None = None
    n: Count | None = None
    k: Count | None = None
    percent_of_peak: Amount | None = None
    percent_of_cublas: Amount | None = None
    gbytes_per_s: Amount | None = None
    improves: str = ""
    reads_global: Amount | None = None
    bytes_global: Amount | None = None
    predicted_cycles: Amount | None = None
    predicted_speedup: Amount | None = None
    percent_of_slots: Amount | None = None
    percent_of_roots: Amount | None = None
    slots: Amount | None = None
    slot_bound: Amount | None = None
    root_bound: Amount | None = None
    interactions_a_root: Count | None = None
    kernel: str | None = None
    launches: Count | None = None
    registers: Count | None = None
    shared_bytes: Count | None = None
    local_bytes: Count | None = None
    threads_a_block: Count | None = None
    blocks: Count | None = None
    waves: Amount | None = None
    occupancy: Amount | None = None

    def __post_init__(self) -> None:
        missing = [key for key in NEEDED.get(self.suite, ()) if getattr(self, key) in (None, "")]
        if missing:
            raise ValueError(f"{missing[0]}: Field required")

    def noted(self, note: str, wrong: bool = False) -> Self:
        """A copy with one more note."""
        return replace(self, note="; ".join(filter(None, (self.note, note))), wrong=self.wrong or wrong)

    def timed(self, time: Timing, interactions: float | None) -> Self:
        """A copy with a time, and the rates of this many interactions in it."""
        rate = ratio(interactions, time.median)
        gflops = None if rate is None else FLOPS * rate / 1e9
        row = replace(self, seconds=time.median, spread=time.spread, interactions_per_s=rate, gflops=gflops)
        return (
            row.noted(f"disturbed by other programs; the fastest took {duration(time.best)}") if time.disturbed else row
        )

    @property
    def count(self) -> int:
        """The number of particles; 0 if there are none."""
        return self.particles or 0

    @property
    def what(self) -> str:
        """The name, precision or problem, and size, for messages."""
        if self.problem:
            return f"{self.name} ({self.setting}), {self.problem}, N = {self.particles}"
        return f"{self.name} {self.precision}, " + (f"n = {self.size}" if self.title else f"N = {self.particles}")


def ratio(numerator: float | None, denominator: float | None, scale: float = 1.0) -> float | None:
    """``scale`` times the ratio; None if one of the numbers is missing or zero."""
    return scale * numerator / denominator if numerator and denominator else None


def distinct(rows: Iterable[Any], *keys: str) -> list[tuple]:
    """The distinct combinations of these attributes, in the order of the rows."""
    return list(dict.fromkeys(tuple(getattr(row, key) for key in keys) for row in rows))
