"""Whole runs on some GPUs: the same steps of the same bodies, timed by the run's own clock, and their bits compared."""

from collections.abc import Sequence
from dataclasses import replace

from nbody.bench import Notify
from nbody.bench.columns import ratio
from nbody.bench.forces.problems import cluster
from nbody.bench.scaling.tables import ScalingRow
from nbody.run.simulation import Simulation

COUNTS = (65536, 262144, 1 << 20)

DT, EVERY = 1e-5, 10

SECONDS, FEWEST_STEPS = 2.0, 20
"""A run on one GPU has steps for about this time, at least FEWEST_STEPS."""

PILOT, WARM = 5, 4 * EVERY
"""Steps of the run that compiles the kernels and estimates the speed; and of the one that records the graphs, as a run of
days does once, if these steps are many."""


def measure(
    gpus: Sequence[int], counts: Sequence[int], kinds: Sequence[tuple[str, str]], notify: Notify = lambda _: None
) -> list[ScalingRow]:
    """Rows for all numbers of bodies and GPUs, of each engine and precision. ``notify`` gets a line before each."""
    rows = []
    for engine, precision in kinds:
        for count in counts:
            steps, one, bits = FEWEST_STEPS, None, b""
            for number in gpus:
                notify(f"N = {count}: {engine}, {precision} on {number} GPU{'s' * (number != 1)}")
                row, found = _run(count, engine, precision, number, steps)
                if one is None:
                    one, bits = row, found
                    steps = row.steps
                if found == bits:
                    speedup = ratio(one.seconds, row.seconds)
                    rows.append(replace(row, speedup=speedup, efficiency=ratio(speedup, number)))
                else:
                    row = replace(row, seconds=None, interactions_per_s=None)
                    rows.append(row.noted("other bits than on one GPU", wrong=True))
    return rows


def _run(count: int, engine: str, precision: str, gpus: int, steps: int) -> tuple[ScalingRow, bytes]:
    """A row, and the bits of the last positions. On one GPU the number of steps follows from the speed."""
    problem = cluster(count)
    run = Simulation(
        problem.particles, dt=DT, softening=problem.gravity.length, engine=engine, precision=precision, gpus=gpus,
        every=EVERY,
    )  # fmt: skip
    pilot = run.run(PILOT)
    if gpus == 1 and pilot.steps_per_s:
        steps = max(FEWEST_STEPS, round(SECONDS * pilot.steps_per_s))
    if steps > WARM:
        run.run(WARM)
    summary = run.run(steps)
    row = ScalingRow(
        name=engine, device=summary.device, precision=precision, particles=count,
        seconds=ratio(1.0, summary.steps_per_s), clock="host", interactions_per_s=summary.interactions_per_s,
        gpus=gpus, steps=steps,
    )  # fmt: skip
    return row, run.state.values("position")[0].tobytes()
