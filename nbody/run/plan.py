"""The plan of a run: engine, integrator, schedule, memory, file size and time. Errors in the scenario are found here, before
anything is computed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbody import machine
from nbody.compute.compiling import cache
from nbody.diagnostics.observables import ALWAYS, OF_TANGENTS, widths
from nbody.errors import InputError, NBodyError
from nbody.fields import added_fields, chosen_fields
from nbody.fields.added import AddedFields
from nbody.forces import ENGINES
from nbody.forces.engine import SOFTENING2, Engine
from nbody.forces.make import make_engine
from nbody.forces.options import gpu_count
from nbody.forces.problem import Problem
from nbody.forces.resources import needs
from nbody.initial import check_initial, make_particles, number_of_bodies, resolved_initial
from nbody.integrators.facts import WorkingBytes
from nbody.integrators.integrator import Integrator
from nbody.parallel import team
from nbody.particles import Particles
from nbody.run import choice
from nbody.run.lengths import planned_lengths
from nbody.run.precision import automatic_precisions
from nbody.run.schedule import Schedule, TimeSchedule, directed, schedule_for, written
from nbody.run.trial import require_order
from nbody.scenario import FromArrays, Scenario
from nbody.scenario.collisions import CHANGING
from nbody.scenario.model import component
from nbody.scenario.options import AUTO
from nbody.scenario.values import Group, validated
from nbody.state import Column, Moment, checkpoint_arrays, itemsize
from nbody.whole_file import Notify

if TYPE_CHECKING:
    from nbody.trajectory import RunHeader

RATES = "rates"
"""The cache file of the interactions per second that runs on this machine have reached."""


EVENTS = 10_000
"""The collisions, or the events, that fit into the recording of a run whose bodies do not merge (160 bytes each)."""


@dataclass(frozen=True)
class Plan:
    """The plan of a scenario's run on this machine.

    Attributes:
        engine_name: the engine that computes the forces, chosen for ``auto`` and ``matrix``; ``engine_reason`` says why.
        engine_kind, engine_options: its class and options.
        integrator: the scheme, ready to move a state.
        count: the number of particles.
        schedule: which moments become frames.
        fields: the external fields; None if there are none.
        backward: True if the run goes back in time.
    """

    scenario: Scenario
    engine_name: str
    engine_reason: str
    engine_kind: type[Engine]
    engine_options: Group
    integrator: Integrator
    count: int
    schedule: Schedule
    particles: Particles | None
    fields: AddedFields | None = None
    backward: bool = False

    @property
    def _problem(self) -> Problem:
        scenario = self.scenario
        asked = self.integrator.facts.problem(scenario.gravity, scenario.precision, self.count)
        return asked._replace(ranks=team().size, gpus=self._gpus)

    @property
    def memory(self) -> dict[str, int]:
        """Bytes that the run needs of each kind of memory."""
        added, working = self._of_integrator
        found = needs(self.engine_kind, self._problem, added, working.first)
        if self._gpus > 1:
            found["each other GPU"] = self.engine_kind.memory(self._problem).helper + working.helper
        return found

    @property
    def _of_integrator(self) -> tuple[tuple[Column, ...], WorkingBytes]:
        """The columns that the run adds to the engine's state, and the bytes of the scheme's working arrays."""
        facts, scenario = self.integrator.facts, self.scenario
        working = facts.memory(self.engine_kind, self.count, scenario.precision)
        first = working.first + (working.exchange if self._gpus > 1 else 0)
        return (*facts.columns, *((SOFTENING2,) if scenario.gravity.per_species else ())), working._replace(first=first)

    @property
    def _gpus(self) -> int:
        """How many GPUs compute the forces in this process."""
        return gpu_count(getattr(self.engine_options, "gpus", None))

    @property
    def _first(self) -> Moment:
        return Moment(self.particles.step, self.particles.time) if self.particles else Moment(0, 0.0)

    @property
    def frames(self) -> int:
        """The number of frames of the whole run."""
        return 1 + self.schedule.count_after(self._first)

    def resolved(self) -> dict[str, Any]:
        """The scenario with all values that the run uses."""
        found = self.scenario.resolved() | {"initial": resolved_initial(self.scenario)}
        options = self.engine_options.model_dump(exclude_none=True)
        if self.scenario.fields:
            pairs = zip(self.scenario.fields, chosen_fields(self.scenario), strict=True)
            found["fields"] = [{"field": chosen.field, **field.model_dump()} for chosen, field in pairs]
        if self.scenario.events:
            from nbody.events.chosen import chosen_events

            found["events"] = [
                {"kind": chosen.kind, "action": chosen.action, **event.kind.model_dump(exclude_none=True)}
                for chosen, event in zip(self.scenario.events, chosen_events(self.scenario), strict=True)
            ]
        if dt := written(self.schedule).get("dt"):
            others = {key: value for key, value in found["record"].items() if key in ("observables", "events")}
            found["record"] = {"dt": dt, **others}
        if self.scenario.ensemble:
            found["ensemble"]["systems"] = self.scenario.ensemble.count
        found["engine"] = {"name": self.engine_name, **options} if options else self.engine_name
        return found

    def header(self, **provenance: Any) -> "RunHeader":
        """The header of the recording: its size, its scenario and its provenance."""
        from nbody.trajectory import RunHeader, state_bytes
        from nbody.trajectory.reading.events import BOOKED, RECORDED
        from nbody.trajectory.structure.layout import SYSTEM
        from nbody.trajectory.structure.layout import SYSTEM_COLUMNS as COLUMNS

        chosen, ensemble = self.scenario.record.observables or (), self.scenario.ensemble
        precision = self.scenario.precision
        columns = (*self.engine_kind.state_type.COLUMNS, *self._of_integrator[0])
        arrays = checkpoint_arrays(columns, self.count, self.scenario.gravity.dimensions, precision)
        resolved, mergers = self.resolved(), self.scenario.collisions
        return RunHeader(
            frames=self.frames,
            dtype="float32" if itemsize(precision) == 4 else "float64",
            scenario_text=self.scenario.text,
            resolved=resolved,
            provenance=provenance,
            state_bytes=state_bytes(arrays | self.integrator.arrays(), {})
            + ((24 if mergers else 0) + (48 if self.scenario.events else 0)) * self.count,
            observables=ALWAYS
            | (widths(chosen) if not ensemble else dict.fromkeys((*COLUMNS, *map(SYSTEM.__add__, chosen)), ensemble.count))
            | (RECORDED if mergers is not None and mergers.rule in CHANGING else {})
            | (BOOKED if self.scenario.escape is not None else {}),
            events=self.event_capacity,
        )

    @property
    def event_capacity(self) -> int:
        """The number of collisions and events that fit into the recording."""
        chosen, events = self.scenario.collisions, 0
        if self.scenario.events:
            events = self.scenario.record.events or EVENTS
        if chosen is None:
            return events + (self.count if self.scenario.escape is not None else 0)
        return events + (self.count if chosen.rule == "merge" else (chosen.most or EVENTS))

    @property
    def file_bytes(self) -> int:
        """The size of the recording in bytes."""
        from nbody.trajectory import required_bytes

        return required_bytes(self.count, self.header())

    @property
    def expected_seconds(self) -> float | None:
        """The expected time of the steps in seconds, from the speed of an earlier run with the same engine on this machine.
        None if there was no such run, or if the number of steps is not known."""
        rate = cache.cached_values(RATES).get(self._rate_key())
        if not rate or isinstance(self.schedule, TimeSchedule) or self.integrator.facts.own_forces:
            return None
        steps, per_step = max(0, self.schedule.last - self._first.step), self.integrator.facts.evaluations
        return steps * per_step * self.count**self.engine_kind.can.growth / float(rate)

    def remember_rate(self, steps_per_s: float, interactions_per_s: float) -> None:
        """Store the speed of a run for :attr:`expected_seconds` of later runs: in interactions per second, or with a tree in
        bodies per second."""
        bodies_per_s = steps_per_s * self.integrator.facts.evaluations * self.count
        if rate := bodies_per_s if self.engine_kind.can.tree else interactions_per_s:
            cache.store(RATES, self._rate_key(), rate)

    def _rate_key(self) -> str:
        """The key of the speed in the cache. N is rounded to a power of two, because the speed changes little within one."""
        scenario, device = self.scenario, machine.cpu_name()
        if self.engine_kind.can.device == "gpu":
            from nbody import compute

            device = compute.facts().name if not compute.why_unavailable() else "no GPU"
        law = f"{scenario.gravity.softening} {scenario.gravity.dimensions}-D"
        law += " per species" if scenario.gravity.per_species else ""
        device += f" {team().size} ranks" if team().size > 1 else ""
        chosen = self.engine_options.model_dump(exclude_none=True)
        options = "".join(f" {name} {value}" for name, value in chosen.items())
        return f"{self.engine_name}{options} {scenario.precision} {law} 2^{self.count.bit_length()} {device}"

    def build(self) -> tuple[Engine, Particles]:
        """Make the engine and the bodies.

        Raises:
            DeviceError: the device is missing or has too little memory.
            InputError: there is too little memory, or the bodies are not physically meaningful.
        """
        scenario = self.scenario
        columns, working = self._of_integrator
        ranks, added, where = team(), (columns, working.first), scenario.where("initial.particles")
        engine = make_engine(
            self.engine_kind, self.engine_name, self.engine_options, self._problem, where, self.fields, ranks, added
        )
        if self.particles is None:
            particles = ranks.broadcast(make_particles(scenario) if ranks.first else None)
        else:
            particles = self.particles
        if scenario.gravity.per_species:
            scenario.gravity.squares(particles.species, particles.species_names, scenario.where("gravity.length"))
        return engine, particles


def plan(
    scenario: Scenario, particles: Particles | None = None, notify: Notify = lambda line: None, measure: bool = True
) -> Plan:
    """Plan the run of a scenario on this machine.

    Args:
        particles: the bodies to start from, instead of the scenario's.
        notify: gets a line when ``auto`` measures the card first.
        measure: allow that; if False, ``auto`` takes the engine that is probably the fastest.

    Raises:
        InputError: the scenario names something that does not exist, or keys that do not fit each other.
    """
    if particles is None:
        check_initial(scenario)
    scenario, backward = directed(scenario, particles.time if particles else 0.0, notify)
    integrator = choice.scheme_of(scenario, scenario.integrator.dt)
    count = particles.count if particles else number_of_bodies(scenario)
    if count is None:
        particles = make_particles(scenario, notify)  # the number of bodies in a file is known only after reading it
        count = particles.count
    scenario = choice.in_the_schemes_precision(scenario, integrator, notify)
    if isinstance(scenario.gravity.length, tuple) and not scenario.ensemble:
        scenario, particles = planned_lengths(scenario, particles or make_particles(scenario, notify))
    precisions: tuple[str, ...] = ()
    if scenario.precision == AUTO:
        particles = particles or make_particles(scenario, notify)
        precisions, reason = automatic_precisions(scenario, integrator, particles)
        scenario = scenario.in_precision(precisions[-1 if scenario.ensemble else 0])  # ensembles compute in float64
    began = (particles.time, particles.step) if particles else (0.0, 0)
    schedule = schedule_for(scenario, integrator, *began)
    asked, options = choice.asked_of_run(scenario, count, team().size, backward), Group()
    if scenario.ensemble:
        (name, why, _), kind = choice.engine_of_systems(scenario, integrator, asked)
        given: Any = validated(kind.Options, scenario.engine.options, scenario.source, ("engine",))
        options = given.of(scenario.ensemble.count)
        choice.require_support(scenario, kind, scenario.precision, asked)
        _check_ensemble(scenario, integrator, count, schedule)
    else:
        require_order(scenario.integrator.scheme, integrator)
        problem = integrator.facts.problem(scenario.gravity, scenario.precision)._replace(**asked)
        try:
            found, chosen = choice.chosen_engine(scenario, integrator, problem, precisions, notify, measure)
        except NBodyError:  # this line names the key that is to blame
            choice.require_support(scenario, None, "float64", asked | {"ranks": 1})
            raise
        name, why, precision = found
        if precision != scenario.precision:
            scenario = scenario.in_precision(precision)
        if precisions:
            notify(f"precision: {precision} ({reason})")
        kind, options = component(scenario, "engine", chosen, ENGINES, name)
    fields = added_fields(scenario)
    return Plan(scenario, name, why, kind, options, integrator, count, schedule, particles, fields, backward)


def _check_ensemble(scenario: Scenario, scheme: Integrator, bodies: int, schedule: Schedule) -> None:
    """Raise an InputError if the keys of a scenario do not fit an ensemble. ``bodies``: of all systems."""
    from nbody.initial.ensemble import check_bodies

    ensemble, where = scenario.ensemble, scenario.where
    assert ensemble is not None
    if bodies % ensemble.count:
        raise InputError(
            f"{where('ensemble.systems')}{bodies} bodies can't be {ensemble.count} systems of the same number of bodies"
        )
    check_bodies(scenario, bodies // ensemble.count)
    if ensemble.vary is not None and isinstance(scenario.initial, FromArrays):
        raise InputError(f"{where('ensemble.vary')}the bodies were given as arrays, so nothing varies; remove it")
    if scenario.events:
        raise InputError(f"{where('events', 'ensemble')}the systems of an ensemble have no events; remove 'events'")
    if others := [name for name in scenario.record.observables or () if name not in OF_TANGENTS]:
        raise InputError(
            f"{where('record.observables', 'ensemble')}an ensemble records energy, time, steps, status and closest "
            f"approach of each system, and {' and '.join(OF_TANGENTS)}; remove {', '.join(others)}"
        )
    if scheme.facts.adaptive and not isinstance(schedule, TimeSchedule):
        raise InputError(
            f"{where('integrator.steps', 'integrator.scheme', 'ensemble')}each system makes its own steps; write "
            "'end: TIME' instead of 'steps'"
        )
