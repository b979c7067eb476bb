"""The force suite: every engine, precision and N on the same bodies, and the lecture's own run."""

from collections.abc import Sequence

from nbody.bench import Measure, Notify


def prepare(
    notify: Notify,
    *,
    cpu: bool = False,
    gpu: bool = False,
    particles: Sequence[int] = (),
    engines: Sequence[str] = (),
    precision: Sequence[str] = (),
    accuracy: Sequence[float] = (),
    up_to: int | None = None,
) -> Measure:
    """Measure every force engine that this machine has.

    Each result is checked against float64 sums before it is timed. Without
    --cpu and --gpu, or with both, everything that this machine has is measured. The cpu
    engine always takes part: the speed-ups refer to it. Measurements that
    would take too long are left out, and a note says so. Trees are measured
    if they are named, and the N from which they are faster is printed; with
    --up-to, trees and the direct sums that they compete with, from N = 1000.

    Examples:

      nbody bench forces

      nbody bench --cpu --gpu

      nbody bench --cpu --particles 1024 20480 --precision float32

      nbody bench --gpu --engines gpu-global gpu-tiled --output output/tiles

      nbody bench --engines cpu-tree --particles 1e3 1e4 1e5 --accuracy 1e-3 1e-5

      nbody bench --gpu --up-to 1e8
    """
    from nbody.bench import report
    from nbody.bench.forces import foreign, selection, suite

    on = selection.backends(cpu, gpu, notify)
    if up_to is not None:
        particles, engines, precision = selection.scaling(up_to, particles, engines, precision, on)
    counts = selection.counts(particles, "gpu" in on)
    most = max(counts) if up_to is None else 1  # else an engine takes part as long as it fits
    own = selection.competitors(engines, precision, on, most, accuracy)
    others = list(foreign.competitors(engines, precision, on))
    absent = [each for each in others if isinstance(each, str)]
    own += [each for each in others if not isinstance(each, str)]
    for line in absent:
        notify(f"not measured: {line}")
    return lambda notify: report.Report(report.machine(), suite.measure(own, counts, notify), absent)
