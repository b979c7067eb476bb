"""The simulation: makes the steps of a run and records its frames."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nbody import machine
from nbody.diagnostics.energy import Energies
from nbody.errors import InputError
from nbody.integrators.integrator import FixedStep, Motion
from nbody.particles import Particles
from nbody.run.guards import doubts
from nbody.run.plan import Notify, plan
from nbody.run.progress import Clock, Progress, Summary
from nbody.run.recorder import Moment, Recorder
from nbody.run.schedule import Schedule, StepSchedule
from nbody.run.signals import StopRequest, stop_on_signals
from nbody.run.watch import Watch
from nbody.scenario import Scenario
from nbody.state import State, Want, frames_per_block
from nbody.trajectory import Checkpoint, TrajectoryWriter, check_output, state_bytes
from nbody.trajectory.output_path import RECORDING, RESUMED
from nbody.trajectory.provenance import collect_provenance

MOST_STEPS = 256
"""The maximum number of steps in one block of frames. (Python needs about 0.1 ms for each when a GPU records them.)"""

OWN = "integrator."
"""The prefix of the integrator's arrays in a checkpoint."""


@dataclass(frozen=True)
class Start:
    """The start of a resumed run.

    Attributes:
        step, time: those of the checkpoint.
        checkpoint: the stored state.
        frames: the number of frames of the file that are kept.
        energies: the energies of the first and the last of these frames.
    """

    step: int
    time: float
    checkpoint: Checkpoint
    frames: int
    energies: Energies


class Beat(NamedTuple):
    """The run between two steps, as :meth:`Simulation.beats` yields it several times per second."""

    state: State
    progress: Progress
    energies: Energies


class Simulation:
    """A run of a scenario: the particles on the engine's device, and the loop that moves them.

    Args:
        scenario: what to simulate.
        output: the trajectory to write; None writes no file.
        overwrite: replace an existing output instead of keeping it under a numbered name.
        notify: gets one line about each automatic choice (``auto``'s engine, a new name of an older file) and each possible
            problem.
        particles: the bodies to start from, instead of the scenario's.
        start: where to continue, if the output is a recording to be resumed; see :func:`nbody.run.resume.resume`.

    Raises:
        InputError: the scenario names something that does not exist, or needs more memory or disk space than is free.
        DeviceError: the scenario names a GPU engine, and there is no GPU.
    """

    def __init__(
        self,
        scenario: Scenario,
        output: str | Path | None = None,
        overwrite: bool = False,
        notify: Notify = lambda line: None,
        particles: Particles | None = None,
        start: Start | None = None,
    ) -> None:
        self.scenario, self.output, self.overwrite, self.notify = scenario, output, overwrite, notify
        self._start = start
        if output is not None:
            check_output(output, RECORDING if start is None else RESUMED)
        self.plan = plan(scenario, particles, notify)
        if self.plan.engine_reason:
            notify(f"engine: {self.plan.engine_name} ({self.plan.engine_reason})")
        self.integrator = self.plan.integrator
        self.engine, self.particles = self.plan.build()
        for line in doubts(scenario, self.plan.engine_kind, self.integrator, self.particles):
            notify(f"warning: {line}")
        self.state = self.engine.load(self.particles)
        self._motion = Motion(self.engine, self.state)
        self.integrator.prepare(self._motion)
        self.frames_per_block = frames_per_block(self.state.count, self.state.dtype.name)
        self.frames = 0
        """The number of frames in the file."""
        self.energies = Energies()
        """The energies of the first and the latest frame."""
        if start is not None:
            self._restore(start)
        self._schedule_in_use = self.plan.schedule
        self._checkpointed = time.perf_counter()
        self._recorded = self._begun = False
        self._within_a_step = False
        self._recorder: Recorder | None = None
        self._summary: Summary | None = None

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

    def run(self, steps: int | None = None, progress: Callable[[Progress], None] = lambda now: None) -> Summary:
        """Run to the scenario's end, or make ``steps`` steps. Records the first frame, those of the schedule, and the last.

        SIGINT or SIGTERM ends the run after the current step and records a frame of it. A second signal ends it at once,
        between two pieces of a force evaluation (see :meth:`nbody.state.State.report`), and keeps the frames already in
        the file. A third one does not wait for a slow disk.

        Raises:
            RunFailed: a number in the state is not finite, or the file can't be written; the frames before are kept.
        """
        for beat in self.beats(steps, progress):
            progress(beat.progress)
        assert self._summary is not None
        return self._summary

    def beats(
        self, steps: int | None = None, progress: Callable[[Progress], None] = lambda now: None
    ) -> Iterator[Beat]:
        """Run as :meth:`run` does, and yield several times per second between two steps, for a viewer or a notebook.

        To stop the run, stop iterating; it then records a frame of the current step. ``progress`` is called during long
        steps.
        """
        if steps is not None and steps < 0:
            raise InputError(f"run: steps must be zero or more, got {steps}")
        if self._recorded:
            raise InputError(
                f"{self.output}: this simulation has been recorded; to continue, use nbody.run.resume.resume"
            )
        if self._within_a_step:
            raise InputError(f"run: the state is between steps {self.step} and {self.step + 1}; make a new simulation")
        schedule, clock, first = self._schedule(steps), Clock(), self.step
        self._schedule_in_use, left, single = schedule, False, self.integrator.single
        try:
            with stop_on_signals() as stop, self._make_recorder(schedule) as recorder:

                def show(doing: str = "", fraction: float = 0.0) -> None:
                    progress(self._progress(clock, recorder, schedule, doing, fraction))

                self._watch = Watch(self.integrator, self._motion, stop, show, self.notify)
                for beat in self._run(schedule, recorder, clock, stop):
                    if not left:
                        try:
                            yield beat
                        except GeneratorExit:  # the caller has stopped iterating
                            left = stop.requested = True
        except KeyboardInterrupt:
            self._report_interrupt()
            raise
        finally:
            self.state.watch = None
        self.frames, self.energies = recorder.frames, recorder.energies
        interrupted = stop.requested and not schedule.ended(self.step, self.time)
        self._summary = self._summarize(clock, self.step - first, single, interrupted)
        if clock.settled and not stop.requested and not self.integrator.own_forces:
            self.plan.remember_rate(self._summary.interactions_per_s)

    def _run(self, schedule: Schedule, recorder: Recorder, clock: Clock, stop: StopRequest) -> Iterator[Beat]:
        """The loop, from the first frame until the file is closed."""
        first = self.step
        if self._start is None and not self._begun:
            with np.errstate(all="ignore"):  # the first frame reports what is not finite
                self.integrator.start(self._motion)
            self._record(recorder)
            self._checkpoint(recorder)
        self._begun = True
        queued = 0
        while not schedule.ended(self.step, self.time) and not stop.requested:
            at_most = clock.steps_in_a_beat()
            self._within_a_step = True  # stays True if a second Ctrl-C ends the step between two pieces of a force
            queued += self._advance(recorder, schedule, at_most)
            self._within_a_step = False
            if queued >= at_most or clock.due():
                clock.look(self.step - first, self.state, soon=queued > 1)
                queued = 0
                yield self._beat(clock, recorder, schedule)
                self._checkpoint_if_due(recorder)
        clock.look(self.step - first, self.state)  # before closing the file, whose time is not part of a step
        if not schedule.due(self.step, self.time):  # interrupted between frames
            self._record(recorder)
        if self.step > first:
            self._checkpoint(recorder)
        recorder.close(complete=schedule.ended(self.step, self.time))
        yield self._beat(clock, recorder, schedule)

    def _schedule(self, steps: int | None) -> Schedule:
        """The plan's schedule, or that of the next ``steps`` steps."""
        schedule = self.plan.schedule
        if steps is None:
            return schedule
        every = schedule.every if isinstance(schedule, StepSchedule) else 1
        return StepSchedule(every, self.step + steps)

    @np.errstate(all="ignore")  # numbers that go wrong stop the run at its next frame
    def _advance(self, recorder: Recorder, schedule: Schedule, at_most: int) -> int:
        """Make up to ``at_most`` steps: a whole block of frames, or the steps before the next frame, or the step to it.

        Returns the number of steps."""
        begun, integrator = self.step, self.integrator
        between, until = schedule.next(self.step, self.time)
        if not isinstance(integrator, FixedStep) or not isinstance(schedule, StepSchedule):
            between = min(between, at_most)
            self._watch.step(begun + 1, False, min(between, 1))
            integrator.advance(self._motion, between, until)
            if schedule.due(self.step, self.time):
                self._record(recorder)
            return self.step - begun
        frames, every, per_block = 1, 1, self.frames_per_block
        if schedule.regular_after(begun) >= per_block and per_block * schedule.every <= min(at_most, MOST_STEPS):
            frames, every = per_block, schedule.every
        elif between := min(between - 1, at_most):
            self._watch.step(begun + between, False, between)
            integrator.advance(self._motion, between)
            return between
        self._watch.step(begun + frames * every, True, frames * every)
        snapshots = integrator.frames(self._motion, frames, every)
        moments = zip(range(begun + every, self.step + 1, every), snapshots, strict=True)
        recorder.record_many([Moment(k, integrator.time_at(self.state, k), one) for k, one in moments])
        return self.step - begun

    # --- What goes to the file ---

    def _make_recorder(self, schedule: Schedule) -> Recorder:
        writer = None if self.output is None else self._writer(schedule)
        limit = self.scenario.on_energy_error
        try:
            self._recorder = Recorder(writer, limit, self.notify, self.energies, self.frames, self.frames_per_block)
            self._recorder.gravity = self.scenario.gravity
        except BaseException:  # close the file, which is locked and has its full size
            if writer is not None:
                writer.close(complete=False)
            raise
        self._recorded = writer is not None
        return self._recorder

    @np.errstate(all="ignore")
    def _record(self, recorder: Recorder) -> None:
        if Want.ENERGY not in self.state.current:
            self._watch.frame(self.step)
        self._motion.evaluate(Want.ENERGY)
        recorder.record(self.step, self.time, self.state.snapshot())

    def _checkpoint(self, recorder: Recorder) -> None:
        if self.output is not None:
            recorder.checkpoint(self._arrays(), self._meta())
            self._checkpointed = time.perf_counter()

    def _checkpoint_if_due(self, recorder: Recorder) -> None:
        if time.perf_counter() - self._checkpointed > 60 * self.scenario.checkpoint.minutes:
            self._checkpoint(recorder)

    def _arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a checkpoint: the state's columns and the integrator's arrays."""
        return self.state.arrays() | {OWN + name: array for name, array in self.integrator.arrays().items()}

    def _restore(self, start: Start) -> None:
        arrays = dict(start.checkpoint.state)
        self.state.restore(arrays)
        self.integrator.restore({name.removeprefix(OWN): a for name, a in arrays.items() if name.startswith(OWN)})
        self.state.step, self.state.time = start.step, start.time
        self.frames, self.energies = start.frames, start.energies

    def _meta(self) -> dict[str, Any]:
        """The other contents of a checkpoint: the position in the run, and what its bits depend on."""
        regular = self._schedule_in_use.regular(self.step, self.time)
        return {
            "step": self.step, "time": self.time, "regular": regular, "engine": self.engine_name, "scope": self.scope(),
        }  # fmt: skip

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

    def _writer(self, schedule: Schedule) -> TrajectoryWriter:
        """Open the file, with space for every frame of the schedule."""
        assert self.output is not None
        seed = getattr(self.scenario.initial, "seed", "none: the bodies come from a file")
        header = self.plan.header(**collect_provenance(**self.scope() | {"seed": seed}))
        if isinstance(schedule, StepSchedule):
            integrator = {key: value for key, value in header.resolved["integrator"].items() if key != "end"}
            used = {"integrator": integrator | {"steps": schedule.last}, "record": {"every": schedule.every}}
            header = replace(header, resolved={**header.resolved, **used})
        frames = schedule.count_after(self.step, self.time)
        if self._start is not None:
            return TrajectoryWriter.reopen(
                self.output, self._start.checkpoint, frames=self.frames + frames, keep=self.frames,
                resolved=header.resolved, notify=self.notify,
            )  # fmt: skip
        header = replace(header, frames=1 + frames, state_bytes=state_bytes(self._arrays(), self._meta()))
        return TrajectoryWriter(self.output, self.particles, header, overwrite=self.overwrite, notify=self.notify)

    # --- What goes to the user ---

    def _beat(self, clock: Clock, recorder: Recorder, schedule: Schedule) -> Beat:
        return Beat(self.state, self._progress(clock, recorder, schedule, "", 0.0), recorder.energies)

    def _progress(self, clock: Clock, recorder: Recorder, schedule: Schedule, doing: str, fraction: float) -> Progress:
        return Progress(
            step=self.step,
            steps=schedule.last if isinstance(schedule, StepSchedule) else None,
            time=self.time,
            steps_per_s=clock.steps_per_s,
            interactions_per_s=clock.steps_per_s * self.integrator.pairs_per_step(self._motion),
            energy_error=recorder.energies.error,
            fraction_done=schedule.fraction(self.step, self.time),
            doing=doing,
            fraction=fraction,
        )

    def _report_interrupt(self) -> None:
        """Report the interrupt and, if there is a checkpoint, how to continue."""
        if self._start is not None or (self._recorder is not None and self._recorder.has_checkpoint):
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
            device=self.engine.device_name(),
            precision=self.scenario.precision,
            integrator=self.scenario.integrator.scheme,
            particles=self.state.count,
            steps=done,
            step=self.step,
            time=self.time,
            wall_s=clock.seconds(),
            steps_per_s=clock.steps_per_s,
            interactions_per_s=clock.steps_per_s * self.integrator.pairs_per_step(self._motion),
            energy_initial=self.energies.initial,
            energy_final=self.energies.latest,
            energy_error=self.energies.error,
            frames=self.frames,
            interrupted=interrupted,
            blocks=done if individual else None,
            body_steps=(self.integrator.single or 0) - (single or 0) if individual else None,
        )
