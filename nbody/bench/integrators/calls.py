"""Small systems as a Python program calls them: the time per step or per call, beside REBOUND where it is installed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from timeit import timeit
from typing import Any

import numpy as np

from nbody import machine
from nbody.bench import Notify
from nbody.bench.integrators.problems import DAYS, SUN, outer_solar_system, solar_system
from nbody.bench.integrators.tables import CallRow
from nbody.initial.few import FigureEight
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.run.simulation import Simulation

STEPS, CALLS, ROUNDS = 5_000, 100, 24
"""The steps of one call, the calls in one measurement, and the rounds in which all cases take turns; the fastest counts."""

MANY = "many steps"
"""The setting of a row whose call makes :data:`STEPS`."""

INNER, GIANTS = "Mercury Venus Earth Mars", "Jupiter Saturn Uranus"

Case = tuple[CallRow, Callable[[], object], Callable[[], float]]
"""A row without its time, the call to time, and the energy."""


def measure(notify: Notify = lambda _: None) -> tuple[list[CallRow], list[str]]:
    """The rows, and a clause for REBOUND if it is not there."""
    notify("small systems, call by call")
    try:
        import rebound
    except ImportError:
        rebound = None
    cases = list(_cases(rebound))
    first = [energy() for _, _, energy in cases]
    rounds = [[_seconds(row, call) for row, call, _ in cases] for _ in range(ROUNDS)]
    rows = []
    for (row, _, energy), times, begun in zip(cases, zip(*rounds, strict=True), first, strict=True):
        error = abs(energy() / begun - 1) if row.setting == MANY else None
        rows.append(replace(row, seconds=min(times), energy_error=error))
    return rows, [] if rebound else ["REBOUND (pip install rebound)"]


def _seconds(row: CallRow, call: Callable[[], object]) -> float:
    """The time of a call, or of a step of a call of many."""
    return timeit(call, number=1) / STEPS if row.setting == MANY else timeit(call, number=CALLS) / CALLS


def _cases(rebound: Any) -> Iterator[Case]:
    """The figure eight and planets, each by schemes of nbody and, if it is there, of REBOUND, with their defaults."""
    eight, planets = FigureEight().generate(3, Gravity(), np.random.default_rng(1)), outer_solar_system()
    for problem, bodies, G, scheme, competitor, dt in (
        ("figure eight", eight, 1.0, "leapfrog", "leapfrog", 0.01),
        ("figure eight", eight, 1.0, "hermite4", "", 0.01),
        ("3 planets", solar_system(GIANTS), DAYS.G, "wisdom_holman", "whfast", 100.0),
        ("8 planets", solar_system(f"{INNER} {GIANTS} Neptune"), DAYS.G, "wisdom_holman", "whfast", 5.0),
        ("planets", planets, SUN.G, "ias15", "ias15", None),
    ):
        make = partial(Simulation, bodies, dt=dt, G=G, integrator=scheme, engine="cpu", precision="float64")
        one = make()
        energy = partial(_energy, one)
        yield from _calls(_row(scheme, problem, bodies), make, one.step, energy, scheme == "leapfrog")
        if competitor and rebound:
            other = partial(_of_rebound, rebound, bodies, G, competitor, dt)
            row = _row(f"rebound {competitor}", problem, bodies)
            one = other()
            yield from _calls(row, other, one.steps, one.energy, scheme == "leapfrog")


def _row(name: str, problem: str, bodies: Particles) -> CallRow:
    return CallRow(
        name=name, device=machine.cpu_name(), precision="float64", backend="cpu", threads=1, clock="host",
        particles=bodies.count, problem=problem,
    )  # fmt: skip


def _energy(simulation: Simulation) -> float:
    return simulation.kinetic_energy + simulation.potential_energy


def _calls(
    row: CallRow, make: Callable[[], Any], step: Callable[[int], object], energy: Callable[[], float], single: bool
) -> Iterator[Case]:
    """Many steps in one call; and if ``single`` one step per call, the construction, and a run of nbody."""
    step(1)  # compiles
    calls: dict[str, Callable[[], object]] = {MANY: partial(step, STEPS)}
    if single:
        calls |= {"one step": partial(step, 1), "construction": make}
        if isinstance(simulation := make(), Simulation):
            calls["run(steps=1)"] = partial(simulation.run, steps=1)
    for setting, call in calls.items():
        call()
        yield replace(row, setting=setting), call, energy


def _of_rebound(rebound: Any, bodies: Particles, G: float, scheme: str, dt: float | None) -> Any:
    simulation = rebound.Simulation()
    for m, x, v in zip(bodies.mass, bodies.position, bodies.velocity, strict=True):
        simulation.add(m=m, x=x[0], y=x[1], z=x[2], vx=v[0], vy=v[1], vz=v[2])
    simulation.G, simulation.integrator = G, scheme
    if dt is not None:
        simulation.dt = dt
    return simulation
