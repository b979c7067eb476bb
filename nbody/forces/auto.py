"""What ``auto`` stands for on a GPU: the engine that was measured as the fastest for this many particles on this card.

Only engines that may win are measured: those whose :attr:`~nbody.forces.engine.Engine.contends` includes the number of
particles and that are not marked experimental. If there is one, nothing is measured. Otherwise the first run on a card takes
a few seconds, most of them for compiling the other engine, and its answer is kept in a file for the power of two nearest to
the number of particles. Later runs on the same machine, with the same versions, then use the same engine and give the same
bits. Remove the file to measure again.
"""

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nbody import cache, machine
from nbody.errors import DeviceError
from nbody.forces import ENGINES
from nbody.forces.engine import Engine
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.state.want import Want

KIND = "fastest"
"""The kind of cache entry; see :mod:`nbody.cache`."""

GRAVITY = Gravity(1.0, 3, "plummer", 0.01)
"""The law with which engines are timed."""

REPEATS = 5
"""Timings of an engine, of which the shortest counts: other programs can only make one longer."""

Candidates = dict[str, type[Engine]]


def candidates(needs: Want | int = Want.ACCELERATION, softenings: bool = False) -> Candidates:
    """The engines that compute what is needed and may be the fastest on a GPU for some number of particles. ``softenings``:
    those of the GPU that have a softening length per species. (Trees contend if a user names an accuracy, see
    :mod:`nbody.forces.by_accuracy`.)"""
    named = (name for name, entry in ENGINES.items() if not entry.experimental and not entry.variants)
    engines = {name: ENGINES.load(name) for name in named}
    engines = {name: engine for name, engine in engines.items() if engine.device == "gpu" and not engine.approximate}
    if softenings:
        engines = {name: engine for name, engine in engines.items() if engine.softenings}
    return {
        n: engine for n, engine in engines.items() if (softenings or engine.contends) and not needs & ~engine.offers
    }


def contenders(engines: Candidates, particles: int) -> Candidates:
    """Those that may be the fastest for this number of particles; all of them if there is none."""
    return {name: engine for name, engine in engines.items() if particles in engine.contends} or engines


def fastest(engines: Candidates, precision: str, particles: int, notify: Callable[[str], None]) -> str:
    """The fastest of some engines on this card, from the file or measured now.

    Args:
        engines: contenders by name, all of which offer the precision.
        precision: ``float32``, ``mixed`` or ``float64``.
        particles: their number.
        notify: receives one line if they are measured.
    """
    if name := known(engines, precision, particles):
        return name
    notify(f"measuring once which engine is the fastest for about {bucket(particles)} particles in {precision}")
    times = measure(engines, precision, bucket(particles))
    if not times:
        return next(iter(engines))
    name = min(times, key=lambda name: times[name])
    if len(times) == len(engines):
        cache.keep(KIND, _key(engines, precision, particles), name)
    return name


def known(engines: Candidates, precision: str, particles: int) -> str | None:
    """What :func:`fastest` returns without measuring: the only engine, or the one in the file; None if it must measure."""
    if len(engines) == 1:
        return next(iter(engines))
    name = cache.recall(KIND).get(_key(engines, precision, particles))
    return name if isinstance(name, str) and name in engines else None


def measure(engines: Candidates, precision: str, count: int) -> dict[str, float]:
    """The seconds of one force evaluation on the device for each engine, in 3-D with Plummer softening, launched by
    replaying a graph, as a run does. An engine for which too little memory is free is left out."""
    bodies, times = cluster(count), {}
    for name, engine in engines.items():
        with contextlib.suppress(DeviceError):
            times[name] = seconds_on_gpu(engine(GRAVITY, precision), bodies)
    return times


def cluster(count: int) -> Particles:
    """The bodies for which engines are timed: normally distributed, with unequal masses."""
    rng = np.random.default_rng(1)
    position = rng.standard_normal((count, 3))
    return Particles(rng.uniform(0.5, 1.5, count) / count, position, np.zeros_like(position))


def bucket(particles: int) -> int:
    """The power of two that is nearest to a number as a ratio: what is measured for it."""
    return 2 ** round(math.log2(particles))


def seconds_on_gpu(engine: Any, bodies: Particles) -> float:
    """The time of one force evaluation, launched by replaying a graph."""
    from nbody import gpu

    state = engine.load(bodies)

    def evaluate() -> None:
        state.invalidate()
        engine.evaluate(state)

    evaluate()  # compiles
    graph = gpu.Graph(state.stream, evaluate)
    calls = max(1, 20480 // bodies.count)
    return 1e-3 * min(gpu.milliseconds(graph.replay, 1, calls, state.stream) for _ in range(REPEATS))


def _key(engines: Candidates, precision: str, particles: int) -> str:
    """Everything that an answer depends on."""
    from nbody import gpu

    card = gpu.facts()
    what = f"{precision}, N = {bucket(particles)}, of {', '.join(engines)}"
    return f"{card.name}, driver {card.driver}, {versions()}, {what}"


def versions() -> str:
    """The versions of the programs on which the speed of an engine depends."""
    packages = machine.package_versions()
    return f"nbody {machine.version()}, numba {packages['numba']}, numba-cuda {packages['numba-cuda']}"
