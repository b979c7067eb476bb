"""The roofline suite: the GPU's engines beside what the card allows at most, and other libraries in the same run."""

from collections.abc import Callable, Sequence
from typing import Any


def prepare(
    say: Callable[[str], None],
    *,
    particles: Sequence[int] = (),
    engines: Sequence[str] = (),
    precision: Sequence[str] = (),
) -> Callable[[Callable[[str], None]], Any]:
    """Compare the GPU's engines with what the card allows at most.

    Each engine is shown with the bounds that the issue slots in its own
    machine code and the card's reciprocal square roots give, its registers,
    occupancy, clock and power, and its part of a whole step; then torch, JAX
    and CuPy, where these are installed.

    Examples:

      nbody bench roofline

      nbody bench roofline --engines gpu-symmetric --particles 20480
    """
    from nbody.bench import card, report
    from nbody.bench.forces import peers, selection
    from nbody.bench.roofline import suite

    card.require_gpu("nbody bench roofline")
    counts = selection.counts(particles, False, suite.COUNTS)
    own = [c for c in selection.contestants(engines, precision, ("gpu",), max(counts)) if c.backend == "gpu"]
    others, absent = peers.installed() if not engines and "float32" in (precision or ["float32"]) else ([], [])
    if absent:
        say(f"not measured: {', '.join(absent)}")
    return lambda notify: report.Report(report.machine(), suite.measure([*own, *others], counts, notify), absent)
