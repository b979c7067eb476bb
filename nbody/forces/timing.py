"""The time of one force evaluation on this machine, measured as a run calls the engine, and the cache of such answers."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from nbody import machine
from nbody.errors import DeviceError
from nbody.forces.engine import Engine
from nbody.forces.problem import Problem
from nbody.law import Gravity
from nbody.particles import Particles

GRAVITY = Gravity(1.0, 3, "plummer", 0.01)
"""The law with which engines are timed."""

SECONDS, REPEATS = 0.5, 5
"""Timings on a CPU end after this many seconds, or this many evaluations. The shortest time counts: other programs can only
make one longer."""

LARGEST_DIRECT, LARGEST_TREE = {"cpu": 1 << 14, "gpu": 1 << 17}, {"cpu": 1 << 16, "gpu": 1 << 20}
"""The most bodies that are timed, in less than a second. The times of more are those times a ratio of N² or of N."""


def bucket(particles: int) -> int:
    """The power of two that is nearest to a number as a ratio: what is measured for it."""
    return 2 ** round(math.log2(particles))


def cluster(count: int) -> Particles:
    """The bodies for which engines are timed: normally distributed, with unequal masses."""
    rng = np.random.default_rng(1)
    position = rng.standard_normal((count, 3))
    return Particles(rng.uniform(0.5, 1.5, count) / count, position, np.zeros_like(position))


def seconds(kind: type[Engine], asked: Problem) -> float:
    """The time of one evaluation in seconds, for about as many bodies and to the accuracy that are asked for; infinite if
    memory is short."""
    count, tree = bucket(asked.particles), kind.can.tree
    timed = min(count, (LARGEST_TREE if tree else LARGEST_DIRECT)[kind.can.device])
    options = kind.Options.model_validate({"accuracy": asked.accuracy} if tree else {})
    try:
        engine, bodies = kind(GRAVITY, asked.precision, options), cluster(timed)
        found = seconds_on_gpu(engine, bodies) if kind.can.device == "gpu" else seconds_on_cpu(engine, bodies)
    except DeviceError:
        return math.inf
    return found * (count / timed) ** kind.can.growth


def seconds_on_gpu(engine: Any, bodies: Particles) -> float:
    """The time of one force evaluation, launched by replaying a graph as a run does."""
    from nbody import compute

    state = engine.load(bodies)

    def evaluate() -> None:
        state.invalidate()
        engine.evaluate(state)

    evaluate()  # compiles
    graph = compute.Graph(state.stream, evaluate)
    calls = max(1, 20480 // bodies.count)
    return 1e-3 * min(compute.milliseconds(graph.replay, 1, calls, state.stream) for _ in range(REPEATS))


def seconds_on_cpu(engine: Engine, bodies: Particles, clock: Callable[[], float] = time.perf_counter) -> float:
    """The time of one force evaluation on the host, by a clock."""
    state = engine.load(bodies)
    engine.evaluate(state)  # compiles; and a tree learns the size of the forces
    times: list[float] = []
    while len(times) < REPEATS and sum(times) < SECONDS:
        state.invalidate()
        start = clock()
        engine.evaluate(state)
        times.append(clock() - start)
    return min(times)


def key(candidates: dict[str, Problem], device: str) -> str:
    """Everything that an answer depends on: the candidates with what is asked of each, the machine, and the versions of the
    programs."""
    asked = next(iter(candidates.values()))
    engines = ", ".join(f"{name} in {each.precision}" for name, each in candidates.items())
    accuracy = "" if asked.accuracy is None else f"accuracy {asked.accuracy:.2g}, "
    packages = machine.package_versions()
    versions = f"nbody {machine.version()}, numba {packages['numba']}, numba-cuda {packages['numba-cuda']}"
    return f"{device}, {machine.cores()} cores, {versions}, {accuracy}N = {bucket(asked.particles)}, of {engines}"
