"""The tables of the roofline suite: speeds and bounds, and facts about kernels and steps."""

from collections.abc import Callable, Iterator

from nbody.bench.forces.tables import ERRORS, WHO, about
from nbody.bench.report import Report
from nbody.bench.tables import Column, Sheet, percent, whole
from nbody.units import duration, rate

SPEEDS = (
    *WHO,
    Column("a force\nevaluation", lambda row: "WRONG" if row.wrong else duration(row.seconds)),
    Column("inter-\nactions/s", "interactions_per_s", rate),
    Column("\nGFLOP/s", "gflops", whole),
    Column("% of\npeak", "percent_of_peak", percent),
    Column("% of\nslots", "percent_of_slots", percent),
    Column("% of\nroots", "percent_of_roots", percent),
    Column(
        "clock,\nGHz", lambda row: (row.clock and row.clock_source == "measured" and f"{row.clock / 1e9:.2f}") or None
    ),
    Column("power,\nW", "power", whole),
    *ERRORS,
)

KERNELS = (
    *WHO,
    Column("slots", "slots", lambda slots: f"{slots:.2f}"),
    Column("regis-\nters", "registers"),
    Column("shared,\nbytes", "shared_bytes"),
    Column("local,\nbytes", "local_bytes"),
    Column("threads", "threads_a_block"),
    Column("occu-\npancy", "occupancy", lambda part: f"{100 * part:.0f} %"),
    Column("blocks", "blocks"),
    Column("waves", "waves", lambda waves: f"{waves:.2f}"),
    Column("laun-\nches", "launches"),
    Column("a whole\nstep", "step_seconds", duration),
    Column("launch\n%", "percent_launch", percent),
    Column("record\n%", "percent_recording", percent),
)

EXPLAINED = (
    "3-D, Plummer softening, unequal masses; device time, excluding launches (JAX: the host's clock). GFLOP/s at 20 "
    "operations per interaction, which a kernel that computes each pair once does not all do. Slots: 4 warp instructions "
    "per clock and multiprocessor, and its float pipes; roots: 16 reciprocal square roots. Errors are relative, against "
    "float64 sums."
)

STEPS_EXPLAINED = (
    "Slots: instructions per interaction in the innermost loop of the kernel, counted in its machine code by nvdisasm. "
    "Launch: the part of a leapfrog step, replayed from a graph, that is not the force kernel's time. Record: what "
    "recording every step adds to one."
)


def sheets(report: Report) -> Iterator[Sheet]:
    """The tables of speeds, and of kernels and steps."""
    rows = report.of("roofline")
    yield Sheet(f"Forces and their bounds on {report.device}", about(report, EXPLAINED, "roofline"), SPEEDS, rows)
    if own := [row for row in rows if row.kernel]:
        yield Sheet("Their kernels, and whole steps", STEPS_EXPLAINED, KERNELS, own)


PAGES: dict[str, Callable[[Report], str]] = {}
