"""The loop of a run: one call of :meth:`nbody.run.simulation.Simulation.run`, until the file is closed."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from nbody.diagnostics.energy import Energies
from nbody.forces.engine import devices_of
from nbody.integrators.integrator import FixedStep
from nbody.run.calls import Calls
from nbody.run.gpus import naming_failed
from nbody.run.progress import Clock, Progress
from nbody.run.ranks import raise_on_all, require_same_state
from nbody.run.schedule import Schedule, StepSchedule
from nbody.run.signals import StopRequest, stop_on_signals
from nbody.run.summary import progress_of
from nbody.run.watch import Watch
from nbody.state import State

if TYPE_CHECKING:
    from nbody.run.colliding import Colliding
    from nbody.run.simulation import Simulation

MOST_STEPS = 256
"""The maximum number of steps in one block of frames. (Python needs about 0.1 ms for each when a GPU records them.)"""

MANY = 10
"""Steps between two progress events from which on a run that records nothing measures its energy at each event."""


class ProgressEvent(NamedTuple):
    """The run between two steps, as :meth:`Simulation.progress_events` yields it several times per second."""

    state: State
    progress: Progress
    energies: Energies


class Pace(Protocol):
    """Decides when a run makes its next steps: while a window shows it, or a user has paused it."""

    def stopping(self) -> AbstractContextManager[StopRequest]:
        """A context with the request that stops the run."""

    def steps(self) -> int:
        """Return when the next steps may be made, and how many at most before the next event. Called between two steps."""


class Loop:
    """The steps of one call.

    Args:
        run: the simulation.
        schedule: which moments are frames, and the end.
        calls: the user's callback; None if there is none.
        pace: decides when steps are made, and stops the run in place of Ctrl-C; None makes them as fast as possible.

    Attributes:
        clock: the wall time of this call.
        stop: the request of Ctrl-C or of the pace.
    """

    def __init__(self, run: "Simulation", schedule: Schedule, calls: Calls | None, pace: Pace | None) -> None:
        self._run, self._team, self._schedule, self._calls, self._pace = run, run.team, schedule, calls, pace
        self.clock, self.stop = Clock(), StopRequest()
        self._first = run.steps_made

    def progress_events(self, progress: Callable[[Progress], None]) -> Iterator[ProgressEvent]:
        """Make the steps, and yield several times per second between two. ``progress`` is called during long steps."""
        run = self._run
        with (
            self._pace.stopping() if self._pace else stop_on_signals(self._team.size > 1) as self.stop,
            naming_failed(devices_of(run.engine), run.recording),
            self._open(),
        ):

            def show(doing: str = "", fraction: float = 0.0) -> None:
                progress(progress_of(run, self.clock, self._schedule, run.recording.energies, doing, fraction))

            self._watch = Watch(run.integrator, run.motion, self.stop, show, run.notify)
            yield from self._steps()

    def _open(self) -> AbstractContextManager:
        run = self._run
        if run.measures_forces and not run.resumed and not run.begun:
            self._team.working = True
            with np.errstate(all="ignore"):
                run.motion.evaluate()  # the file says how accurate the forces are; a run without a file has the same bits
            self._team.working = False
        with self._team.agreed():
            return run.recording.open()

    def _steps(self) -> Iterator[ProgressEvent]:
        run, clock, stop = self._run, self.clock, self.stop
        self._begin()
        queued = at_most = 0
        failure: BaseException | None = None
        while not self._ended() and not stop.requested:
            if not queued:
                at_most = self._steps_in_a_beat()
                if stop.requested:
                    break
            run.within_a_step = True  # stays True if a second Ctrl-C ends the step between two pieces of a force
            queued += self.advance(at_most - queued if self._pace else at_most)
            run.within_a_step = False
            if self._calls and self._calls.due(run.state):
                try:
                    wanted = self._calls.function(run.particles) is not False
                except Exception as error:  # the file is finished in good order first
                    failure, wanted = error, False
                if not wanted:
                    stop.request()
                at_most = min(at_most, queued)  # all ranks hear of it before the next step
            if queued >= at_most or (self._team.size == 1 and clock.due()):
                clock.look(run.steps_made - self._first, run.state, soon=queued > 1)
                queued = 0
                yield self._event()
                if self._team.broadcast(run.recording.checkpoint_due()):
                    self._checkpoint()
        self._end(failure)
        yield self._event()

    def _begin(self) -> None:
        """Prepare the scheme, and record the first frame, if that is still to be done."""
        run = self._run
        self._team.working = True
        if not run.resumed and not run.begun:
            with np.errstate(all="ignore"):  # the first frame reports what is not finite
                run.integrator.start(run.motion)
        run.begun = True
        if not run.recording.begun:
            self._record()
            self._checkpoint()

    def _end(self, failure: BaseException | None) -> None:
        """Record the last moment, and close the file. Raises ``failure``, the error of the user's callback."""
        run = self._run
        self.clock.look(
            run.steps_made - self._first, run.state
        )  # before closing the file, whose time is not part of a step
        if not self._schedule.due(run.steps_made, run.time):  # interrupted between frames
            self._record()
        if run.steps_made > self._first:
            self._checkpoint()
        self._team.working = False
        with self._team.agreed():
            run.recording.close(complete=self._ended())
            if failure is not None:
                raise failure

    def _ended(self) -> bool:
        """True if the run has reached its end, or two bodies have touched and the scenario says ``stop``."""
        run = self._run
        touched = run.colliding is not None and run.colliding.stopped
        return touched or self._schedule.ended(run.steps_made, run.time)

    def _event(self) -> ProgressEvent:
        run = self._run
        fast = self.clock.steps_per_heartbeat() >= MANY  # else an energy that nobody records would take too long
        energies = run.energies if fast else run.recording.energies
        return ProgressEvent(run.state, progress_of(run, self.clock, self._schedule, energies), energies)

    def _steps_in_a_beat(self) -> int:
        """The number of steps until the next event. Several ranks take that of rank 0, and stop if one of them is to stop.

        Raises the error of the recording, which rank 0 alone has.
        """
        at_most = self.clock.steps_per_heartbeat()
        if self._pace is not None:
            began = time.perf_counter()
            try:
                return min(at_most, self._pace.steps())
            finally:
                self.clock.exclude(time.perf_counter() - began)
        if self._team.size == 1:
            return at_most
        said = self._team.all((at_most, self.stop.heard, self._run.recording.error))
        self.stop.requested |= any(heard for _, heard, _ in said)
        at_most, _, error = said[0]
        if error is not None:
            raise_on_all(self._team, error)
        return at_most

    # --- Steps, frames and checkpoints ---

    @np.errstate(all="ignore")  # numbers that go wrong stop the run at its next frame
    def advance(self, at_most: int) -> int:
        """Make up to ``at_most`` steps: a whole block of frames, or the steps before the next frame, or the step to it; and
        none beyond the next call.

        Returns the number of steps."""
        run, integrator, schedule = self._run, self._run.integrator, self._schedule
        begun = run.steps_made
        between, until = schedule.next(begun, run.time)
        if self._calls:
            steps, until = self._calls.next(run.state, until)
            at_most = min(at_most, steps)
        if run.colliding is not None or not (isinstance(integrator, FixedStep) and isinstance(schedule, StepSchedule)):
            between = min(between, at_most)
            self._watch.step(begun + 1, False, min(between, 1))
            if run.colliding is None:
                integrator.advance(run.motion, between, until)
            else:
                self._advance_colliding(run.colliding, between, until)
            if schedule.due(run.steps_made, run.time):
                self._record()
            return run.steps_made - begun
        frames, every, per_block = 1, 1, run.frames_per_block
        if schedule.regular_after(begun) >= per_block and per_block * schedule.every <= min(at_most, MOST_STEPS):
            frames, every = per_block, schedule.every
        elif between := min(between - 1, at_most):
            self._watch.step(begun + between, False, between)
            integrator.advance(run.motion, between)
            return between
        self._watch.step(begun + frames * every, True, frames * every)
        snapshots = integrator.frames(run.motion, frames, every)
        numbers = range(begun + every, run.steps_made + 1, every)
        times = map(run.state.clock.time_at, numbers)
        run.recording.snapshots(zip(numbers, times, snapshots, strict=True))
        return run.steps_made - begun

    def _advance_colliding(self, colliding: "Colliding", steps: int, until: float) -> None:
        """Make up to ``steps`` steps; after one in which bodies touch, no more."""
        run = self._run
        span = run.integrator.advance(run.motion, steps, until, colliding.now)
        if span is None:
            return
        motion = colliding.resolve(span, run.motion, run.integrator, run.recording)
        if motion is not None:
            run.motion, run.state = motion, motion.state
            self._watch.follow(motion)

    def _record(self) -> None:
        run = self._run
        with np.errstate(all="ignore"):
            if run.state.frames.outputs not in run.state.clock.current:
                self._watch.frame(run.steps_made)
            run.motion.evaluate(run.state.frames.outputs)
            run.recording.frame()

    def _checkpoint(self) -> None:
        run = self._run
        if self._team.size > 1:
            require_same_state(self._team, run.steps_made, run.checkpoint_arrays())
        run.recording.checkpoint()
