"""The recording of a run: its frames, checkpoints and events, what is measured of them, and the file they go to."""

import json
import math
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nbody import machine
from nbody.diagnostics.energy import Energies
from nbody.diagnostics.observables import measured
from nbody.run.guards import check_finite
from nbody.run.observers import CollisionLog, Observer
from nbody.run.recorder import Recorder
from nbody.run.schedule import Schedule, StepSchedule
from nbody.run.setup import Setup
from nbody.run.stepper import Stepper
from nbody.run.watch import Watch
from nbody.scenario import FromArrays
from nbody.state import Frame, Outputs, frames_per_block

if TYPE_CHECKING:
    from nbody.run.output import Output
    from nbody.trajectory import TrajectoryWriter

MOST_STEPS = 256
"""The maximum number of steps in one block of frames. (Python needs about 0.1 ms for each when a GPU records them.)"""


class Recording(Observer):
    """Looks at the frames of a schedule: records them in a file or, without one, follows the energy.

    Args:
        setup: what the run is.
        stepper: what moves the bodies.
        file: where the frames go; None records nothing.
        log: the collisions, which are recorded too.
        begun: an earlier process has recorded the first frame.

    Attributes:
        frames: the number of frames in the file.
        schedule: which moments are frames; that of the latest call.
        begun: True if the first frame has been recorded.
        frames_per_block: how many frames are made in one call, if every step is recorded.
    """

    def __init__(
        self, setup: Setup, stepper: Stepper, file: "Output | None", log: CollisionLog | None, begun: bool
    ) -> None:
        super().__init__(stepper)
        self._setup, self._file, self._log = setup, file, log
        start = None if file is None else file.start
        self._none = Energies(conserved=not setup.without_potential)
        self.frames, self._energies = (start.frames, start.energies) if start else (0, self._none)
        self.schedule: Schedule = setup.plan.schedule
        self.begun = begun
        self.frames_per_block = frames_per_block(stepper.state.count, stepper.state.dtype.name)
        self._written = False  # a call of this simulation has written the file
        self._checkpointed = time.perf_counter()
        self._recorder: Recorder | None = None
        self._watch: Watch | None = None
        self._origin = "arrays of a Python program"

    @property
    def path(self) -> str | Path | None:
        """The file; None if there is none."""
        return None if self._file is None else self._file.path

    @property
    def looks(self) -> bool:
        """True if something asks for frames between the first and the last moment of a call: a file, or what is measured or
        checked in every frame."""
        scenario = self._setup.scenario
        measured = scenario.record.observables or scenario.on_energy_error or scenario.ensemble
        return self._file is not None or self._setup.team.size > 1 or self._log is not None or bool(measured)

    @property
    def energies(self) -> Energies:
        """The energies of the frames."""
        return self._recorder.energies if self._recorder is not None else self._energies

    @property
    def energies_now(self) -> Energies:
        """The energies of the frames. If nothing is recorded, those of the beginning and of this moment; RunFailed is raised
        if a number in the state is not finite."""
        if self.looks:
            return self.energies
        if math.isnan(self.energies.initial):
            self._energies = self._of_the_beginning()
        if not self._stepper.begun:  # an evaluation of the run's own state would come before the scheme's first
            return self.energies
        return self.energies.after(self._energy_of(self._stepper.frame()))

    @property
    def observed(self) -> dict[str, float]:
        """The latest observables that are single numbers."""
        return self._recorder.observed if self._recorder is not None else {}

    @property
    def can_go_on(self) -> bool:
        """True if the file has a checkpoint."""
        started = self._file is not None and self._file.start is not None
        return started or (self._recorder is not None and self._recorder.has_checkpoint)

    def redirect(self, file: "Output | None") -> None:
        """Record the next calls in another file, which begins with the present moment."""
        self._file, self._written = file, False
        self._recorder, self.frames, self._energies, self.begun = None, 0, self._none, False
        clock, scenario = self._stepper.clock, self._setup.scenario
        if self._stepper.moved and not isinstance(scenario.initial, FromArrays):
            began = json.dumps(scenario.resolved()["initial"])
            self._origin = f"step {clock.step}, t = {clock.time:.9g}, of a run that began with {began}"

    def continue_as(self, setup: Setup, log: CollisionLog | None) -> None:
        """Record from now on a run that begins with the present bodies."""
        self._setup, self._log = setup, log

    def stop(self) -> None:
        """Record nothing any more."""
        self._file, self._written = None, False

    # --- From the beginning of a call to its end ---

    def go_on(self, schedule: Schedule) -> None:
        """Prepare to append the frames of a further call. Raises InputError if the file can't be appended to."""
        if not self.looks:
            self.frames = min(self.frames, 1)
        if self._written and self._file is not None:
            now = self._stepper.moment
            dropped = not self.schedule.regular(now) and not schedule.ended(now)
            self.frames -= dropped and self.frames > 1
            self._file.go_on(now, self.frames, self._energies)
        self.schedule = schedule

    def open(self, watch: Watch) -> AbstractContextManager:
        """Open the file, with room for every frame of the schedule. An error inside the returned context closes it. (On a
        rank other than 0 nothing is opened, and nothing leaves the process.)"""
        scenario, self._watch = self._setup.scenario, watch
        if not self._setup.team.first:
            return nullcontext()
        if not (self.begun or self.looks) and self._stepper.moved:
            self._energies = self._of_the_beginning()
        writer = None if self._file is None else self._writer(self._file)
        try:
            at_a_time = self.frames_per_block if self.looks else 0
            recorder = Recorder(
                writer, scenario.on_energy_error, self._setup.notify, self._energies, self.frames, at_a_time
            )
            recorder.gravity, recorder.raises = scenario.gravity, self._setup.team.size == 1
            if scenario.ensemble or scenario.record.observables:
                recorder.measure = self.measure
        except BaseException:  # close the file, which is locked and has its full size
            if writer is not None:
                writer.close(complete=False)
            raise
        self._written, self._recorder = writer is not None, recorder
        return recorder

    @property
    def error(self) -> BaseException | None:
        """What the recorder could not do, if several ranks must agree to end for it; else it is raised at once."""
        return self._recorder.error if self._recorder else None

    def close(self, complete: bool) -> None:
        """Wait until everything is in the file; ``complete`` if it has all frames of the schedule."""
        if self._recorder is not None:
            self._recorder.close(complete)

    def finish(self) -> None:
        """Take over the number of frames and the energies after a call that has ended well."""
        recorder = self._recorder
        found = (recorder.frames, recorder.energies) if recorder else None
        self.frames, self._energies = self._setup.team.broadcast(found)

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
        if schedule.regular_after(now.step) >= self.frames_per_block and self.frames_per_block * schedule.every <= most:
            return self.frames_per_block, schedule.every
        return (1, 1) if schedule.next(now)[0] == 1 else (0, 0)

    def take(self, frames: list[Frame]) -> None:
        """Record frames that the stepper has made."""
        if self._recorder is not None:
            self._recorder.record(*frames)
            return
        for frame in frames:
            frame.wait().release()

    def look(self) -> bool:
        if self._log is not None and self._recorder is not None:
            self._recorder.events(self._log.take())
        packed = self._stepper.packs_frames and isinstance(self.schedule, StepSchedule)
        if not packed and self.schedule.due(self._stepper.moment):
            self.record()
        return True

    def record(self) -> None:
        """Record the present moment."""
        if self._watch is not None:
            self._watch.frame()
        self.take([self._stepper.frame()])
        self.begun = True

    # --- Checkpoints ---

    def checkpoint(self) -> None:
        """Store what a resumed run begins with."""
        if self._file is not None and self._recorder is not None:
            self._recorder.checkpoint(self._stepper.arrays(), self._meta())
            self._checkpointed = time.perf_counter()

    @property
    def checkpoint_due(self) -> bool:
        """True if the last checkpoint is older than the scenario says."""
        minutes = self._setup.scenario.checkpoint.minutes
        return self._file is not None and time.perf_counter() - self._checkpointed > 60 * minutes

    def _meta(self) -> dict[str, Any]:
        """The other contents of a checkpoint: the position in the run, and what its bits depend on."""
        now = self._stepper.moment
        return {
            "step": now.step, "time": now.time, "regular": self.schedule.regular(now),
            "engine": self._setup.plan.engine_name, "scope": self._setup.scope(),
            "events": self._log.recorded if self._log else 0,
        } | ({"within": now.within} if self._setup.integrator.facts.adaptive else {})  # fmt: skip

    def _writer(self, file: "Output") -> "TrajectoryWriter":
        from nbody.run.force_error import force_errors
        from nbody.trajectory import state_bytes

        setup, state = self._setup, self._stepper.state
        initial = setup.scenario.initial
        seed = getattr(initial, "seed", "none: the bodies come from a file")
        facts = {"seed": seed}
        if isinstance(initial, FromArrays):
            facts = {"seed": "none: the bodies were given as arrays", "bodies": self._origin}
        known: dict[str, Any] = setup.scope() | facts | setup.team.provenance()
        if (devices := setup.engine.identity(state).device) != known["device"]:
            known["devices"] = devices
        if file.start is None and setup.measures_forces and Outputs.ACCELERATION in state.clock.current:
            known["force_error"] = force_errors(
                setup.engine, state, setup.bodies.mass, seed if isinstance(seed, int) else 1
            )
        header = setup.plan.header(**machine.provenance(**known))
        if file.start is None:
            header = replace(header, state_bytes=state_bytes(self._stepper.arrays(), self._meta()))
        return file.open(setup.bodies, header, self.schedule, self.frames, self._stepper.moment)

    # --- What is measured ---

    def measure(self, frame: Frame) -> dict[str, float | np.ndarray]:
        """The scenario's observables of a frame, on the host, by the recorder's thread."""
        scenario, bodies = self._setup.scenario, self._setup.bodies
        if scenario.ensemble:
            from nbody.forces.systems.cpu import energies

            law = scenario.gravity
            systems = law.G, law.length2, law.softening, scenario.ensemble.count
            return {"system_energy": energies(frame.position, frame.velocity, bodies.mass, *systems)}
        position, velocity = (array[:, : bodies.dimensions] for array in (frame.position, frame.velocity))
        now = replace(bodies, position=position, velocity=velocity, time=frame.time, step=frame.step)
        if frame.slots is not None:
            now = replace(now.rows(frame.slots.left), mass=frame.slots.mass)
        return measured(scenario.record.observables or (), now, scenario.gravity.G, frame.columns)

    def _of_the_beginning(self) -> Energies:
        return self._none.after(self._energy_of(self._stepper.first_frame()))

    def _energy_of(self, frame: Frame) -> float:
        """The total energy of a frame. Raises RunFailed if a number in the state is not finite."""
        check_finite(frame.wait(), self._setup.scenario.gravity)
        energy = float(frame.sums[0]) + float(frame.sums[1])
        frame.release()
        return energy
