"""What ``auto`` stands for on a GPU: the engine that was the fastest for so many particles, measured on this very card.

The first time it is asked for on a card (with a driver, a precision, a version of this program and of Numba), the engines
of :data:`CANDIDATES` are timed for each N of :data:`COUNTS`; most of the seconds that takes go to the compiler. The table is
then kept in a file, so that later runs on the same machine take the same engine and give the same bits: remove the file to
have it measured again.
"""

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nbody import cache, machine
from nbody.errors import DeviceError
from nbody.forces.engine import Engine
from nbody.law import Gravity
from nbody.particles import Particles

COUNTS = tuple(1024 << k for k in range(8))
"""The N that are measured, each twice the one before; another N takes the engine of the nearest."""

CANDIDATES = ("gpu-scheduled", "gpu-symmetric", "gpu-tiled", "gpu-unrolled", "gpu-split")
"""The engines worth measuring, the fastest for a large N first: ``gpu-global`` and ``gpu-kahan`` are slower than
``gpu-tiled`` by construction."""

REPEATS = 5
"""Timings of an engine and an N, of which the shortest counts: other programs can only make one longer."""

Table = dict[int, str]
"""The fastest engine for each of COUNTS."""


def nearest(table: Table, particles: int) -> str:
    """The engine for the N of the table that is nearest to ``particles`` as a ratio."""
    return table[min(table, key=lambda count: abs(math.log(count / particles)))]


def fastest_engines(
    engines: dict[str, type[Engine]], precision: str, notify: Callable[[str], None] = lambda line: None
) -> Table:
    """The table for this card and ``precision``, from its file or measured now.

    Args:
        engines: candidates by name, all of which offer the precision.
        precision: ``float32``, ``mixed`` or ``float64``.
        notify: is told, in a line, if it must be measured.
    """
    if len(engines) == 1:
        return dict.fromkeys(COUNTS, next(iter(engines)))
    key = _key(precision)
    table = _table(engines, key)
    if table is None:
        notify(f"measuring which engine is the fastest on this card in {precision}, once, for the runs to come")
        table = measure(engines, precision)
        if set(table) == set(COUNTS):
            cache.keep(KIND, key, table)
    return table or dict.fromkeys(COUNTS, next(iter(engines)))


def is_measured(engines: dict[str, type[Engine]], precision: str) -> bool:
    """True if :func:`fastest_engines` has nothing to measure."""
    return len(engines) == 1 or _table(engines, _key(precision)) is not None


def measure(engines: dict[str, type[Engine]], precision: str, counts: tuple[int, ...] = COUNTS) -> Table:
    """The fastest of some engines for each count: the seconds of one force evaluation on the device, in 3-D with Plummer's
    softening, launched as a run launches it, by replaying a graph. A count that no engine has memory for is left out."""
    gravity = Gravity(1.0, 3, "plummer", 0.01)
    found = {}
    for count in counts:
        bodies = _sphere(count)
        times = {}
        for name, engine in engines.items():
            with contextlib.suppress(DeviceError):  # too little memory is free
                times[name] = _seconds(engine(gravity, precision), bodies)
        if times:
            found[count] = min(times, key=lambda name: times[name])
    return found


def _sphere(count: int) -> Particles:
    """Bodies of unequal mass at random places."""
    rng = np.random.default_rng(1)
    position = rng.standard_normal((count, 3))
    return Particles(rng.uniform(0.5, 1.5, count) / count, position, np.zeros_like(position))


def _seconds(engine: Any, bodies: Particles) -> float:
    from nbody import gpu

    state = engine.load(bodies)

    def evaluate() -> None:
        state.invalidate()
        engine.evaluate(state)

    evaluate()  # compiles
    again = gpu.Graph(state.stream, evaluate)
    calls = max(1, 20480 // bodies.count)
    return 1e-3 * min(gpu.milliseconds(again.replay, 1, calls, state.stream) for _ in range(REPEATS))


# --- The file -----------------------------------------------------------------------------------------------------------


KIND = "fastest"
"""What tables are kept as; see :mod:`nbody.cache`."""


def _key(precision: str) -> str:
    """What a table holds for."""
    from nbody import gpu

    card = gpu.facts()
    packages = machine.package_versions()
    versions = f"nbody {machine.version()}, numba {packages['numba']}, numba-cuda {packages['numba-cuda']}"
    return f"{card.name}, driver {card.driver}, {versions}, {precision} of {', '.join(CANDIDATES)}"


def _table(engines: dict[str, type[Engine]], key: str) -> Table | None:
    """The table that is remembered under a key, if it is whole and names no engines but these."""
    try:
        table = {int(count): str(name) for count, name in cache.recall(KIND)[key].items()}
    except (KeyError, ValueError, AttributeError):  # none, or made by somebody else
        return None
    return table if set(table) == set(COUNTS) and set(table.values()) <= set(engines) else None
