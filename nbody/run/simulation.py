"""The simulation: a run with its engine, scheme, state and recording. Its loop is :mod:`nbody.run.loop`."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nbody import machine
from nbody.diagnostics.energy import Energies
from nbody.diagnostics.observables import columns_of
from nbody.errors import InputError, counted
from nbody.forces.engine import devices_of
from nbody.given import shown
from nbody.initial import files_read
from nbody.integrators.integrator import Motion
from nbody.parallel import team
from nbody.particles import Particles
from nbody.run.calls import Callback, Calls, calls_of
from nbody.run.dense import bodies_at
from nbody.run.guards import doubts
from nbody.run.loop import Loop, Pace, ProgressEvent
from nbody.run.notebook import default_notify
from nbody.run.output import Output, Start
from nbody.run.plan import Notify, plan
from nbody.run.progress import Progress, Summary
from nbody.run.ranks import require_same_machines, require_same_run, shared_plan, undivided
from nbody.run.recording import RecordedElsewhere, Recording
from nbody.run.schedule import FRAMES, Schedule, StepSchedule, TimeSchedule, steps_given, time_given, whole_steps
from nbody.run.step_call import StepCall
from nbody.run.summary import summary_of
from nbody.scenario import FromArrays, Scenario
from nbody.state import frames_per_block
from nbody.trajectory.events import event_table, no_events
from nbody.trajectory.opening import one_line

if TYPE_CHECKING:
    from nbody.run.colliding import Colliding

STEPS_PER_CALL = 10_000
"""The most steps of :attr:`Simulation.step` between two moments at which Ctrl-C is heard."""

OWN = "integrator."
"""The prefix of the integrator's arrays in a checkpoint."""


class Simulation:
    """A run: the particles on the engine's device, and the loop that moves them. ::

        simulation = Simulation(Scenario.load("plummer"), output="run.h5")
        simulation = Simulation(particles, dt=0.01, softening=0.05, output="run.h5")

    :meth:`run` and :meth:`integrate` may be called again and again; the frames of all calls go to the same file.

    Under ``mpirun`` or ``srun`` all processes make one simulation together, and call the same methods in the same order;
    rank 0 records it (nbody/parallel/README.md).

    Args:
        scenario: what to simulate; or the path of a scenario file, or the name of one that comes with nbody; or the
            particles, whose number of steps and time are kept.
        output: the trajectory to write; None writes no file.
        overwrite: replace an existing output instead of keeping it under a numbered name.
        notify: gets one line about each automatic choice (``auto``'s engine, a new name of an older file) and each possible
            problem. By default the lines are printed in a notebook, and are dropped elsewhere.
        particles: the bodies to start from, instead of the scenario's; or how many it has.
        start: where to continue, if the output is a recording to be resumed; see :func:`nbody.run.resume.resume`.
        repeats: the ``particles`` are the scenario's own, from a recording of it that is to be repeated.
        values: values that replace those of the scenario: ``seed``, ``dt``, ``steps`` or ``end``, ``G``, ``softening``
            (``0.01``, ``"plummer:0.01"``), ``integrator``, ``engine``, ``precision``, ``every`` …
            (:mod:`nbody.scenario.options`).

    Attributes:
        plan: engine, integrator, schedule and sizes.
        bodies: the particles at the beginning.
        engine, integrator, state, motion: what computes the forces, makes the steps, and is moved.
        colliding: the collisions; None if the scenario does not look for them.
        recording: what goes to the file.
        begun: True once the scheme has prepared its first step; ``resumed``: it had done so in an earlier process.
        within_a_step: True if a second Ctrl-C has ended a step between two pieces of a force.
        team: the ranks that make this simulation.

    Raises:
        InputError: the scenario names something that does not exist, or needs more memory or disk space than is free.
        DeviceError: the scenario names a GPU engine, and there is no GPU.
    """

    loop: ClassVar[type[Loop]] = Loop
    """What makes the steps of a call."""

    def __init__(
        self,
        scenario: Scenario | Particles | str | Path,
        output: str | Path | None = None,
        overwrite: bool = False,
        notify: Notify | None = None,
        particles: Particles | int | None = None,
        start: Start | None = None,
        repeats: bool = False,
        **values: Any,
    ) -> None:
        if not isinstance(particles, Particles):
            particles, values = None, {"particles": particles, **values}
        self.team = team()
        notify = (notify or default_notify()) if self.team.first else _drop
        _require_function("Simulation: notify", notify)
        with self.team.agreed():
            scenario = _described(scenario)
            self._open_ended = isinstance(scenario, Particles) and values.keys().isdisjoint(("steps", "end"))
            if isinstance(scenario, Particles):
                particles = scenario.check("particles: ")
                _check_given(particles, values)
                scenario = _scenario_of(particles.count, particles.dimensions, values)
            else:
                if particles is not None:
                    _check_given(particles.check(), values)
                scenario = scenario.with_keywords(values)
                if particles is not None and start is None and not repeats:
                    scenario = scenario.with_arrays(particles.count)
            self.scenario, self.notify = scenario, notify
            self._prepare(particles, None if output is None else (output, overwrite), start)
        self.begun = self.within_a_step = self._running = False
        self._summary: Summary | None = None

    def _prepare(
        self, particles: Particles | None, output: tuple[str | Path, bool] | None, start: Start | None
    ) -> None:
        """Make the plan, the engine, the state and the recording."""
        scenario, notify, first = self.scenario, self.notify, self.team.first
        require_same_run(self.team, scenario, particles)
        inputs = files_read(scenario)
        file = Output(*output, notify, start, inputs) if output is not None and first else None
        self.plan = shared_plan(self.team, lambda: plan(scenario, particles, notify))
        self.scenario = scenario = self.plan.scenario
        if self.plan.engine_reason:
            notify(f"engine: {self.plan.engine_name} ({self.plan.engine_reason})")
        self.integrator = self.plan.integrator
        self.engine, self.bodies = self.plan.build()
        for line in doubts(scenario, self.plan.engine_kind, self.integrator, self.bodies):
            notify(f"warning: {line}")
        fields = self.plan.fields
        if fields is not None and fields.functions and start is None:  # a resumed run has said so
            notify(
                "energies include the external fields: the orbit of the whole system in them too, so T/|W| need not be 1/2 "
                "in equilibrium"
            )
        self._load(start)
        self.recording = Recording(self, file) if first else RecordedElsewhere(self, self.resumed)
        require_same_machines(self.team, self.engine, self.scope)
        if line := undivided(self.team, self.engine, self.state):
            notify(line)

    def _load(self, start: Start | None) -> None:
        """Bring the bodies to the engine, at the beginning or where a recording goes on."""
        scenario = self.scenario
        self.colliding: Colliding | None = None
        if scenario.collisions is not None:
            from nbody.run import colliding  # imports Numba

            self.colliding = colliding.Colliding(self.plan, self.bodies, self.notify)
            self.bodies = self.colliding.bodies
            if start is not None:
                with one_line(start.path):
                    self.colliding.restore(start.checkpoint)
        self.state = self.engine.load(self.bodies if self.colliding is None else self.colliding.now.starting())
        if self.colliding is not None and self.colliding.now.merged:
            self.state.frames.slots = self.colliding.now.rows
        self._set_moment(self.bodies.step, self.bodies.time)
        columns = columns_of(scenario.record.observables or ())
        if scenario.fields:
            columns -= {"potential"}  # it would be that of the fields too
        self.state.frames.request(columns, self.bodies)
        self.motion = Motion(self.engine, self.state)
        self.integrator.prepare(self.motion, self.colliding is not None)
        self.frames_per_block = frames_per_block(self.state.count, self.state.dtype.name)
        self.resumed = start is not None
        if start is not None:
            self._restore(start)

    def __repr__(self) -> str:
        bodies, scheme = counted(self.state.count, "body", "bodies"), self.scenario.integrator.scheme
        return (
            f"<Simulation '{self.scenario.name}': {bodies}, {scheme}, engine {self.engine_name}, "
            f"{self.scenario.precision}, step {self.steps_made}, t = {self.time:.6g}>"
        )

    @property
    def engine_name(self) -> str:
        """The name of the engine; ``auto`` is replaced by its choice."""
        return self.plan.engine_name

    @property
    def measures_forces(self) -> bool:
        """True if the file says how accurate the forces are: of a tree, and of direct sums if an accuracy was asked for."""
        asked = "accuracy" in self.scenario.engine.options and not self.scenario.gravity.per_species
        return self.engine.can.is_tree or (asked and not self.integrator.facts.own_forces)

    @property
    def steps_made(self) -> int:
        """The number of steps made so far."""
        return self.state.clock.step

    @property
    def time(self) -> float:
        """The time of the state."""
        return self.state.clock.time

    @property
    def output(self) -> str | Path | None:
        """The file that is recorded; None if there is none."""
        return self.recording.path

    @property
    def frames(self) -> int:
        """The number of frames in the file."""
        return self.recording.frames

    @property
    def energies(self) -> Energies:
        """The energies of the frames. If nothing is recorded, those of the beginning and of this moment; RunFailed is raised
        if a number in the state is not finite."""
        found = self.recording.energies
        if self.recording.looks or math.isnan(found.initial):
            return found
        return found.after(self.recording.energy_now())

    @property
    def particles(self) -> Particles:
        """The particles at this moment, as copies on the host in float64. Before the first step they have the digits that
        were given, whatever the precision of the run."""
        bodies, own = self.bodies, self.state.dtype
        position, velocity = self.state.values("position", "velocity")
        if self.colliding is not None and self.steps_made != bodies.step:
            return self.colliding.now.particles(
                position.astype(np.float64), velocity.astype(np.float64), self.time, self.steps_made
            )
        if self.steps_made == bodies.step:
            pairs = (bodies.position, position), (bodies.velocity, velocity)
            position, velocity = (
                given.copy() if np.array_equal(given.astype(own), now.astype(own)) else now for given, now in pairs
            )
        mass, ids, species = bodies.mass.copy(), bodies.id.copy(), bodies.species.copy()
        return replace(
            bodies,
            mass=mass,
            position=position,
            velocity=velocity,
            id=ids,
            species=species,
            time=self.time,
            step=self.steps_made,
        )

    def at(self, time: float) -> Particles:
        """The particles at a time within the last step, or later; the run stays as it is.

        A copy of the run makes the whole steps before ``time``, without looking for collisions. Within a step ``ias15``
        evaluates its polynomial, to rounding; other schemes make a shorter one, whose error is of order p + 1 in its length
        for a scheme of order p. A scheme of fixed steps makes it back from the end of the last step; ``leapfrog_adaptive``
        and block schemes show no time before the present one.

        Raises:
            InputError: ``time`` is before the beginning of the last step, or the simulation is running.
        """
        self._require_ready()
        return bodies_at(self, time_given("at: ", time, self.scenario))

    @property
    def events(self) -> Any:
        """The collisions since this simulation was made, as :attr:`nbody.Trajectory.events`."""
        return event_table(no_events() if self.colliding is None else self.colliding.rows).shown()

    @property
    def summary(self) -> Summary | None:
        """The summary of the last run; None before its end."""
        return self._summary

    @property
    def arrays(self) -> dict[str, Any]:
        """``position`` and ``velocity``, (N, D) each, in the engine's memory and precision, without a copy.

        On a CPU they are NumPy arrays, which ``torch.from_dlpack`` or ``jax.dlpack`` take too; on a GPU they have
        ``__cuda_array_interface__``: ``cupy.asarray(sim.arrays["position"])``, ``torch.as_tensor(…, device="cuda")``. They
        change with the next step. To change them yourself, call ``sim.state.invalidate()`` afterwards; not with a scheme
        that keeps other coordinates or derivatives (hermite4, ias15, block schemes, wisdom_holman, hybrid): it does not see
        the change.
        """
        return dict(zip(("position", "velocity"), self.state.values("position", "velocity", copy=False), strict=True))

    @property
    def step(self) -> StepCall:
        """Make steps: ``simulation.step()`` makes one, ``simulation.step(100)`` a hundred.

        The bits are those of :meth:`run`. There is no progress and no summary, and numbers that are no longer finite are
        reported by the next :meth:`run`; so a step of a few bodies takes microseconds. With an output, collisions, several
        ranks or an energy limit it is :meth:`run`.
        """
        return StepCall(self._make_steps)

    def _make_steps(self, n: int) -> None:
        n = n if type(n) is int and 0 <= n <= STEPS_PER_CALL else steps_given("step: ", n)
        if self.recording.looks:
            self.run(steps=n)
            return
        self._require_ready()
        if not self.begun:
            self.run(steps=0)  # measures the energy at the beginning
        self.within_a_step = True
        with np.errstate(all="ignore"):
            for made in range(0, n, STEPS_PER_CALL):
                self.integrator.advance(self.motion, min(STEPS_PER_CALL, n - made))
        self.within_a_step = False

    def record(self, output: str | Path | None, overwrite: bool = False) -> None:
        """Record the next runs in a new file, whose first frame is the present moment; None records nothing. An earlier
        file is finished.

        Raises:
            InputError: the path can't be written, or the simulation is running.
        """
        self._check_idle()
        if output is None:
            self.recording.stop()
            return
        with self.team.agreed():
            self.recording.redirect(
                Output(output, overwrite, self.notify, None, files_read(self.scenario)) if self.team.first else None
            )
        if self.steps_made == self.bodies.step or isinstance(self.scenario.initial, FromArrays):
            return
        if self.colliding is not None:
            self.bodies = self.particles
            self.colliding = type(self.colliding)(self.plan, self.bodies, lambda line: None)
        self.scenario = self.scenario.with_arrays(self.state.count)
        self.plan = replace(self.plan, scenario=self.scenario)

    def run(
        self,
        steps: int | None = None,
        progress: Callable[[Progress], None] = lambda now: None,
        *,
        callback: Callback | None = None,
        every: int | None = None,
        interval: float | None = None,
    ) -> Summary:
        """Run to the scenario's end, or make ``steps`` steps. Records the first frame, those of the schedule, and the last.

        A later call goes on from there and appends its frames to the file: several calls give the same file as one. (The
        last frame of a call that is not on the schedule is dropped by the next.) The file is complete after every call; if
        it has no room for the frames of the next call, a larger copy with more room replaces it.

        ``callback(particles)`` is called after every ``every``-th step, or after every ``interval`` of time; if it returns
        False, the run ends. For each call the particles are copied to the host.

        SIGINT or SIGTERM ends the run after the current step and records a frame of it. A second signal ends it at once,
        between two pieces of a force evaluation (see :meth:`~nbody.state.ForceProgress.report`), and keeps the frames
        already in the file. A third one does not wait for a slow disk.

        Raises:
            InputError: nothing says how far to run; or the file can't be appended to.
            RunFailed: a number in the state is not finite, or the file can't be written; the frames before are kept.
        """
        calls = calls_of(callback, every, interval, self.scenario, self.integrator, self.state.clock)
        return self._run_all(self.progress_events(steps, progress, calls=calls), progress)

    def integrate(
        self,
        until: float,
        progress: Callable[[Progress], None] = lambda now: None,
        *,
        callback: Callback | None = None,
        every: int | None = None,
        interval: float | None = None,
    ) -> Summary:
        """Run to the time ``until``, as :meth:`run` does. With a fixed time step it must be a whole number of steps away."""
        calls = calls_of(callback, every, interval, self.scenario, self.integrator, self.state.clock)
        if until is None:
            raise InputError("integrate: until when? say integrate(until=10.0), or run(steps=100)")
        return self._run_all(self.progress_events(None, progress, until=until, calls=calls), progress)

    def _run_all(self, events: Iterator[ProgressEvent], progress: Callable[[Progress], None]) -> Summary:
        for event in events:
            progress(event.progress)
        assert self._summary is not None
        return self._summary

    def progress_events(
        self,
        steps: int | None = None,
        progress: Callable[[Progress], None] = lambda now: None,
        until: float | None = None,
        calls: Calls | None = None,
        pace: Pace | None = None,
    ) -> Iterator[ProgressEvent]:
        """Run as :meth:`run` does (to the time ``until``, if it is given), and yield several times per second between two
        steps, for a viewer or a notebook. It may be iterated over in any thread; only the main thread handles signals.

        To stop the run, stop iterating; it then records a frame of the current step. ``progress`` is called during long
        steps. A ``pace`` decides when the next steps are made, and stops the run in place of Ctrl-C.
        """
        self._require_ready()
        _require_function("run: progress", progress)
        if pace is not None and self.team.size > 1:
            raise InputError("a window shows runs of one process; leave --view out, or start the run alone")
        schedule, first, single = (
            self._schedule(steps, until),
            self.steps_made,
            self.integrator.report(self.motion).body_steps,
        )
        facts = self.integrator.facts
        if not (self.recording.looks or (facts.adaptive and facts.lengths == "individual")):  # blocks end at frames
            schedule = schedule.ends_alone(self.time)
        loop = self.loop(self, schedule, calls, pace)
        with self.team.agreed():
            self.recording.go_on(schedule)
        if self.colliding is not None:
            self.colliding.stopped = False
        left, self._running = False, True
        try:
            for event in loop.progress_events(progress):
                if not left:
                    try:
                        yield event
                    except GeneratorExit:  # the caller has stopped iterating
                        left = True
                        loop.stop.request()
        except KeyboardInterrupt:
            self._report_interrupt()
            raise
        finally:
            self.state.progress.watch = None
            self._running = False
        self.recording.finish()
        interrupted = loop.stop.requested and not schedule.ended(self.steps_made, self.time)
        self._summary = self.team.broadcast(summary_of(self, loop.clock, self.steps_made - first, single, interrupted))
        if not interrupted and (line := self.integrator.report(self.motion).message):
            self.notify(line)
        if loop.clock.is_steady and self.team.first and not (loop.stop.requested or self.integrator.facts.own_forces):
            self.plan.remember_rate(self._summary)

    def _require_ready(self) -> None:
        """Raise an InputError if no steps can be made now; on a GPU let this thread use it."""
        self._check_idle()
        if self.within_a_step:
            made = self.steps_made
            raise InputError(f"run: the state is between steps {made} and {made + 1}; make a new simulation")
        if self.engine.can.device == "gpu":
            from nbody import compute

            compute.use_device(devices_of(self.engine)[0])  # in this thread

    def _check_idle(self) -> None:
        if self._running:
            raise InputError("this simulation is running; end that run first (stop iterating over its events)")

    def _schedule(self, steps: int | None, until: float | None) -> Schedule:
        """The plan's schedule, or that of the next ``steps`` steps, or that until a time."""
        schedule = self.plan.schedule
        every = schedule.every if isinstance(schedule, StepSchedule) else 1
        if steps is not None:
            return StepSchedule(every, self.steps_made + steps_given("run: steps: ", steps))
        if until is None:
            if self._open_ended:
                raise InputError("run: how far? say run(steps=100), or integrate(until=10.0)")
            return schedule
        until = time_given("integrate: until: ", until, self.scenario)
        if until < self.time:
            raise InputError(f"integrate: until must be a time from {self.time:g} on, the present one; got {until!r}")
        if not self.integrator.facts.adaptive:
            last = self.steps_made + whole_steps("integrate: until: ", until - self.time, self.integrator.dt, self.time)
            return StepSchedule(every, last)
        if isinstance(schedule, TimeSchedule):
            return replace(schedule, end=until)
        if not self.resumed and "every" in dict(self.scenario.source.values.get("record") or {}):
            raise InputError(
                "integrate: how many steps this scheme makes until a time is not known, so 'every' can't be used; give "
                "record={'dt': TIME} instead"
            )
        interval = self.scenario.record.dt or (until - self.time) / FRAMES
        return TimeSchedule(interval or 1.0, until, self.time)

    # --- What goes to the file ---

    def checkpoint_arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a checkpoint: the state's columns, and the arrays of the integrator and of collisions; all are
        copies, since the next steps are made while they are written."""
        own = {OWN + name: array for name, array in self.integrator.arrays().items()}
        own |= self.colliding.arrays() if self.colliding else {}
        return self.state.arrays() | {name: array.copy() for name, array in own.items()}

    def _set_moment(self, step: int, time: float) -> None:
        """Let the bodies be at a step and a time. The time of step 0 is such that ``time`` is that of ``step``."""
        self.state.clock.step, self.state.clock.time = step, time
        self.state.clock.origin = time if self.integrator.facts.adaptive else time - step * self.integrator.dt

    def _restore(self, start: Start) -> None:
        arrays = dict(start.checkpoint.state)
        with one_line(start.path):
            start.checkpoint.check(self.checkpoint_arrays())
            self.state.restore(arrays)
            self.integrator.restore({name.removeprefix(OWN): a for name, a in arrays.items() if name.startswith(OWN)})
        self.state.clock.step, self.state.clock.time = start.step, start.time  # the origin is that of the first frame

    def scope(self) -> dict[str, str]:
        """What the bits of the result depend on: a resumed run may give other bits if one of these differs."""
        packages, found = machine.package_versions(), self.engine.identity()
        return {
            "engine": self.engine_name,
            "precision": self.scenario.precision,
            "device": found.device,
            "driver": found.driver,
            "simd": machine.simd_level(),
            "version": machine.version(),
            **{name: packages[name] for name in ("numpy", "numba", "numba-cuda")},
            **found.bits,
        }

    def _report_interrupt(self) -> None:
        """Report the interrupt and, if there is a checkpoint, how to continue."""
        if self.recording.can_go_on:
            self.notify(f"interrupted at step {self.steps_made}; continue with: nbody resume {self.output}")
        elif self.output is not None:
            self.notify(f"interrupted at step {self.steps_made}, before the first checkpoint")


def _drop(line: str) -> None:
    """The messages of a rank other than 0."""


def _require_function(where: str, given: object) -> None:
    if not callable(given):
        raise InputError(f"{where} must be a function, got {shown(given)}")


def _described(scenario: Any) -> Scenario | Particles:
    """The scenario or the particles that the user gave; a text or a path is loaded."""
    if isinstance(scenario, str | Path):
        return Scenario.load(scenario)
    if not isinstance(scenario, Scenario | Particles):
        raise InputError(
            f"Simulation: needs a scenario, its name or path, or particles, as in nbody.Particles(m, x, v); got a "
            f"{type(scenario).__name__}"
        )
    return scenario


def _check_given(particles: Particles, values: dict[str, Any]) -> None:
    """Raise an InputError if values say how particles are made that are given."""
    if made := next((name for name in ("particles", "seed") if values.get(name) is not None), None):
        raise InputError(f"{made}: the {particles.count} particles are given; leave it out")


def _scenario_of(count: int, dimensions: int, values: dict[str, Any]) -> Scenario:
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
