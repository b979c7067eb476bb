"""A run: step, diagnose, record."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nbody import machine
from nbody.errors import InputError
from nbody.initial import resolved_initial
from nbody.integrators.scheme import advance_many, advance_to_frames
from nbody.particles import Particles
from nbody.run.diagnostics import Energies
from nbody.run.plan import prepare
from nbody.run.progress import Clock, Progress, Summary
from nbody.run.recorder import Moment, Recorder
from nbody.run.schedule import Schedule
from nbody.run.signals import StopRequest, stop_on_signals
from nbody.run.watch import Watch
from nbody.scenario import Scenario
from nbody.state import Potential, frames_at_a_time
from nbody.trajectory import Checkpoint, RunHeader, TrajectoryWriter, check_output, state_bytes
from nbody.trajectory.provenance import collect_provenance

Notify = Callable[[str], None]

MOST_STEPS = 256
"""Steps of which a block of frames is made in one go. (Python takes some 0.1 ms for each when a GPU records them.)"""


class Simulation:
    """A scenario made real: its particles on the engine's device, and the loop that moves them.

    Args:
        scenario: what to simulate.
        output: the trajectory to write; None keeps nothing.
        overwrite: replace an existing output instead of keeping it under a numbered name.
        notify: gets one line about a choice made for the user (``auto``'s engine, a file kept under another name), or
            about something that looks wrong.
        particles: the bodies to start from, instead of those that the scenario says.

    Raises:
        InputError: the scenario names something that does not exist, or needs more memory or disk than there is.
        DeviceError: a GPU engine was named, and there is no GPU.
    """

    def __init__(
        self,
        scenario: Scenario,
        output: str | Path | None = None,
        overwrite: bool = False,
        notify: Notify = lambda line: None,
        particles: Particles | None = None,
    ) -> None:
        self.scenario, self.output, self.overwrite, self.notify = scenario, output, overwrite, notify
        if output is not None:
            check_output(output)
        self.scheme, self.engine_name, self.engine, self.particles = prepare(scenario, particles, notify)
        self.state = self.engine.load(self.particles)
        self.at_a_time = frames_at_a_time(self.state.count, self.state.dtype.name)
        self.step = 0
        self.continued: Checkpoint | None = None
        """The checkpoint this run goes on from; see :func:`nbody.run.resume.resume`."""
        self.kept = 0
        """How many frames are in the file already."""
        self.energies = Energies()
        """Those of the first and the latest frame."""
        self._checkpointed = time.perf_counter()
        self._recorded = False
        self._begun = False
        self._within_a_step = False
        self._recorder: Recorder | None = None

    def run(self, steps: int | None = None, progress: Callable[[Progress], None] = lambda now: None) -> Summary:
        """Make the scenario's steps (or so many), recording frame 0, every ``record.every``-th step and the last.

        SIGINT or SIGTERM ends the run after the current step, with a frame of it; a second one at once, with the
        frames that are in the file; a third one while the disk is slow, without waiting for it. "At once" is between
        two pieces of a force evaluation, see :meth:`nbody.state.State.report`.

        Raises:
            RunFailed: a number in the state is no longer finite, or the file can't be written; the frames before
                are kept.
        """
        first = self.step
        if steps is not None and steps < 0:
            raise InputError(f"run: steps must be zero or more, got {steps}")
        if self._recorded:
            raise InputError(f"{self.output}: this simulation has been recorded; to go on, use nbody.run.resume.resume")
        if self._within_a_step:
            raise InputError(f"run: the state is between steps {self.step} and {self.step + 1}; make a new simulation")
        schedule = Schedule(self.scenario.record.every, first + steps if steps is not None else self._planned_end())
        clock = Clock()
        try:
            # What overflows is told by the recorder, in one line with the particle, and not by NumPy.
            quiet = np.errstate(over="ignore", invalid="ignore")
            with quiet, stop_on_signals() as stop, self._make_recorder(schedule) as recorder:

                def show(doing: str = "", fraction: float = 0.0) -> None:
                    progress(self._progress(clock, recorder, schedule, doing, fraction))

                self._watch = Watch(self.engine, self.scheme, self.state, stop, show, self.notify)
                self._run(schedule, recorder, clock, stop, show)
        except KeyboardInterrupt:
            self._tell_of_interrupt()
            raise
        finally:
            self.state.watch = None
        self.kept, self.energies = recorder.frames, recorder.energies
        return self._summary(clock, recorder, self.step - first, stop.requested and self.step < schedule.last)

    def _tell_of_interrupt(self) -> None:
        """Say how to go on, if that is possible."""
        if self.continued is not None or (self._recorder is not None and self._recorder.has_checkpoint):
            self.notify(f"interrupted at step {self.step}; go on with: nbody resume {self.output}")
        elif self.output is not None:
            self.notify(f"interrupted at step {self.step}, before there was anything to go on from")

    def _run(
        self,
        schedule: Schedule,
        recorder: Recorder,
        clock: Clock,
        stop: StopRequest,
        show: Callable[[], None],
    ) -> None:
        """The loop, from the first frame to the file's end."""
        first = self.step
        if self.continued is None and not self._begun:
            self._record(recorder)
            self._checkpoint(recorder)
        self._begun = True
        queued = 0
        while self.step < schedule.last and not stop.requested:
            at_most = clock.steps_in_a_beat()
            self._within_a_step = True  # until it ends: a second Ctrl-C ends it between two pieces of a force
            queued += self._advance(recorder, schedule, at_most)
            self._within_a_step = False
            if queued >= at_most or clock.due():
                clock.look(self.step - first, self.state, soon=queued > 1)
                queued = 0
                show()
                self._checkpoint_now_and_then(recorder)
        clock.look(self.step - first, self.state)  # before the disk's last confirmation, which is no step's
        if not schedule.due(self.step):  # interrupted between frames
            self._record(recorder)
        if self.step > first:
            self._checkpoint(recorder)
        recorder.close(complete=self.step == schedule.last)
        show()

    def _planned_end(self) -> int:
        return max(self.step, self.scenario.integrator.steps)

    def _advance(self, recorder: Recorder, schedule: Schedule, at_most: int) -> int:
        """At most so many steps: with the frames of a whole block; or to the step before the next frame; or, from
        there, the step to the frame. Returns the number of steps."""
        dt, begun, frames, every = self.scenario.integrator.dt, self.step, 1, 1
        in_a_block = self.at_a_time * schedule.every
        if schedule.regular_after(begun) >= self.at_a_time and in_a_block <= min(at_most, MOST_STEPS):
            frames, every = self.at_a_time, schedule.every
        elif between := min(schedule.next(begun) - 1 - begun, at_most):
            self._watch.step(begun + between, False, between)
            advance_many(self.scheme, self.engine, self.state, dt, between)
            self.step += between
            return between
        self._watch.step(begun + frames * every, True, frames * every)
        snapshots = advance_to_frames(self.scheme, self.engine, self.state, dt, frames, every)
        self.step += frames * every
        numbers = range(begun + every, self.step + 1, every)
        recorder.record_many([Moment(k, self._time(k), one) for k, one in zip(numbers, snapshots, strict=True)])
        return self.step - begun

    @property
    def time(self) -> float:
        """The moment of the state."""
        return self._time(self.step)

    def _time(self, step: int) -> float:
        """The moment of a step: the start's, plus steps times dt (summing dt would drift)."""
        return self.particles.time + step * self.scenario.integrator.dt

    # --- What goes to the file ---

    def _make_recorder(self, schedule: Schedule) -> Recorder:
        writer = None if self.output is None else self._writer(schedule)
        limit = self.scenario.on_energy_error
        try:
            self._recorder = Recorder(writer, limit, self.notify, self.energies, self.kept, self.at_a_time)
        except BaseException:  # else the file stays locked, with all its room
            if writer is not None:
                writer.close(complete=False)
            raise
        self._recorded = writer is not None
        return self._recorder

    def _record(self, recorder: Recorder) -> None:
        if not self.state.has_potential:
            self._watch.frame(self.step)
        self.engine.evaluate(self.state, Potential.ENERGY)
        recorder.record(self.step, self.time, self.state.snapshot())

    def _checkpoint(self, recorder: Recorder) -> None:
        if self.output is not None:
            recorder.checkpoint(self.state.arrays(), self._meta())
            self._checkpointed = time.perf_counter()

    def _checkpoint_now_and_then(self, recorder: Recorder) -> None:
        if time.perf_counter() - self._checkpointed > 60 * self.scenario.checkpoint.minutes:
            self._checkpoint(recorder)

    def _meta(self) -> dict[str, Any]:
        """What a checkpoint says beside the state: where the run is, and what its bits rest on."""
        every = self.scenario.record.every
        return {"step": self.step, "every": every, "engine": self.engine_name, "scope": self.scope()}

    def scope(self) -> dict[str, str]:
        """What the promise of the same bits rests on: a run that goes on where one of these differs may differ."""
        packages = machine.package_versions()
        return {
            "engine": self.engine_name,
            "precision": self.scenario.precision,
            "device": self.engine.device_name(),
            "driver": self.engine.driver(),
            "simd": machine.simd_level(),
            "version": machine.version(),
            **{name: packages[name] for name in ("numpy", "numba", "numba-cuda")},
        }

    def _writer(self, schedule: Schedule) -> TrajectoryWriter:
        """The file, with room for every frame of the schedule."""
        assert self.output is not None
        resolved = self.scenario.resolved() | {"initial": resolved_initial(self.scenario), "engine": self.engine_name}
        resolved["integrator"]["steps"] = schedule.last
        if self.continued is not None:
            frames = self.kept + schedule.count_after(self.step)
            return TrajectoryWriter.reopen(
                self.output, self.continued, frames=frames, keep=self.kept, resolved=resolved, notify=self.notify
            )
        header = RunHeader(
            frames=1 + schedule.count_after(self.step),
            dtype=str(self.state.dtype),
            scenario_text=self.scenario.text,
            resolved=resolved,
            provenance=collect_provenance(
                **self.scope() | {"seed": getattr(self.scenario.initial, "seed", "none: the bodies come from a file")}
            ),
            state_bytes=state_bytes(self.state.arrays(), self._meta()),
        )
        return TrajectoryWriter(self.output, self.particles, header, overwrite=self.overwrite, notify=self.notify)

    # --- What goes to the user ---

    def _progress(self, clock: Clock, recorder: Recorder, schedule: Schedule, doing: str, fraction: float) -> Progress:
        rate = clock.steps_per_s
        interactions = rate * self.state.count**2
        return Progress(self.step, schedule.last, rate, interactions, recorder.energies.error, doing, fraction)

    def _summary(self, clock: Clock, recorder: Recorder, done: int, interrupted: bool) -> Summary:
        rate, energies = clock.steps_per_s, recorder.energies
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
            steps_per_s=rate,
            interactions_per_s=rate * self.state.count**2,
            energy_initial=energies.initial,
            energy_final=energies.latest,
            energy_error=energies.error,
            frames=recorder.frames,
            interrupted=interrupted,
        )
