"""What a run is: a frozen record of its plan, engine and bodies, made from what a user asks for."""

import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nbody import machine
from nbody.compute.compiling.precompile import workers_ahead
from nbody.errors import InputError, worded
from nbody.fields.added import AddedFields
from nbody.forces import ENGINES
from nbody.forces.engine import Engine
from nbody.given import shown
from nbody.integrators.integrator import Integrator, unsupported
from nbody.parallel import Team, team
from nbody.particles import Particles
from nbody.run.choice import asked_of_run, scheme_of
from nbody.run.guards import doubts
from nbody.run.lengths import with_lengths
from nbody.run.plan import EVENTS, Plan, plan
from nbody.run.ranks import shared_plan
from nbody.scenario import FromArrays, Scenario
from nbody.state import Moment
from nbody.whole_file import Notify

if TYPE_CHECKING:
    from nbody.events.chosen import Event, Given


Outcome = Callable[[Particles], Particles | None]


class Asked(NamedTuple):
    """What a user asks for: a scenario, the bodies if they are given, whether nothing says where the run ends, and what a
    Python program gives as events, and says of collisions."""

    scenario: Scenario
    particles: Particles | None
    open_ended: bool
    events: "Given | None" = None
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Setup:
    """What a run is.

    Attributes:
        plan: engine, scheme, schedule and sizes.
        engine: computes the forces.
        bodies: the particles at the beginning, with their radii if collisions are looked for.
        team: the ranks that make the run together.
        notify: gets the lines for the user.
        events: those that the run looks for, besides collisions.
        outcome: a user's function that says what becomes of two bodies that touch.
        open_ended: nothing says where the run ends.
        used: ids of bodies that were there before the beginning; no other body gets them.
    """

    plan: Plan
    engine: Engine
    bodies: Particles
    team: Team
    notify: Notify
    events: "tuple[Event, ...]" = ()
    outcome: Outcome | None = None
    open_ended: bool = False
    used: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def __reduce__(self) -> tuple[Any, ...]:
        # The engine, the ranks and the functions of a user who gets lines are those of the process that unpickles it.
        plan = self.with_new_integrator().plan
        return _unpickled, (plan, self.bodies, self.events, self.outcome, self.open_ended, self.used)

    def warn(self, line: str) -> None:
        """Give the user a line that begins with ``warning:``; if nobody gets lines, as a Python warning at the call of a
        method of the simulation."""
        if self.notify is not silent:
            self.notify(line)
        elif self.team.first:
            warnings.warn(worded(line.removeprefix("warning: ")), stacklevel=4)

    @property
    def event_capacity(self) -> int:
        """The number of collisions and events that fit into the recording."""
        return self.plan.event_capacity or (EVENTS if self.events else 0)

    @property
    def scenario(self) -> Scenario:
        """The scenario, with the precision of the run."""
        return self.plan.scenario

    @property
    def integrator(self) -> Integrator:
        return self.plan.integrator

    @property
    def measures_forces(self) -> bool:
        """True if the file says how accurate the forces are: of a tree, and of direct sums if an accuracy was asked for."""
        asked = "accuracy" in self.scenario.engine.options and not self.scenario.gravity.per_species
        return self.engine.can.tree or (asked and not self.integrator.facts.own_forces)

    @property
    def without_potential(self) -> list[str]:
        """The names of forces that the energies leave out, so that they are not conserved."""
        return [] if self.plan.fields is None else self.plan.fields.without_potential

    def scope(self) -> dict[str, str]:
        """What the bits of the result depend on: a resumed run may give other bits if one of these differs."""
        packages, found = machine.package_versions(), self.engine.identity()
        return {
            "engine": self.plan.engine_name, "precision": self.scenario.precision, "device": found.device,
            "driver": found.driver, "simd": machine.simd_level(), "version": machine.version(),
            **{name: packages[name] for name in ("numpy", "numba", "numba-cuda")}, **found.bits,
        }  # fmt: skip

    def with_new_integrator(self) -> "Setup":
        """The same run with another instance of its scheme, as at its beginning."""
        scheme = scheme_of(self.scenario, self.scenario.integrator.dt)
        return replace(self, plan=replace(self.plan, integrator=scheme))

    def towards(self, time: float, now: Moment) -> "Setup":
        """The run in the direction of a time; this one, if it goes there. Raises InputError: it cannot go there."""
        there = time <= now.time if self.plan.backward else time >= now.time
        return self if there else self.turned(now)

    def turned(self, now: Moment) -> "Setup":
        """The run in the other direction of time, from where it is. Raises InputError: it cannot go there."""
        old = self.plan
        dt = self.scenario.integrator.dt
        scenario = self.scenario if dt is None else self.scenario.override(dt=-dt)
        asked = asked_of_run(scenario, old.count, self.team.size, not old.backward)
        if reason := unsupported(type(self.integrator), self.engine, scenario.gravity, scenario.precision, **asked):
            raise InputError(f"integrate: {reason}")
        scheme, ended = scheme_of(scenario, scenario.integrator.dt), old.schedule.ending(now)
        turned = replace(old, scenario=scenario, backward=not old.backward, integrator=scheme, schedule=ended)
        return replace(self, plan=turned)

    def beginning_with(self, bodies: Particles, used: np.ndarray) -> "Setup":
        """The run as one that begins with bodies given as arrays, after bodies with the ids ``used``."""
        scenario = self.scenario.with_bodies(bodies)
        if scenario.collisions is not None and not len(bodies.radius):
            bodies = _with_radii(scenario, bodies)
        return replace(self, plan=replace(self.plan, scenario=scenario), bodies=bodies, used=used)


def set_up(asked: Asked, ranks: Team, notify: Notify, resumed: bool = False) -> Setup:
    """Plan a run, and make its engine and bodies. ``resumed``: an earlier process has told the user what is to be said of
    energies.

    Raises:
        InputError: the scenario names something that does not exist, or needs more memory than is free.
        DeviceError: its engine needs a device that is not there.
    """
    with _workers(asked.scenario.engine.name) if ranks.size == 1 else nullcontext():
        planned = shared_plan(ranks, lambda: plan(asked.scenario, asked.particles, notify))
        scenario, fields = planned.scenario, planned.fields
        if planned.engine_reason:
            notify(f"engine: {planned.engine_name} ({planned.engine_reason})")
        engine, bodies = planned.build()
    for line in doubts(scenario, planned.engine_kind, planned.integrator, bodies):
        notify(f"warning: {line}")
    for line in [] if fields is None or resumed else _about_energies(scenario, fields, bodies):
        notify(line)
    if scenario.collisions is not None:
        bodies = _with_radii(scenario, bodies)
    if isinstance(scenario.initial, FromArrays) and ranks.size == 1:
        planned = replace(planned, scenario=scenario.with_bodies(bodies))
    events = _events(asked, scenario, bodies)
    return Setup(planned, engine, bodies, ranks, notify, events, asked.outcome, asked.open_ended)


def _unpickled(plan: Plan, bodies: Particles, *more: Any) -> Setup:
    """The setup that was pickled, in this process."""
    engine, _ = replace(plan, particles=bodies).build()
    return Setup(plan, engine, bodies, team(), listener(), *more)


def _events(asked: Asked, scenario: Scenario, bodies: Particles) -> "tuple[Event, ...]":
    """The events of a scenario, and those that a Python program gives beside it. Raises InputError."""
    if not scenario.events and asked.events is None:
        return ()
    from nbody.events.chosen import chosen_events, events_of

    found = chosen_events(scenario)
    if asked.events is not None:
        found = [event._replace(call=asked.events.calls.get(k)) for k, event in enumerate(found)]
        found += asked.events.functions
    return events_of(found, scenario, bodies)


def _workers(engine: str) -> AbstractContextManager[None]:
    """What starts processes that compile kernels for an engine, if it is a tree, whose kernels are large."""
    tree = engine in ENGINES and "tree" in ENGINES[engine].tags
    return workers_ahead(ENGINES[engine].target.split(":")[0]) if tree else nullcontext()


def _about_energies(scenario: Scenario, fields: AddedFields, bodies: Particles) -> list[str]:
    """What the user is told of the energies in external fields. Raises InputError: they have a limit, and are unknown."""
    found = [f"warning: {line}" for line in fields.doubts(bodies.position, bodies.time, bodies.mass)]
    if len(fields.about) < len(fields.terms):
        found.append(
            "energies include the external fields: the orbit of the whole system in them too, so T/|W| need not be 1/2 "
            "in equilibrium"
        )
    if named := ", ".join(fields.without_potential):
        if scenario.on_energy_error is not None:
            where, fix = scenario.where("on_energy_error"), "give it one, or remove this"
            raise InputError(f"{where}the energy is not conserved, as '{named}' has no potential; {fix}")
        found.append(f"energies leave out '{named}', which has no potential: no energy error is computed")
    elif fields.energy_changes:
        found.append(f"energies are not conserved: {fields.energy_changes}")
    return found


def _with_radii(scenario: Scenario, bodies: Particles) -> Particles:
    from nbody.integrators.collisions.radii import radii

    return replace(bodies, radius=radii(scenario, bodies))


# --- What a user asks for ---


def given_bodies(given: object) -> bool:
    """True if this says which bodies a simulation has, and not that it begins without any."""
    nothing = isinstance(given, list | tuple) and not given
    return given is not None and not nothing and not (isinstance(given, Particles) and not len(given.mass))


def asked_for(
    given: Scenario | Particles | str | Path,
    particles: Particles | None,
    values: Mapping[str, Any],
    again: bool,
    outcome: Outcome | None = None,
) -> Asked:
    """The scenario of what a user has given: one, its name or path, or bodies; with keyword values.

    Args:
        particles: bodies that replace the scenario's.
        again: they are the scenario's own.
        outcome: a function that says what becomes of two bodies that touch, as ``collisions: {rule: function}``.

    Raises:
        InputError: it is none of these, or the values do not fit.
    """
    if outcome is not None:
        require_function("Simulation: on_collision", outcome)
        if not isinstance(given, Scenario) or given.collisions is None:
            keys = values.get("collisions")
            values = {**values, "collisions": {"rule": "function", **(keys if isinstance(keys, Mapping) else {})}}
        return asked_for(given, particles, values, again)._replace(outcome=outcome)
    events = None
    if values.get("events") is not None:
        from nbody.events.chosen import given_events

        events = given_events(values["events"])
        values = {**values, "events": events.plain}
    if isinstance(given, str | Path):
        given = Scenario.load(given)
    if values.get("fields") is not None:
        return _in_fields(given, particles, values, again)
    if isinstance(given, Particles):
        particles, values = with_lengths(given.check("particles: "), values)
        _refuse_making(particles, values)
        scenario = _scenario_of(particles.count, particles.dimensions, values)
        chosen = values.get("integrator")
        written = {*values, *(chosen if isinstance(chosen, Mapping) else ())}
        return Asked(scenario, particles, written.isdisjoint(("steps", "end")), events)
    if not isinstance(given, Scenario):
        raise InputError(
            f"Simulation: needs a scenario, its name or path, or particles, as in nbody.Particles(m, x, v); got "
            f"{shown(given)}"
        )
    known: Particles | None = given.source.bodies if isinstance(given.initial, FromArrays) else None
    if known is not None and particles is None:
        particles = replace(known)
    elif (
        known is not None and particles is not None and given.gravity.per_species
        and (particles.count, particles.species_names) == (known.count, ("",))
    ):  # fmt: skip
        particles = replace(particles, species=known.species, species_names=known.species_names)
    if particles is not None:
        _refuse_making(particles.check(), values)
    scenario = given.with_keywords(values)
    if particles is not None and not again:
        scenario = scenario.with_bodies(particles)
    return Asked(scenario, particles, False, events)


def _in_fields(given: Scenario | Particles, particles: Particles | None, values: Mapping[str, Any], again: bool) -> Asked:
    """The same of what has external fields, as objects: the units of some follow from the scenario."""
    from nbody.fields.given import given_fields

    asked = asked_for(given, particles, {**values, "fields": None}, again)
    fields = given_fields(values["fields"], asked.scenario.gravity.G)
    return asked._replace(scenario=asked.scenario.with_keywords({"fields": fields}))


def _refuse_making(particles: Particles, values: Mapping[str, Any]) -> None:
    """Raise an InputError if values say how particles are made that are given."""
    if made := next((name for name in ("particles", "seed") if values.get(name) is not None), None):
        raise InputError(f"{made}: the {particles.count} particles are given; leave it out")


def _scenario_of(count: int, dimensions: int, values: Mapping[str, Any]) -> Scenario:
    """The scenario of particles and keyword arguments."""
    try:
        return _recent_scenario(count, dimensions, **values)
    except TypeError:  # a value that can't be hashed
        return _recent_scenario.__wrapped__(count, dimensions, **values)


@lru_cache(64, typed=True)
def _recent_scenario(particles: int, dimensions: int, /, **values: Any) -> Scenario:
    """The same, from memory if it was asked for lately: programs make thousands of small systems."""
    base = {
        "initial": {"source": "arrays", "particles": particles},
        "gravity": {"dimensions": dimensions},
        "integrator": {"steps": 0},
    }
    return Scenario.from_dict(base, keywords=values)


# --- Messages ---


def listener(notify: Notify | None = None) -> Notify:
    """The function that gets the messages for the user, worded for Python or for the command line
    (:func:`~nbody.errors.worded`). The default is ``print`` in a notebook; elsewhere messages are dropped."""
    if notify is None:
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython is not None else None
        notify = print if shell is not None and "IPKernelApp" in getattr(shell, "config", {}) else silent
    require_function("notify:", notify)
    return notify if notify is silent else lambda line: notify(worded(line))


def silent(line: str) -> None:
    """Drop a line."""


def require_function(where: str, given: object) -> None:
    """Raise an InputError, which begins with ``where``, if this can't be called."""
    if not callable(given):
        raise InputError(f"{where} must be a function, got {shown(given)}")
