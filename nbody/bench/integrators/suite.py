"""Measures error against time: every scheme that suits a problem, at a few steps or accuracies."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from nbody.bench import Notify
from nbody.bench.integrators.problems import COUNTS, MotionProblem, problems
from nbody.bench.integrators.tables import IntegratorRow
from nbody.errors import RunFailed
from nbody.forces import ENGINES
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Integrator, Motion, unsupported
from nbody.state import Outputs

ENGINE = {"cpu": "cpu", "gpu": "gpu-symmetric"}

TIMEOUT = 10.0
"""Seconds after which a scheme is stopped; its row then has a note instead of a time."""

STEPS = 512
"""Steps between two looks at the clock."""


def measure(
    counts: Sequence[int] = COUNTS, backends: Sequence[str] = ("cpu",), notify: Notify = lambda _: None
) -> list[IntegratorRow]:
    """Rows of all problems; on a GPU the cluster alone. ``notify`` gets a line before each scheme."""
    rows = []
    for problem in problems(counts):
        for backend in backends if problem.name == "cluster" else ("cpu",):
            for name in problem.schemes:
                if not unsupported(INTEGRATORS.load(name), ENGINES.load(ENGINE[backend]), problem.gravity, "float64"):
                    notify(f"{problem.name}, N = {problem.bodies.count}, {backend}: {name}")
                    rows += [measured(problem, backend, name, *setting) for setting in _settings(problem, name)]
    return rows


def _settings(problem: MotionProblem, name: str) -> Iterator[tuple[str, float]]:
    """The options that set the accuracy, and their values."""
    facts = INTEGRATORS.load(name).facts
    for key, values in facts.accuracies.items():
        yield from ((key, value) for value in values)
    if not facts.accuracies:
        yield from (("dt", problem.end / round(count / facts.evaluations)) for count in problem.evaluations)


def measured(problem: MotionProblem, backend: str, name: str, key: str, value: float) -> IntegratorRow:
    """Compile, then make the run and compare its end with its beginning."""
    scheme, motion = _begun(problem, backend, name, key, value)
    row = IntegratorRow(
        name=name, device=motion.engine.identity().device, precision="float64", particles=motion.state.count,
        backend=backend, problem=problem.name, setting=f"{key}: {value:.4g}",
    )  # fmt: skip
    scheme.advance(motion, 3, problem.end)
    motion.state.progress.wait()
    scheme, motion = _begun(problem, backend, name, key, value)
    first, start = _energy(motion), time.perf_counter()
    try:
        while (left := problem.end - motion.state.clock.time) > 1e-9 * problem.end:
            steps = STEPS if scheme.facts.adaptive else min(STEPS, round(left / scheme.dt))
            scheme.advance(motion, steps, problem.end)
            motion.state.progress.wait()
            if time.perf_counter() - start > TIMEOUT:
                made = 100 * motion.state.clock.time / problem.end
                return row.noted(f"not finished after {TIMEOUT:g} s, at {made:.0f} %")
    except RunFailed as error:
        return row.noted(str(error))
    seconds, energy = time.perf_counter() - start, _energy(motion)
    if not math.isfinite(energy):
        return row.noted("the energy is not finite", wrong=True)
    distance = None
    if problem.exact:
        position = motion.state.frames.snapshot().position
        distance = math.dist(position[0] - position[1], problem.exact)
    steps, change = motion.state.clock.step, abs(energy / first - 1)
    return replace(row, seconds=seconds, clock="host", error=distance, steps=steps, energy_error=change)


def _begun(problem: MotionProblem, backend: str, name: str, key: str, value: float) -> tuple[Integrator, Motion]:
    """The scheme after its start."""
    kind = INTEGRATORS.load(name)
    largest = 0.125 if problem.name == "cluster" else None
    scheme = kind(value) if key == "dt" else kind(largest, kind.Options(**{key: value}))
    engine = ENGINES.load(ENGINE[backend])(problem.gravity, "float64")
    motion = Motion(engine, engine.load(problem.bodies))
    scheme.prepare(motion)
    scheme.start(motion)
    return scheme, motion


def _energy(motion: Motion) -> float:
    motion.evaluate(Outputs.ENERGY)
    snapshot = motion.state.frames.snapshot().wait()
    energy = float(snapshot.sums[:2].sum())
    snapshot.release()
    return energy
