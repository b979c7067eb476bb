"""The roofline suite: compares the GPU's engines with the bounds of the card."""

from collections.abc import Sequence

from nbody.bench import Measure, Notify


def prepare(
    notify: Notify,
    *,
    particles: Sequence[int] = (),
    engines: Sequence[str] = (),
    precision: Sequence[str] = (),
) -> Measure:
    """Compare the GPU's engines with the bounds of the card.

    Each engine is shown with the bounds from the issue slots in its own
    machine code and from the card's reciprocal square roots.

    Examples:

      nbody bench roofline

      nbody bench roofline --engines gpu-symmetric --particles 20480
    """
    from nbody.bench import card, report
    from nbody.bench.forces import selection
    from nbody.bench.roofline import suite

    card.require_gpu("nbody bench roofline")
    counts = selection.counts(particles, False, suite.COUNTS)
    own = [c for c in selection.competitors(engines, precision, ("gpu",), max(counts)) if c.backend == "gpu"]
    return lambda notify: report.Report(report.machine(), suite.measure(own, counts, notify))
