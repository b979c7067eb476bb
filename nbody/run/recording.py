"""The recording of a simulation: its frames, checkpoints and events, what is measured of them, and the file they go to."""

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from nbody import machine
from nbody.diagnostics.energy import Energies, observables
from nbody.diagnostics.observables import measured
from nbody.run.force_error import force_errors
from nbody.run.guards import check_finite
from nbody.run.output import Output
from nbody.run.recorder import Moment, Recorder
from nbody.run.schedule import Schedule
from nbody.scenario import FromArrays
from nbody.state import Outputs, Snapshot
from nbody.trajectory import TrajectoryWriter, state_bytes

if TYPE_CHECKING:
    from nbody.integrators.collisions.collisions import SlotSnapshot
    from nbody.run.simulation import Simulation


class Recording:
    """What a simulation records, in a file or, without one, to follow its energy.

    Args:
        run: the simulation.
        file: where the frames go; None records nothing.

    Attributes:
        frames: the number of frames in the file.
        schedule: which moments are frames; that of the latest run.
        begun: True if the first frame has been recorded.
    """

    def __init__(self, run: "Simulation", file: Output | None) -> None:
        self._run, self._file = run, file
        start = None if file is None else file.start
        self.frames, self._energies = (start.frames, start.energies) if start else (0, Energies())
        self.schedule: Schedule = run.plan.schedule
        self.begun = start is not None
        self._written = False  # a run of this simulation has written the file
        self._checkpointed = time.perf_counter()
        self._recorder: Recorder | None = None
        self._origin = "arrays of a Python program"

    @property
    def path(self) -> str | Path | None:
        """The file; None if there is none."""
        return None if self._file is None else self._file.path

    @property
    def looks(self) -> bool:
        """True if something asks for frames between the first and the last moment of a run: a file, or what is measured or
        checked in every frame."""
        run, scenario = self._run, self._run.scenario
        measured = scenario.record.observables or scenario.on_energy_error or scenario.ensemble
        return self._file is not None or run.team.size > 1 or run.colliding is not None or bool(measured)

    def energy_now(self) -> float:
        """The total energy at this moment. Raises RunFailed if a number in the state is not finite."""
        run = self._run
        with np.errstate(all="ignore"):
            run.motion.evaluate(run.state.frames.outputs)
            snapshot = run.state.frames.snapshot().wait()
            check_finite(run.steps_made, snapshot, run.scenario.gravity)
            energy = float(observables(snapshot.sums)["total_energy"])  # type: ignore[arg-type]
        snapshot.release()
        return energy

    @property
    def energies(self) -> Energies:
        """The energies of the frames."""
        return self._recorder.energies if self._recorder is not None else self._energies

    @property
    def observed(self) -> Mapping[str, float]:
        """The latest observables that are single numbers."""
        return self._recorder.observed if self._recorder is not None else {}

    @property
    def can_go_on(self) -> bool:
        """True if the file has a checkpoint."""
        started = self._file is not None and self._file.start is not None
        return started or (self._recorder is not None and self._recorder.has_checkpoint)

    def redirect(self, file: Output | None) -> None:
        """Record the next runs in another file, which begins with the present moment."""
        self._file, self._written = file, False
        self._recorder, self.frames, self._energies, self.begun = None, 0, Energies(), False
        run = self._run
        if run.steps_made != run.bodies.step and not isinstance(run.scenario.initial, FromArrays):
            began = json.dumps(run.scenario.resolved()["initial"])
            self._origin = f"step {run.steps_made}, t = {run.time:.9g}, of a run that began with {began}"

    def stop(self) -> None:
        """Record nothing any more."""
        self._file, self._written = None, False

    # --- From the beginning of a run to its end ---

    def go_on(self, schedule: Schedule) -> None:
        """Prepare to append the frames of a further run. Raises InputError if the file can't be appended to."""
        step, now = self._run.steps_made, self._run.time
        if not self.looks:
            self.frames = min(self.frames, 1)
        if self._written and self._file is not None:
            dropped = not self.schedule.regular(step, now) and not schedule.ended(step, now)
            self.frames -= dropped and self.frames > 1
            self._file.go_on(step, now, self.frames, self._energies)
        self.schedule = schedule

    def open(self) -> AbstractContextManager:
        """Open the file, with room for every frame of the schedule. An error inside the returned context closes it."""
        run = self._run
        writer = None if self._file is None else self._writer(self._file)
        limit = run.scenario.on_energy_error
        try:
            at_a_time = run.frames_per_block if self.looks else 0
            recorder = Recorder(writer, limit, run.notify, self._energies, self.frames, at_a_time)
            recorder.gravity, recorder.raises = run.scenario.gravity, run.team.size == 1
            if run.scenario.ensemble:
                recorder.measure = self._measure_systems
            elif run.scenario.record.observables or run.colliding is not None:
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
        return self._open().error

    def close(self, complete: bool) -> None:
        """Wait until everything is in the file; ``complete`` if it has all frames of the schedule."""
        self._open().close(complete)

    def finish(self) -> None:
        """Take over the number of frames and the energies after a run that has ended well."""
        self.frames, self._energies = self._run.team.broadcast((self._open().frames, self._open().energies))

    def _open(self) -> Recorder:
        assert self._recorder is not None
        return self._recorder

    # --- What goes to the file ---

    def frame(self) -> None:
        """Record the present state, whose results must be current."""
        run = self._run
        snapshot = run.state.frames.snapshot()
        if run.colliding is not None:
            snapshot = run.colliding.snapshot(snapshot)
        self._open().record(run.steps_made, run.time, snapshot, run.integrator.report(run.motion).observed)
        self.begun = True

    def snapshots(self, moments: Iterable[tuple[int, float, Snapshot]]) -> None:
        """Record snapshots, with their steps and times."""
        self._open().record_many([Moment(*moment) for moment in moments])

    def events(self, rows: np.ndarray) -> None:
        """Record collisions."""
        self._open().events(rows)

    def checkpoint(self) -> None:
        """Store what a resumed run begins with."""
        if self._file is not None:
            self._open().checkpoint(self._run.checkpoint_arrays(), self._meta())
            self._checkpointed = time.perf_counter()

    def checkpoint_due(self) -> bool:
        """True if the last checkpoint is older than the scenario says."""
        return (
            self._file is not None
            and time.perf_counter() - self._checkpointed > 60 * self._run.scenario.checkpoint.minutes
        )

    def _meta(self) -> dict[str, Any]:
        """The other contents of a checkpoint: the position in the run, and what its bits depend on."""
        run = self._run
        regular = self.schedule.regular(run.steps_made, run.time)
        return {
            "step": run.steps_made, "time": run.time, "regular": regular, "engine": run.engine_name, "scope": run.scope(),
            "events": run.colliding.recorded if run.colliding else 0,
        }  # fmt: skip

    def _writer(self, file: Output) -> TrajectoryWriter:
        run = self._run
        initial = run.scenario.initial
        seed = getattr(initial, "seed", "none: the bodies come from a file")
        facts = {"seed": seed}
        if isinstance(initial, FromArrays):
            facts = {"seed": "none: the bodies were given as arrays", "bodies": self._origin}
        known: dict[str, Any] = run.scope() | facts | run.team.provenance()
        if (devices := run.engine.identity(run.state).device) != known["device"]:
            known["devices"] = devices
        if file.start is None and run.measures_forces and Outputs.ACCELERATION in run.state.clock.current:
            seed = seed if isinstance(seed, int) else 1
            known["force_error"] = force_errors(run.engine, run.state, run.bodies.mass, seed)
        header = run.plan.header(**machine.provenance(**known))
        if file.start is None:
            header = replace(header, state_bytes=state_bytes(run.checkpoint_arrays(), self._meta()))
        return file.open(run.bodies, header, self.schedule, self.frames, (run.steps_made, run.time))

    # --- What is measured, by the recorder's thread ---

    def measure(self, step: int, time: float, snapshot: Snapshot) -> dict[str, float | np.ndarray]:
        """The scenario's observables of a snapshot, on the host."""
        run = self._run
        position, velocity = (array[:, : run.state.dimensions] for array in (snapshot.position, snapshot.velocity))
        now = replace(run.bodies, position=position, velocity=velocity, time=time, step=step)
        numbers: dict[str, float] = {}
        if snapshot.left is not None:
            snapshot = cast("SlotSnapshot", snapshot)
            now, numbers = replace(now.rows(cast(np.ndarray, snapshot.left)), mass=snapshot.mass), snapshot.numbers
        names, G = run.scenario.record.observables or (), run.scenario.gravity.G
        return numbers | measured(names, now, G, snapshot.columns)

    def _measure_systems(self, step: int, time: float, snapshot: Snapshot) -> dict[str, float | np.ndarray]:
        """The energy of each system, computed on the host."""
        from nbody.forces.systems.cpu import energies

        scenario = self._run.scenario
        law, systems = scenario.gravity, scenario.ensemble.count  # type: ignore[union-attr]
        mass = self._run.bodies.mass
        found = energies(snapshot.position, snapshot.velocity, mass, law.G, law.length2, law.softening, systems)
        return {"system_energy": found}


class RecordedElsewhere(Recording):
    """The recording as a rank other than 0 has it: nothing leaves this process."""

    def __init__(self, run: "Simulation", begun: bool) -> None:
        super().__init__(run, None)
        self.begun = begun

    error = None

    def redirect(self, file: Output | None) -> None:
        self.begun = False

    def open(self) -> AbstractContextManager:
        return nullcontext()

    def close(self, complete: bool) -> None:
        pass

    def finish(self) -> None:
        self.frames, self._energies = self._run.team.broadcast(None)

    def frame(self) -> None:
        self.begun = True

    def snapshots(self, moments: Iterable[tuple[int, float, Snapshot]]) -> None:
        for _, _, snapshot in moments:
            snapshot.wait().release()

    def events(self, rows: np.ndarray) -> None:
        pass

    def checkpoint(self) -> None:
        pass
