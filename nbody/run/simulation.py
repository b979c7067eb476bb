"""The simulation: makes the steps of a run and records its frames."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from nbody import machine
from nbody.diagnostics.energy import Energies
from nbody.diagnostics.observables import columns_of
from nbody.errors import InputError
from nbody.integrators.integrator import FixedStep, Motion
from nbody.parallel import team
from nbody.particles import Particles
from nbody.run.calls import Callback, Calls, calls_of
from nbody.run.gpus import naming_failed
from nbody.run.guards import doubts
from nbody.run.notebook import default_notify
from nbody.run.output import Output, Start
from nbody.run.plan import Notify, plan
from nbody.run.progress import Clock, Progress, Summary
from nbody.run.ranks import raise_on_all, require_same_machines, require_same_run, require_same_state, shared_plan
from nbody.run.recording import RecordedElsewhere, Recording
from nbody.run.schedule import FRAMES, Schedule, StepSchedule, TimeSchedule, whole_steps
from nbody.run.signals import StopRequest, stop_on_signals
from nbody.run.watch import Watch
from nbody.scenario import FromArrays, Scenario
from nbody.state import State, frames_per_block
from nbody.trajectory.events import no_events, table_of_events

if TYPE_CHECKING:
    from nbody.run.colliding import Colliding

MOST_STEPS = 256
"""The maximum number of steps in one block of frames. (Python needs about 0.1 ms for each when a GPU records them.)"""

OWN = "integrator."
"""The prefix of the integrator's arrays in a checkpoint."""


class Beat(NamedTuple):
    """The run between two steps, as :meth:`Simulation.beats` yields it several times per second."""

    state: State
    progress: Progress
    energies: Energies


class Pace(Protocol):
    """Decides when a run makes its next steps: while a window shows it, or a user has paused it."""

    def stopping(self) -> AbstractContextManager[StopRequest]:
        """A context with the request that stops the run."""

    def steps(self) -> int:
        """Return when the next steps may be made, and how many at most before the next beat. Called between two steps."""


def _paced(pace: Pace, clock: Clock) -> int:
    began = time.perf_counter()
    try:
        return pace.steps()
    finally:
        clock.exclude(time.perf_counter() - began)


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
        particles: the bodies to start from, instead of the scenario's.
        start: where to continue, if the output is a recording to be resumed; see :func:`nbody.run.resume.resume`.
        repeats: the ``particles`` are the scenario's own, from a recording of it that is to be repeated.
        values: values that replace those of the scenario: ``dt``, ``steps`` or ``end``, ``G``, ``softening`` (``0.01``,
            ``"plummer:0.01"``), ``integrator``, ``engine``, ``precision``, ``every`` … (:mod:`nbody.scenario.keywords`).

    Attributes:
        plan: engine, integrator, schedule and sizes.
        bodies: the particles at the beginning.
        engine, integrator, state, motion: what computes the forces, makes the steps, and is moved.
        colliding: the collisions; None if the scenario does not look for them.
        recording: what goes to the file.
        team: the ranks that make this simulation.

    Raises:
        InputError: the scenario names something that does not exist, or needs more memory or disk space than is free.
        DeviceError: the scenario names a GPU engine, and there is no GPU.
    """

    def __init__(
        self,
        scenario: Scenario | Particles | str | Path,
        output: str | Path | None = None,
        overwrite: bool = False,
        notify: Notify | None = None,
        particles: Particles | None = None,
        start: Start | None = None,
        repeats: bool = False,
        **values: Any,
    ) -> None:
        self.team = team()
        notify = (notify or default_notify()) if self.team.first else _say_nothing
        with self.team.agreed():
            scenario = _described(scenario)
            self._open_ended = isinstance(scenario, Particles) and values.keys().isdisjoint(("steps", "end"))
            if isinstance(scenario, Particles):
                particles = scenario.check("particles: ")
                scenario = _scenario_of(particles, values)
            elif values:
                scenario = scenario.with_keywords(values)
            if particles is not None and start is None and not repeats:
                scenario = scenario.with_arrays(particles.count)
            self.scenario, self.notify = scenario, notify
            self._prepare(particles, None if output is None else (output, overwrite), start)
        self._begun = self._running = self._within_a_step = False
        self._calls: Calls | None = None
        self._summary: Summary | None = None

    def _prepare(
        self, particles: Particles | None, output: tuple[str | Path, bool] | None, start: Start | None
    ) -> None:
        """Make the plan, the engine, the state and the recording."""
        scenario, notify, first = self.scenario, self.notify, self.team.first
        require_same_run(self.team, scenario, particles)
        file = Output(*output, notify, start) if output is not None and first else None
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
        self.recording = Recording(self, file) if first else RecordedElsewhere(self, self._resumed)
        require_same_machines(self.team, self.engine, self.scope())

    def _load(self, start: Start | None) -> None:
        """Bring the bodies to the engine, at the beginning or where a recording goes on."""
        scenario = self.scenario
        self.colliding: Colliding | None = None
        if scenario.collisions is not None:
            from nbody.run import colliding  # imports Numba

            self.colliding = colliding.Colliding(self.plan, self.bodies, self.notify)
            self.bodies = self.colliding.bodies
            if start is not None:
                self.colliding.restore(start.checkpoint)
        self.state = self.engine.load(self.bodies if self.colliding is None else self.colliding.now.starting())
        if self.colliding is not None and self.colliding.now.merged:
            self.state.slots = self.colliding.now.rows
        self._set_moment(self.bodies.step, self.bodies.time)
        columns = columns_of(scenario.record.observables or ())
        if scenario.fields:
            columns -= {"potential"}  # it would be that of the fields too
        self.state.send_with_frames(columns, self.bodies)
        self.motion = Motion(self.engine, self.state)
        if self.colliding is not None:
            self.integrator.expect_contacts()
        self.integrator.prepare(self.motion)
        self.frames_per_block = frames_per_block(self.state.count, self.state.dtype.name)
        self._resumed = start is not None
        if start is not None:
            self._restore(start)

    def __repr__(self) -> str:
        count, scheme = self.state.count, self.scenario.integrator.scheme
        return (
            f"<Simulation '{self.scenario.name}': {count} bodies, {scheme}, engine {self.engine_name}, "
            f"{self.scenario.precision}, step {self.step}, t = {self.time:.6g}>"
        )

    @property
    def engine_name(self) -> str:
        """The name of the engine; ``auto`` is replaced by its choice."""
        return self.plan.engine_name

    @property
    def step(self) -> int:
        """The number of steps made so far."""
        return self.state.step

    @property
    def time(self) -> float:
        """The time of the state."""
        return self.state.time

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
        """The energies of the frames."""
        return self.recording.energies

    @property
    def particles(self) -> Particles:
        """The particles at this moment, as copies on the host in float64. Before the first step they have the digits that
        were given, whatever the precision of the run."""
        bodies, own = self.bodies, self.state.dtype
        position, velocity = self.state.phase_space()
        if self.colliding is not None and self.step != bodies.step:
            return self.colliding.now.particles(
                position.astype(np.float64), velocity.astype(np.float64), self.time, self.step
            )
        if self.step == bodies.step:
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
            step=self.step,
        )

    @property
    def events(self) -> Any:
        """The collisions since this simulation was made, as :attr:`nbody.Trajectory.events`."""
        return table_of_events(no_events() if self.colliding is None else self.colliding.rows)

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
        that keeps other coordinates or derivatives (hermite4, block schemes, wisdom_holman, hybrid): it does not see the
        change.
        """
        return dict(zip(("position", "velocity"), self.state.views(), strict=True))

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
            self.recording.redirect(Output(output, overwrite, self.notify) if self.team.first else None)
        if self.step == self.bodies.step or isinstance(self.scenario.initial, FromArrays):
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
        between two pieces of a force evaluation (see :meth:`nbody.state.State.report`), and keeps the frames already in
        the file. A third one does not wait for a slow disk.

        Raises:
            InputError: nothing says how far to run; or the file can't be appended to.
            RunFailed: a number in the state is not finite, or the file can't be written; the frames before are kept.
        """
        calls = calls_of(callback, every, interval, self.integrator, self.state)
        return self._run_all(self.beats(steps, progress, calls=calls), progress)

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
        calls = calls_of(callback, every, interval, self.integrator, self.state)
        return self._run_all(self.beats(None, progress, until=until, calls=calls), progress)

    def _run_all(self, beats: Iterator[Beat], progress: Callable[[Progress], None]) -> Summary:
        for beat in beats:
            progress(beat.progress)
        assert self._summary is not None
        return self._summary

    def beats(
        self,
        steps: int | None = None,
        progress: Callable[[Progress], None] = lambda now: None,
        until: float | None = None,
        calls: Calls | None = None,
        pace: Pace | None = None,
    ) -> Iterator[Beat]:
        """Run as :meth:`run` does (to the time ``until``, if it is given), and yield several times per second between two
        steps, for a viewer or a notebook. It may be iterated over in any thread; only the main thread handles signals.

        To stop the run, stop iterating; it then records a frame of the current step. ``progress`` is called during long
        steps. A ``pace`` decides when the next steps are made, and stops the run in place of Ctrl-C.
        """
        self._check_idle()
        if pace is not None and self.team.size > 1:
            raise InputError("a window shows runs of one process; leave --view out, or start the run alone")
        if steps is not None and steps < 0:
            raise InputError(f"run: steps must be zero or more, got {steps}")
        if self._within_a_step:
            raise InputError(f"run: the state is between steps {self.step} and {self.step + 1}; make a new simulation")
        if self.engine.device == "gpu":
            from nbody import gpu

            gpu.use_device(getattr(self.engine, "devices", (0,))[0])  # in this thread
        schedule, clock, first = self._schedule(steps, until), Clock(), self.step
        with self.team.agreed():
            self.recording.go_on(schedule)
        left, single = False, self.integrator.single
        self._running, self._calls = True, calls
        if self.colliding is not None:
            self.colliding.stopped = False
        try:
            with (
                pace.stopping() if pace else stop_on_signals(self.team.size > 1) as stop,
                naming_failed(getattr(self.engine, "devices", ()), self.output),
                self._open_recording(),
            ):

                def show(doing: str = "", fraction: float = 0.0) -> None:
                    progress(self._progress(clock, schedule, doing, fraction))

                self._watch = Watch(self.integrator, self.motion, stop, show, self.notify)
                for beat in self._run(schedule, clock, stop, pace):
                    if not left:
                        try:
                            yield beat
                        except GeneratorExit:  # the caller has stopped iterating
                            left = True
                            stop.request()
        except KeyboardInterrupt:
            self._report_interrupt()
            raise
        finally:
            self.state.watch = None
            self._running = False
        self.recording.settle()
        interrupted = stop.requested and not schedule.ended(self.step, self.time)
        self._summary = self.team.broadcast(self._summarize(clock, self.step - first, single, interrupted))
        if line := self.integrator.remark():
            self.notify(line)
        if clock.settled and self.team.first and not stop.requested and not self.integrator.own_forces:
            self.plan.remember_rate(self._summary)

    def _check_idle(self) -> None:
        if self._running:
            raise InputError("this simulation is running; end that run first (stop iterating over its beats)")

    def _run(self, schedule: Schedule, clock: Clock, stop: StopRequest, pace: Pace | None) -> Iterator[Beat]:
        """The loop, from the first frame until the file is closed."""
        first = self.step
        self.team.working = True
        if not self._resumed and not self._begun:
            with np.errstate(all="ignore"):  # the first frame reports what is not finite
                self.integrator.start(self.motion)
        self._begun = True
        if not self.recording.begun:
            self._record()
            self._checkpoint()
        queued = at_most = 0
        failure: BaseException | None = None
        while not self._ended(schedule) and not stop.requested:
            if not queued:
                at_most = self._steps_in_a_beat(clock, stop, pace)
                if stop.requested:
                    break
            self._within_a_step = True  # stays True if a second Ctrl-C ends the step between two pieces of a force
            queued += self._advance(schedule, at_most - queued if pace else at_most)
            self._within_a_step = False
            if self._calls and self._calls.due(self.state):
                try:
                    wanted = self._calls.function(self.particles) is not False
                except Exception as error:  # the file is finished in good order first
                    failure, wanted = error, False
                if not wanted:
                    stop.request()
                at_most = min(at_most, queued)  # all ranks hear of it before the next step
            if queued >= at_most or (self.team.size == 1 and clock.due()):
                clock.look(self.step - first, self.state, soon=queued > 1)
                queued = 0
                yield self._beat(clock, schedule)
                if self.team.broadcast(self.recording.checkpoint_due()):
                    self._checkpoint()
        clock.look(self.step - first, self.state)  # before closing the file, whose time is not part of a step
        if not schedule.due(self.step, self.time):  # interrupted between frames
            self._record()
        if self.step > first:
            self._checkpoint()
        self.team.working = False
        with self.team.agreed():
            self.recording.close(complete=self._ended(schedule))
            if failure is not None:
                raise failure
        yield self._beat(clock, schedule)

    def _steps_in_a_beat(self, clock: Clock, stop: StopRequest, pace: Pace | None) -> int:
        """The number of steps until the next beat. Several ranks take that of rank 0, and stop if one of them is to stop.

        Raises the error of the recording, which rank 0 alone has.
        """
        at_most = clock.steps_in_a_beat()
        if pace is not None:
            return min(at_most, _paced(pace, clock))
        if self.team.size == 1:
            return at_most
        said = self.team.all((at_most, stop.heard, self.recording.error))
        stop.requested |= any(heard for _, heard, _ in said)
        at_most, _, error = said[0]
        if error is not None:
            raise_on_all(self.team, error)
        return at_most

    def _checkpoint(self) -> None:
        if self.team.size > 1:
            require_same_state(self.team, self.step, self.checkpoint_arrays())
        self.recording.checkpoint()

    def _open_recording(self) -> AbstractContextManager:
        if self.engine.approximate and not self._resumed and not self._begun:
            self.team.working = True
            with np.errstate(all="ignore"):
                self.motion.evaluate()  # the file says how accurate the forces are; a run without a file has the same bits
            self.team.working = False
        with self.team.agreed():
            return self.recording.open()

    def _ended(self, schedule: Schedule) -> bool:
        """True if the run has reached its end, or two bodies have touched and the scenario says ``stop``."""
        touched = self.colliding is not None and self.colliding.stopped
        return touched or schedule.ended(self.step, self.time)

    def _schedule(self, steps: int | None, until: float | None) -> Schedule:
        """The plan's schedule, or that of the next ``steps`` steps, or that until a time."""
        schedule = self.plan.schedule
        every = schedule.every if isinstance(schedule, StepSchedule) else 1
        if steps is not None:
            return StepSchedule(every, self.step + steps)
        if until is None:
            if self._open_ended:
                raise InputError("run: how far? say run(steps=100), or integrate(until=10.0)")
            return schedule
        if not (math.isfinite(until) and until >= self.time):
            raise InputError(f"integrate: until must be a time from {self.time:g} on, the present one; got {until!r}")
        if not self.integrator.adaptive:
            last = self.step + whole_steps("integrate: until: ", until - self.time, self.integrator.dt)
            return StepSchedule(every, last)
        if isinstance(schedule, TimeSchedule):
            return replace(schedule, end=until)
        if not self._resumed and "every" in dict(self.scenario.source.values.get("record") or {}):
            raise InputError(
                "integrate: how many steps this scheme makes until a time is not known, so 'every' can't be used; give "
                "record={'dt': TIME} instead"
            )
        interval = self.scenario.record.dt or (until - self.time) / FRAMES
        return TimeSchedule(interval or 1.0, until, self.time)

    @np.errstate(all="ignore")  # numbers that go wrong stop the run at its next frame
    def _advance(self, schedule: Schedule, at_most: int) -> int:
        """Make up to ``at_most`` steps: a whole block of frames, or the steps before the next frame, or the step to it; and
        none beyond the next call.

        Returns the number of steps."""
        begun, integrator = self.step, self.integrator
        between, until = schedule.next(self.step, self.time)
        if self._calls:
            steps, until = self._calls.next(self.state, until)
            at_most = min(at_most, steps)
        if self.colliding is not None or not (isinstance(integrator, FixedStep) and isinstance(schedule, StepSchedule)):
            between = min(between, at_most)
            self._watch.step(begun + 1, False, min(between, 1))
            if self.colliding is None:
                integrator.advance(self.motion, between, until)
            else:
                self._advance_colliding(self.colliding, between, until)
            if schedule.due(self.step, self.time):
                self._record()
            return self.step - begun
        frames, every, per_block = 1, 1, self.frames_per_block
        if schedule.regular_after(begun) >= per_block and per_block * schedule.every <= min(at_most, MOST_STEPS):
            frames, every = per_block, schedule.every
        elif between := min(between - 1, at_most):
            self._watch.step(begun + between, False, between)
            integrator.advance(self.motion, between)
            return between
        self._watch.step(begun + frames * every, True, frames * every)
        snapshots = integrator.frames(self.motion, frames, every)
        numbers = range(begun + every, self.step + 1, every)
        times = (integrator.time_at(self.state, k) for k in numbers)
        self.recording.snapshots(zip(numbers, times, snapshots, strict=True))
        return self.step - begun

    def _advance_colliding(self, colliding: "Colliding", steps: int, until: float) -> None:
        """Make up to ``steps`` steps; after one in which bodies touch, no more."""
        span = self.integrator.advance_to_contact(self.motion, steps, until, colliding.now)
        if span is None:
            return
        motion = colliding.resolve(span, self.motion, self.integrator, self.recording)
        if motion is not None:
            self.motion, self.state = motion, motion.state
            self._watch.follow(motion)

    # --- What goes to the file ---

    def _record(self) -> None:
        with np.errstate(all="ignore"):
            if self.state.frame_want not in self.state.current:
                self._watch.frame(self.step)
            self.motion.evaluate(self.state.frame_want)
            self.recording.frame()

    def checkpoint_arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a checkpoint: the state's columns and the integrator's arrays."""
        own = {OWN + name: array for name, array in self.integrator.arrays().items()}
        return self.state.arrays() | own | (self.colliding.arrays() if self.colliding else {})

    def _set_moment(self, step: int, time: float) -> None:
        """Let the bodies be at a step and a time. The time of step 0 is such that ``time`` is that of ``step``."""
        self.state.step, self.state.time = step, time
        self.state.origin = time if self.integrator.adaptive else time - step * self.integrator.dt

    def _restore(self, start: Start) -> None:
        arrays = dict(start.checkpoint.state)
        self.state.restore(arrays)
        self.integrator.restore({name.removeprefix(OWN): a for name, a in arrays.items() if name.startswith(OWN)})
        self.state.step, self.state.time = start.step, start.time  # the origin is that of the first frame

    def scope(self) -> dict[str, str]:
        """What the bits of the result depend on: a resumed run may give other bits if one of these differs."""
        packages = machine.package_versions()
        return {
            "engine": self.engine_name,
            "precision": self.scenario.precision,
            "device": self.engine.device_name(),
            "driver": self.engine.driver(),
            "simd": machine.simd_level(),
            "version": machine.version(),
            **{name: packages[name] for name in ("numpy", "numba", "numba-cuda")},
            **self.engine.scope(),
        }

    # --- What goes to the user ---

    def _beat(self, clock: Clock, schedule: Schedule) -> Beat:
        return Beat(self.state, self._progress(clock, schedule, "", 0.0), self.energies)

    def _progress(self, clock: Clock, schedule: Schedule, doing: str, fraction: float) -> Progress:
        return Progress(
            step=self.step,
            steps=schedule.last if isinstance(schedule, StepSchedule) else None,
            time=self.time,
            steps_per_s=clock.steps_per_s,
            interactions_per_s=clock.steps_per_s * self.integrator.pairs_per_step(self.motion),
            bodies_per_s=self._bodies_per_s(clock),
            energy_error=self.energies.error,
            fraction_done=schedule.fraction(self.step, self.time),
            doing=doing,
            fraction=fraction,
            observed=self.recording.observed,
            units=self.scenario.units,
        )

    def _bodies_per_s(self, clock: Clock) -> float | None:
        """The bodies whose forces a tree computes per second; None with direct sums."""
        return clock.steps_per_s * self.integrator.bodies_per_step(self.motion) if self.engine.approximate else None

    def _report_interrupt(self) -> None:
        """Report the interrupt and, if there is a checkpoint, how to continue."""
        if self.recording.can_go_on:
            self.notify(f"interrupted at step {self.step}; continue with: nbody resume {self.output}")
        elif self.output is not None:
            self.notify(f"interrupted at step {self.step}, before the first checkpoint")

    def _summarize(self, clock: Clock, done: int, single: int | None, interrupted: bool) -> Summary:
        """``done``: steps of this call; ``single``: steps of single bodies before it."""
        individual = self.integrator.single is not None
        return Summary(
            name=self.scenario.name,
            output=None if self.output is None else str(self.output),
            engine=self.engine_name,
            device=self.engine.devices_name(self.state),
            precision=self.scenario.precision,
            integrator=self.scenario.integrator.scheme,
            particles=self.bodies.count,
            steps=done,
            step=self.step,
            time=self.time,
            wall_s=clock.seconds(),
            steps_per_s=clock.steps_per_s,
            interactions_per_s=clock.steps_per_s * self.integrator.pairs_per_step(self.motion),
            bodies_per_s=self._bodies_per_s(clock),
            energy_initial=self.energies.initial,
            energy_final=self.energies.latest + (self.colliding.now.energy if self.colliding else 0.0),
            energy_error=self.energies.error,
            frames=self.frames,
            interrupted=interrupted,
            energy_error_largest=self.energies.largest_error,
            blocks=done if individual else None,
            body_steps=(self.integrator.single or 0) - (single or 0) if individual else None,
            time_unit=self.scenario.units.time if self.scenario.units else "",
            **(self.colliding.summary() if self.colliding else {}),
        )


def _say_nothing(line: str) -> None:
    """The messages of a rank other than 0."""


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


def _scenario_of(particles: Particles, values: dict[str, Any]) -> Scenario:
    """The scenario of particles and keyword arguments."""
    base = {
        "initial": {"source": "arrays", "particles": particles.count},
        "gravity": {"dimensions": particles.dimensions},
        "integrator": {"steps": 0},
    }
    return Scenario.from_dict(base).with_keywords(values)
