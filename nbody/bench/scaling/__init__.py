"""The scaling suite: whole runs on one GPU of this machine, on two, and so on."""

from collections.abc import Sequence

from nbody.bench import Measure, Notify
from nbody.errors import InputError

DEFAULT, ENGINE = "1,2,4,8", "gpu-symmetric"


def prepare(
    notify: Notify,
    *,
    gpus: str = "",
    particles: Sequence[int] = (),
    engines: Sequence[str] = (),
    precision: Sequence[str] = (),
) -> Measure:
    """Measure whole steps on one GPU of this machine, on two, and so on.

    The same bodies, leapfrog, frames of every tenth step; the efficiency is
    the speed divided by that of as many single GPUs. All runs of an N must
    give the same bits.

    Examples:

      nbody bench scaling --gpus 1,2,4

      nbody bench --gpus 1,2 --particles 262144

      nbody bench --gpus 1,2 --engines gpu-tree --particles 1e6 1e7
    """
    from nbody import compute
    from nbody.bench import card, report
    from nbody.bench.scaling import suite
    from nbody.forces import ENGINES
    from nbody.forces.problem import Problem
    from nbody.law import Gravity
    from nbody.scenario.options import PRECISIONS

    card.require_gpu("nbody bench scaling")
    requested = _numbers(gpus, there := compute.device_count())
    if unknown := [name for name in precision if name not in PRECISIONS]:
        raise InputError(f"--precision: one of {', '.join(PRECISIONS)}, got '{unknown[0]}'")
    counts, known = particles or suite.COUNTS, [number for number in requested if number <= there]
    kinds = [(engine, each) for engine in engines or [ENGINE] for each in precision or PRECISIONS[:1]]
    for engine, each in kinds:
        if reason := ENGINES.load(engine, "--engines: ").supports(Problem(Gravity(), each, gpus=max(2, requested[-1]))):
            raise InputError(f"--engines: '{engine}': {reason}; leave it out")
    return lambda notify: report.Report(report.machine(), suite.measure(known, counts, kinds, notify))


def _numbers(gpus: str, there: int) -> list[int]:
    """The numbers of GPUs that are asked for, ascending, with 1. Raises InputError for a wrong one."""
    try:
        numbers = sorted({int(each) for each in (gpus or DEFAULT).split(",")} | {1})
    except ValueError:
        raise InputError(f"--gpus: must be numbers of GPUs such as 1,2,4, got '{gpus}'") from None
    if numbers[0] < 1 or (gpus and numbers[-1] > there):
        raise InputError(f"--gpus: this machine has {there} GPU{'s' * (there != 1)}, got '{gpus}'")
    return numbers
