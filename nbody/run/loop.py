"""The loop of a run: it asks each observer for its next look, lets the stepper get there, and lets the observer look."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple, Protocol

from nbody.diagnostics.energy import Energies
from nbody.forces.engine import compile_kernels, devices_of
from nbody.integrators.facts import SchemeReport
from nbody.run.gpus import naming_failed
from nbody.run.observers import Callback, Observer
from nbody.run.progress import Progress, Summary, WallClock
from nbody.run.ranks import Decision, agreed, require_same_state
from nbody.run.recording import Recording
from nbody.run.schedule import StepSchedule
from nbody.run.signals import StopRequest, stop_on_signals
from nbody.run.stepper import Stepper
from nbody.run.watch import Watch
from nbody.state import Outputs, State

MANY, MEASURING = 10, 0.1
"""Steps between two progress events from which on a run that records nothing measures its energy at each event."""


class ProgressEvent(NamedTuple):
    """The run between two steps, as :meth:`Simulation.progress_events` yields it several times per second."""

    state: State
    energies: Energies
    loop: "Loop"

    @property
    def progress(self) -> Progress:
        """The progress now, computed when it is asked for."""
        return self.loop.progress(self.energies)


class Pace(Protocol):
    """Decides when a run makes its next steps: while a window shows it, or a user has paused it."""

    def stopping(self) -> AbstractContextManager[StopRequest]:
        """A context with the request that stops the run."""

    def steps(self) -> int:
        """Return when the next steps may be made, and how many at most before the next event. Called between two steps."""


class Loop:
    """The steps of one call.

    Args:
        stepper: what moves the bodies.
        recording: what looks at the frames of its schedule, which says where the call ends.
        before: what else looks, before the recording.
        after: what looks after it.
        callback: the user's, which looks last; None if there is none.
        pace: decides when steps are made, and stops the run in place of Ctrl-C; None makes them as fast as possible.

    Attributes:
        summary: that of a call that was not broken off by an error; None before its end.
        signalled: True if a signal has asked one of the ranks to stop, at the end of the run too.
    """

    signalled = False

    def __init__(
        self,
        stepper: Stepper,
        recording: Recording,
        before: Sequence[Observer],
        after: Sequence[Observer],
        callback: Callback | None,
        pace: Pace | None,
    ) -> None:
        self._setup, self._stepper, self._recording, self._pace = stepper.setup, stepper, recording, pace
        after = [*after, *([] if callback is None else [callback])]
        self._others, self._all, self._team = [*before, *after], [*before, recording, *after], stepper.setup.team
        self._halted, self._energies, self._energy_at = False, recording.measured.energies, 0.0
        self._clock, self._stop = WallClock(alone=self._team.size == 1), StopRequest()
        self._first, self._single = (stepper.clock.step, stepper.clock.time), self._report.body_steps or 0
        self.summary: Summary | None = None

    def progress_events(self, show: Callable[[Progress], None] | None) -> Iterator[ProgressEvent]:
        """Make the steps, and yield several times per second between two. ``show`` is called during long steps. If the
        caller stops iterating, the call ends as after Ctrl-C."""
        left, recording = False, self._recording
        try:
            for event in self._events(show):
                if not left:
                    try:
                        yield event
                    except GeneratorExit:
                        left = True
                        self._stop.request()
        except KeyboardInterrupt:
            if recording.path is not None:
                self._setup.notify(self.where_interrupted())
            raise
        finally:
            self._stepper.state.progress.watch = None
        self._finish()

    def where_interrupted(self) -> str:
        """The line about a run that a signal has ended: its step, and how to go on from its file."""
        how, path = "", self._recording.path
        if path is not None:
            can_go_on = self._recording.can_go_on
            how = f"; continue with: nbody resume {path}" if can_go_on else ", before the first checkpoint"
        return f"interrupted at step {self._stepper.clock.step}{how}"

    def _finish(self) -> None:
        """Make the summary, and tell the other ranks and the user how the call has ended."""
        setup, stepper = self._setup, self._stepper
        measured = self._recording.measured
        measured.frames, measured.energies = self._team.broadcast((measured.frames, measured.energies))
        self.signalled = any(self._team.allgather(bool(self._stop.signal_name)))
        interrupted = self._stop.requested and not self._recording.schedule.ended(stepper.moment)
        self.summary = found = self._team.broadcast(self._summary(interrupted))
        if not interrupted and (line := stepper.integrator.report(stepper.motion).message):
            setup.notify(line)
        steady = self._clock.is_steady and not (self._stop.requested or stepper.integrator.facts.own_forces)
        if steady and self._team.first:
            setup.plan.remember_rate(found.steps_per_s, found.interactions_per_s)

    def _events(self, show: Callable[[Progress], None] | None) -> Iterator[ProgressEvent]:
        with (
            self._pace.stopping() if self._pace else stop_on_signals(self._team.size > 1) as self._stop,
            naming_failed(devices_of(self._setup.engine), self._recording),
        ):

            def show_step(doing: str, fraction: float) -> None:
                if show is not None:
                    show(self.progress(doing=doing, fraction=fraction))

            self._watch = Watch(self._stepper, self._stop, show_step, self._setup.notify)
            self._team.in_collective = True
            self._compile()
            self._stepper.begin()
            self._team.in_collective = False
            with self._team.agreed():
                opened = self._recording.open(self._watch)
            with opened:
                yield from self._steps()

    def _compile(self) -> None:
        """Compile the kernels of the engine, for steps and frames, before the first step."""
        setup, state = self._setup, self._stepper.state
        if not setup.integrator.facts.own_forces:
            others = [state.moves.rehearse]
            if setup.measures_forces:
                from nbody.run.force_error import rehearse

                others.append(partial(rehearse, setup.engine, state.dimensions))
            compile_kernels(setup.engine, state, [Outputs.ACCELERATION, state.frames.outputs], *others)

    def _steps(self) -> Iterator[ProgressEvent]:
        clock, stop, queued, at_most = self._clock, self._stop, 0, 0
        self._team.in_collective = True
        if not self._recording.measured.frames:
            self._recording.record()
            self._checkpoint()
        while not self._ended and not stop.requested:
            if not queued:
                at_most = self._decide()
                if stop.requested:
                    break
            queued += self._advance(at_most - queued if self._pace else at_most)
            if self._halted:  # by a callback, on all ranks after the same step
                stop.request()
                at_most = queued
            if queued >= at_most or clock.due():
                clock.look(self._made, self._stepper.state, soon=queued > 1)
                queued = 0
                yield self._event()
        self._end()
        yield self._event()

    def _advance(self, at_most: int) -> int:
        """Make at most so many steps, until an observer looks, and let it look. Returns their number."""
        stepper, recording = self._stepper, self._recording
        begun = stepper.clock.step
        between, until = recording.next(math.inf)
        for observer in self._others:
            steps, until = observer.next(until)
            at_most = min(at_most, steps)
        count, every = recording.at_once(at_most)
        if count:
            self._watch.step(begun + count * every, True, count * every)
            recording.take(stepper.frames(count, every))
        else:
            steps = min(between, at_most)
            known = steps if stepper.packs_frames else min(steps, 1)
            self._watch.step(begun + known, False, known)
            stepper.advance(steps, until)
        looked = [observer.look() for observer in self._all]  # all of them, whatever one says
        self._halted = not all(looked)
        return stepper.clock.step - begun

    def _decide(self) -> int:
        """Store a checkpoint if it is time. Returns the most steps until the next progress event."""
        clock, recording = self._clock, self._recording
        own = Decision(clock.steps_per_heartbeat(), recording.checkpoint_due, self._stop.heard, recording.error)
        shared = agreed(self._team, own)
        self._stop.requested |= shared.stop
        if shared.checkpoint and not shared.stop:
            self._checkpoint()
        if self._pace is None:
            return shared.steps
        began = time.perf_counter()
        try:
            return min(shared.steps, self._pace.steps())
        finally:
            clock.exclude(time.perf_counter() - began)

    def _event(self) -> ProgressEvent:
        # An energy that nobody records takes little time of a fast run, and at most a tenth of that of one that is shown.
        fast, now = self._clock.steps_per_heartbeat() >= MANY, time.perf_counter()
        if self._recording.looks or fast or (self._pace and now >= self._energy_at):
            self._energies = self._recording.energies_now
            self._energy_at = now + (time.perf_counter() - now) / MEASURING
        return ProgressEvent(self._stepper.state, self._energies, self)

    def _end(self) -> None:
        """Record the last moment, and close the file. Raises the error of a user's function."""
        stepper, recording = self._stepper, self._recording
        self._clock.look(self._made, stepper.state)  # before closing the file, whose time is not part of a step
        if not recording.schedule.due(stepper.moment):  # interrupted between frames
            recording.record()
        if (stepper.clock.step, stepper.clock.time) != self._first:  # a call may end within the step that it begins in
            self._checkpoint()
        self._team.in_collective = False
        with self._team.agreed():
            recording.close(complete=self._ended)
            for failure in (each.failure for each in self._others if each.failure is not None):
                raise failure

    # --- What the call tells of itself ---

    @property
    def _report(self) -> SchemeReport:
        return self._stepper.integrator.report(self._stepper.motion)

    def progress(self, energies: Energies | None = None, doing: str = "", fraction: float = 0.0) -> Progress:
        """The progress at this moment; ``doing`` and ``fraction`` describe a long step."""
        clock, schedule = self._stepper.clock, self._recording.schedule
        rate, pairs, bodies = self._rates(self._report)
        return Progress(
            step=clock.step, steps=schedule.last if isinstance(schedule, StepSchedule) else None, time=clock.time,
            energy_error=(energies or self._recording.measured.energies).error,
            fraction_done=schedule.fraction(self._stepper.moment), doing=doing, fraction=fraction,
            observed=self._recording.measured.observed, units=self._setup.scenario.units,
            steps_per_s=rate, interactions_per_s=pairs, bodies_per_s=bodies,
        )  # fmt: skip

    def _summary(self, interrupted: bool) -> Summary:
        setup, stepper, measured = self._setup, self._stepper, self._recording.measured
        energies, roster, report = measured.energies, stepper.roster, self._report
        scenario, looked = setup.scenario, setup.scenario.collisions is not None
        (rate, pairs, bodies), body_steps = self._rates(report), report.body_steps
        path = self._recording.path
        return Summary(
            name=scenario.name, output=None if path is None else str(path), engine=setup.plan.engine_name,
            device=setup.engine.identity(stepper.state).device, precision=scenario.precision,
            integrator=scenario.integrator.scheme, particles=setup.bodies.count, steps=self._made,
            step=stepper.clock.step, time=stepper.clock.time, wall_s=self._clock.seconds(),
            energy_initial=energies.initial, energy_final=energies.latest + (roster.booked_energy if roster else 0.0),
            energy_error=energies.error, frames=measured.frames, interrupted=interrupted,
            energy_error_largest=energies.largest_error, without_potential=setup.without_potential,
            energy_changes=setup.plan.fields.energy_changes if setup.plan.fields else "",
            blocks=self._made if body_steps is not None and stepper.integrator.facts.adaptive else None,
            body_steps=None if body_steps is None else body_steps - self._single,
            time_unit=scenario.units.time if scenario.units else "",
            collisions=roster.count if roster and looked else None,
            particles_left=len(roster.slots) if roster else None,
            collision_energy=roster.collision_energy if roster and looked else None,
            booked_energy=roster.booked_energy if roster and roster.changed else None,
            stopped=self._recording.log.stopped,
            steps_per_s=rate, interactions_per_s=pairs, bodies_per_s=bodies,
        )  # fmt: skip

    def _rates(self, report: SchemeReport) -> tuple[float, float, float | None]:
        """Per second: steps, interactions, and with a tree the bodies whose forces it computes."""
        rate = self._clock.steps_per_s
        bodies = rate * report.bodies_per_step if self._setup.engine.can.tree else None
        return rate, rate * report.pairs_per_step, bodies

    @property
    def _made(self) -> int:
        return self._stepper.clock.step - self._first[0]

    @property
    def _ended(self) -> bool:
        """True if the run has reached its end, of the schedule or by what an observer has seen."""
        return self._recording.schedule.ended(self._stepper.moment) or any(each.ended for each in self._others)

    def _checkpoint(self) -> None:
        require_same_state(self._team, self._stepper.clock.step, self._stepper.arrays)
        self._recording.checkpoint()
