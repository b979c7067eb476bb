"""Small systems as a Python program calls them: the time per step or per call, beside REBOUND where it is installed."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nbody import machine
from nbody.bench import Notify
from nbody.bench.integrators.problems import SUN, outer_solar_system
from nbody.bench.integrators.tables import CallRow
from nbody.bench.timing import seconds
from nbody.initial.few import FigureEight
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.run.simulation import Simulation

STEPS, CALLS, ROUNDS = 20_000, 200, 5
"""The steps of one call, the calls in one measurement, and the rounds in which all cases take turns; the fastest counts."""


class SmallSystem(NamedTuple):
    """Bodies, and what moves them: a scheme of nbody, one of REBOUND (empty for none), the time step, and whether single
    calls are timed too."""

    name: str
    bodies: Particles
    G: float
    schemes: tuple[tuple[str, str, float | None, bool], ...]


class CallCase(NamedTuple):
    """What is timed: ``run()`` does it so many ``times``."""

    name: str
    system: SmallSystem
    setting: str
    times: int
    run: Callable[[], object]


def small_systems() -> list[SmallSystem]:
    """The figure eight and the outer solar system."""
    eight = FigureEight().generate(3, Gravity(), np.random.default_rng(1))
    schemes = ("leapfrog", "leapfrog", 0.01, True), ("hermite4", "", 0.01, False)
    planets = ("wisdom_holman", "whfast", 100.0, False), ("ias15", "ias15", None, False)
    return [
        SmallSystem("figure eight", eight, 1.0, schemes),
        SmallSystem("planets", outer_solar_system(), SUN.G, planets),
    ]


def measure(notify: Notify = lambda _: None) -> tuple[list[CallRow], list[str]]:
    """The rows, and a clause for REBOUND if it is not there."""
    notify("small systems, call by call")
    try:
        import rebound
    except ImportError:
        rebound = None
    cases = [case for system in small_systems() for case in _cases(system, rebound)]
    best = [
        min(times)
        for times in zip(*([seconds(case.run) / case.times for case in cases] for _ in range(ROUNDS)), strict=True)
    ]
    rows = [
        CallRow(
            name=case.name, device=machine.cpu_name(), precision="float64", backend="cpu", threads=1, clock="host",
            particles=case.system.bodies.count, problem=case.system.name, setting=case.setting, seconds=fastest,
        )
        for case, fastest in zip(cases, best, strict=True)
    ]  # fmt: skip
    return rows, [] if rebound else ["REBOUND (pip install rebound)"]


def _cases(system: SmallSystem, rebound: Any) -> Iterator[CallCase]:
    for scheme, competitor, dt, single in system.schemes:
        make = partial(
            Simulation, system.bodies, dt=dt, G=system.G, integrator=scheme, engine="cpu", precision="float64"
        )
        run: dict[str, Callable] = {"run(steps=1)": partial(make().run, steps=1)} if single else {}
        yield from _calls(system, scheme, make, "step", single, run)
        if competitor and rebound:
            others = partial(_of_rebound, rebound, system, competitor, dt)
            yield from _calls(system, f"rebound {competitor}", others, "steps", single, {})


def _calls(
    system: SmallSystem, name: str, make: Callable[[], Any], method: str, single: bool, more: dict[str, Callable]
) -> Iterator[CallCase]:
    """Many steps in one call; and if ``single`` one step per call, the construction, and ``more``."""
    step = getattr(make(), method)
    step(1)  # compiles
    yield CallCase(name, system, "many steps", STEPS, partial(step, STEPS))
    calls: dict[str, Callable] = {"one step": partial(step, 1), "construction": make, **more} if single else {}
    for setting, call in calls.items():
        call()
        yield CallCase(name, system, setting, CALLS, partial(_repeat, call))


def _repeat(call: Callable[[], object]) -> None:
    for _ in range(CALLS):
        call()


def _of_rebound(rebound: Any, system: SmallSystem, scheme: str, dt: float | None) -> Any:
    simulation, bodies = rebound.Simulation(), system.bodies
    for m, x, v in zip(bodies.mass, bodies.position, bodies.velocity, strict=True):
        simulation.add(m=m, x=x[0], y=x[1], z=x[2], vx=v[0], vy=v[1], vz=v[2])
    simulation.G, simulation.integrator = system.G, scheme
    if dt is not None:
        simulation.dt = dt
    return simulation
