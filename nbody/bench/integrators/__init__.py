"""The integrators suite: the error of each scheme against the time that it takes, for the same problems."""

from collections.abc import Sequence

from nbody.bench import Measure, Notify


def prepare(notify: Notify, *, particles: Sequence[int] = (), gpu: bool = False) -> Measure:
    """Measure error against time of every integrator.

    Three problems, in float64: an orbit of eccentricity 0.9, the outer solar
    system, and a star cluster of 1024 bodies (or --particles); with --gpu the
    cluster on the GPU too. And small systems call by call, on one core, beside
    REBOUND if it is installed. Times exclude compilation.

    Examples:

      nbody bench integrators

      nbody bench integrators --particles 256 --json
    """
    from nbody.bench import card, report
    from nbody.bench.forces import selection
    from nbody.bench.integrators import calls, problems, suite

    if gpu:
        card.require_gpu("nbody bench integrators")
    counts = selection.counts(particles, False, problems.COUNTS)
    backends = ("cpu", "gpu") if gpu else ("cpu",)

    def work(notify: Notify) -> report.Report:
        small, absent = calls.measure(notify)
        return report.Report(report.machine(), [*suite.measure(counts, backends, notify), *small], absent)

    return work
