"""The recording of a run: which moments become frames, and when checkpoints and events go to the recorder."""

import json
import math
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbody.diagnostics.energy import Energies
from nbody.diagnostics.observables import OF_TANGENTS
from nbody.errors import InputError
from nbody.initial import files_read
from nbody.parallel import Team
from nbody.run.event_log import EventLog
from nbody.run.measured import Measured, Start
from nbody.run.observers import Observer
from nbody.run.recorder import Recorder
from nbody.run.schedule import Schedule, StepSchedule, of_whole_run, written
from nbody.run.stepper import Stepper
from nbody.run.watch import Watch
from nbody.scenario import FromArrays, Scenario
from nbody.state import Frame, Moment, frames_per_block
from nbody.whole_file import Notify

if TYPE_CHECKING:
    from nbody.run.output import Output

MOST_STEPS = 256
"""The maximum number of steps in one block of frames. (Python needs about 0.1 ms for each when a GPU records them.)"""


class Recording(Observer):
    """Looks at the frames of a schedule: records them in a file or, without one, follows the energy.

    Args:
        stepper: what moves the bodies.
        file: where the frames go; None records nothing.
        start: where the run goes on, if its first frames were recorded before.

    Attributes:
        measured: the frames so far: their number and energies.
        log: the events, collisions and changes, which are recorded too.
        schedule: which moments are frames; that of the latest call.
        resumed: the run goes on where an earlier process has recorded it.
    """

    def __init__(self, stepper: Stepper, file: "Output | None", start: Start | None) -> None:
        super().__init__(stepper)
        self._file, self.log = file, EventLog(stepper, 0 if start is None else start.events)
        self.measured = Measured(stepper.setup, start)
        self.schedule: Schedule = stepper.setup.plan.schedule
        self.resumed = start is not None and start.checkpoint is not None
        self._latest: Moment | None = None  # of the frames that are made alone
        self._written = False  # a call of this simulation has written the file
        self._ends = start is not None and start.ends  # the last frame is the end of a call
        self._checkpointed = time.perf_counter()
        self._recorder: Recorder | None = None
        self._watch: Watch | None = None

    @property
    def _frames_per_block(self) -> int:
        """How many frames of the present bodies are made in one call, if every step is recorded."""
        state = self._stepper.state
        return frames_per_block(state.count, state.dtype.name)

    @property
    def path(self) -> str | Path | None:
        """The file; None if there is none."""
        return None if self._file is None else self._file.path

    @property
    def looks(self) -> bool:
        """True if something asks for frames between the first and the last moment of a call: a file, or what is measured or
        checked in every frame."""
        scenario = self._setup.scenario
        named = set(scenario.record.observables or ()).difference(OF_TANGENTS)  # which need no frames
        measured = named or scenario.on_energy_error
        return self._file is not None or self._setup.team.size > 1 or bool(measured)

    @property
    def energies_now(self) -> Energies:
        """The energies of the frames; before there are any, those of the beginning and of this moment; RunFailed is raised
        if a number in the state is not finite."""
        if self.looks and (self.measured.frames or self._setup.team.size > 1):  # rank 0 alone counts frames
            return self.measured.energies
        if math.isnan(self.measured.energies.initial):
            self._measure_beginning()
        if not self._stepper.begun:  # an evaluation of the run's own state would come before the scheme's first
            return self.measured.energies
        return self.measured.with_unrecorded(self._stepper.frame())

    def _measure_beginning(self) -> None:
        self.measured.energies = Measured(self._setup).with_unrecorded(self._stepper.first_frame())

    @property
    def can_go_on(self) -> bool:
        """True if the file has a checkpoint."""
        started = self._file is not None and self._file.checkpoint is not None
        return started or (self._recorder is not None and self._recorder.has_checkpoint)

    def start(self) -> Start | None:
        """Where a copy of the run goes on; None before the first step."""
        stepper, measured = self._stepper, self.measured
        if not stepper.begun:
            return None
        frames = min(measured.frames, 1)
        return Start(stepper.moment, stepper.arrays(), self.log.recorded, frames, measured.energies)

    def redirect(self, file: "Output | None") -> None:
        """Record the next calls in another file, which begins with the present moment."""
        self._file, self._recorder, self.measured = file, None, Measured(self._setup)
        self._written = self._ends = False
        self.log.begin_file()
        clock, scenario = self._stepper.clock, self._setup.scenario
        if file is not None and self._stepper.moved and not isinstance(scenario.initial, FromArrays):
            began = json.dumps(scenario.resolved()["initial"])
            file.origin = f"step {clock.step}, t = {clock.time:.9g}, of a run that began with {began}"

    def begin_again(self) -> None:
        """Record from now on a run that begins with the present bodies."""
        self.measured, self.log = Measured(self._setup), EventLog(self._stepper)

    def require_both_ways(self) -> None:
        """Raise an InputError if the file can't record both directions of time."""
        if self._file is not None and self.measured.frames and self._setup.integrator.facts.adaptive:
            raise InputError(
                f"integrate: {self.path} goes one way in time, because the steps of "
                f"{self._setup.scenario.integrator.scheme} have no fixed length; record() the way back in another file"
            )

    def stop(self) -> None:
        """Record nothing any more."""
        self._file, self._written = None, False

    # --- From the beginning of a call to its end ---

    def go_on(self, schedule: Schedule) -> None:
        """Prepare to append the frames of a further call. Raises InputError if the file can't be appended to."""
        measured = self.measured
        if not self.looks:
            measured.frames = min(measured.frames, 1)
        if self._file is not None and (self._written or self._ends):
            now = self._stepper.moment
            dropped = not self.schedule.regular(now) and not schedule.ended(now)
            measured.frames -= dropped and measured.frames > 1
            self._file.go_on(now, measured.frames)
        self.schedule = schedule

    def open(self, watch: Watch) -> AbstractContextManager:
        """Open the file, with room for every frame of the schedule. An error inside the returned context closes it. (On a
        rank other than 0 nothing is opened, and nothing leaves the process.)"""
        self._watch = watch
        if not self._setup.team.first:
            return nullcontext()
        if not (self.measured.frames or self.looks) and self._stepper.moved:
            self._measure_beginning()
        writer = None
        if self._file is not None:
            frames = self.measured.frames
            writer = self._file.open(self._setup, self._stepper, self.schedule, frames, self._meta())
        try:
            at_a_time = self._frames_per_block if self.looks else 0
            self._recorder = Recorder(writer, self.measured, at_a_time, raises=self._setup.team.size == 1)
        except BaseException:  # close the file, which is locked and has its full size
            if writer is not None:
                writer.close(complete=False)
            raise
        self._written, self._ends = writer is not None, False
        return self._recorder

    @property
    def error(self) -> BaseException | None:
        """What the recorder could not do, if several ranks must agree to end for it; else it is raised at once."""
        return self._recorder.error if self._recorder else None

    def close(self, complete: bool) -> None:
        """Wait until everything is in the file; ``complete`` if it has all frames of the schedule."""
        if self._recorder is not None:
            self._recorder.close(complete)

    # --- Frames ---

    def next(self, until: float) -> tuple[int, float]:
        steps, latest = self.schedule.next(self._stepper.moment)
        if steps > 1 and self._stepper.packs_frames and isinstance(self.schedule, StepSchedule):
            steps -= 1  # the step to a frame is made with it
        return steps, min(latest, until)

    def at_once(self, at_most: int) -> tuple[int, int]:
        """How many frames the stepper may make in one call of at most so many steps, and the steps between them; (0, 0) if
        the next frame comes later."""
        schedule = self.schedule
        if not (isinstance(schedule, StepSchedule) and self._stepper.packs_frames):
            return 0, 0
        now, most = self._stepper.moment, min(at_most, MOST_STEPS)
        block = self._frames_per_block
        if schedule.regular_after(now.step) >= block and block * schedule.every <= most:
            return block, schedule.every
        return (1, 1) if at_most and schedule.next(now)[0] == 1 else (0, 0)

    def take(self, frames: list[Frame]) -> None:
        """Record frames that the stepper has made."""
        if self._recorder is not None:
            self._flush()  # the frames may have bodies that were added since the last look
            self._recorder.record(*frames)
            return
        for frame in frames:
            frame.wait().release()

    def look(self) -> bool:
        self._flush()
        packed = self._stepper.packs_frames and isinstance(self.schedule, StepSchedule)
        if not packed and self.schedule.due(self._stepper.moment) and self._stepper.moment != self._latest:
            self.record()
        return True

    def _flush(self) -> None:
        """Give the recorder the events that it has not yet."""
        if self._recorder is not None and self.log.waiting:
            self._recorder.events(self.log.take(), self._setup.bodies.species_names)

    def record(self) -> None:
        if self._watch is not None:
            self._watch.frame()
        self.take([self._stepper.frame()])
        self._latest = self._stepper.moment

    # --- Checkpoints ---

    def checkpoint(self) -> None:
        """Store what a resumed run begins with."""
        if self._file is not None and self._recorder is not None:
            self.log.look()
            self._flush()
            self._recorder.checkpoint(self._stepper.arrays(), self._meta())
            self._checkpointed = time.perf_counter()

    @property
    def checkpoint_due(self) -> bool:
        """True if the last checkpoint is older than the scenario says."""
        minutes = self._setup.scenario.checkpoint.minutes
        return self._file is not None and time.perf_counter() - self._checkpointed > 60 * minutes

    def _meta(self) -> dict[str, Any]:
        """The other contents of a checkpoint: the position in the run, and what its bits depend on."""
        now, planned = self._stepper.moment, self._setup.plan.schedule
        whole = of_whole_run(planned, self.schedule)
        return {
            "step": now.step, "time": now.time, "regular": self.schedule.regular(now),
            "engine": self._setup.plan.engine_name, "scope": self._setup.scope(),
            "events": self.log.recorded,
            **({"within": now.within} if self._setup.integrator.facts.adaptive else {}), **self._stepper.turned_at,
            **({} if whole == planned else {"schedule": written(whole)}),
        }  # fmt: skip


def new_file(
    path: str | Path | None, overwrite: bool, team: Team, notify: Notify, scenario: Scenario, start: Start | None = None
) -> "Output | None":
    """The file of a recording, which rank 0 writes; None if nothing is to be recorded."""
    if path is None or not team.first:
        return None
    from nbody.run.output import Output  # imports what writes files, which few-body programs do not need

    return Output(path, overwrite, notify, None if start is None else start.checkpoint, files_read(scenario))
