"""From a scenario to an engine and its bodies: what can be wrong with a run is said here, before anything is computed."""

from collections.abc import Callable
from typing import NamedTuple

from nbody.forces import ENGINES, resolve
from nbody.forces.engine import Engine
from nbody.forces.memory import check_fits
from nbody.initial import check_initial, make_particles
from nbody.integrators import INTEGRATORS
from nbody.integrators.scheme import Scheme
from nbody.particles import Particles
from nbody.run.guards import doubts
from nbody.scenario import Generated, Scenario


class Prepared(NamedTuple):
    """What a run is made of. ``engine_name`` is the engine's, with ``auto`` replaced by what it stands for."""

    scheme: Scheme
    engine_name: str
    engine: Engine
    particles: Particles


def prepare(scenario: Scenario, particles: Particles | None, notify: Callable[[str], None]) -> Prepared:
    """What a scenario is made of, with other ``particles`` if they are given. ``notify`` gets a line about a choice made
    for the user, or about something that looks wrong.

    Raises:
        InputError: the scenario names something that does not exist, or needs more memory than there is.
        DeviceError: a GPU engine was named, and there is no GPU.
    """
    if particles is None:
        check_initial(scenario)
    scheme: Scheme = INTEGRATORS.load(scenario.integrator.scheme, scenario.where("integrator.scheme"))
    if particles is None and not isinstance(scenario.initial, Generated):
        particles = make_particles(scenario)  # a file says how many there are only when it is read
    count = scenario.initial.particles if particles is None else particles.count  # type: ignore[union-attr]
    name, why = resolve(scenario.engine, scenario.precision, count, scenario.where("engine"), notify)
    if why:
        notify(f"engine: {name} ({why})")
    kind: type[Engine] = ENGINES.load(name)
    kind.require_precision(scenario.precision, scenario.where("precision"))
    kind.require_device()
    check_fits(kind, count, scenario.precision, scenario.where("initial.particles"))
    engine = kind(scenario.gravity, scenario.precision)
    particles = make_particles(scenario) if particles is None else particles
    for line in doubts(scenario.gravity, scenario.precision, particles):
        notify(f"warning: {line}")
    return Prepared(scheme, name, engine, particles)
