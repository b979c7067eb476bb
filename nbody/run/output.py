"""The file of a simulation: the first run makes it, and later runs of the same simulation append to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nbody.diagnostics.energy import Energies
from nbody.errors import InputError
from nbody.particles import Particles
from nbody.run.schedule import Schedule, StepSchedule
from nbody.state import Moment
from nbody.trajectory import Checkpoint, RunHeader, TrajectoryWriter, check_output, read_checkpoint
from nbody.trajectory.writing.output_path import RECORDING, RESUMED, check_suffix

GROWTH = 2**30
"""The most bytes of room that a file gets beyond the frames of the next run. (A file without room is copied to a larger one,
so the room doubles with each copy up to this limit.)"""


@dataclass(frozen=True)
class Start:
    """Where a recording goes on.

    Attributes:
        path: the recording.
        moment: that of the checkpoint.
        checkpoint: the stored state.
        frames: the number of frames of the file that are kept.
        energies: the energies of these frames.
    """

    path: str | Path
    moment: Moment
    checkpoint: Checkpoint
    frames: int
    energies: Energies

    @property
    def events(self) -> int:
        """The number of collisions before the checkpoint."""
        return int(self.checkpoint.meta.get("events", 0))


class Output:
    """The recording of a simulation.

    Args:
        path: the file.
        overwrite: replace an existing file instead of keeping it under a numbered name.
        notify: gets a line if an older file is renamed.
        start: where to go on, if the file is a recording to be resumed.
        inputs: the files that the run reads.

    ``frames`` and ``energies`` are those of the frames in the file.
    """

    def __init__(
        self,
        path: str | Path,
        overwrite: bool,
        notify: Callable[[str], None],
        start: Start | None = None,
        inputs: Sequence[Path] = (),
    ) -> None:
        check_output(path, RECORDING if start is None else RESUMED, inputs if start is None else ())
        if start is None:
            check_suffix(path)
        self.path, self._overwrite, self._notify, self.start = path, overwrite, notify, start
        self._room = 0
        self._record: Mapping[str, Any] = {}

    def go_on(self, now: Moment, kept: int, energies: Energies) -> None:
        """Prepare to append to the file that this simulation has recorded, after ``kept`` of its frames. Raises
        InputError: the file is gone, or its last checkpoint is not the present state."""
        checkpoint = read_checkpoint(self.path)
        if int(checkpoint.meta["step"]) != now.step or checkpoint.frames < kept:
            raise InputError(
                f"{self.path}: does not end with the present state (step {now.step}), so nothing can be appended; "
                "give record() another file"
            )
        self.start = Start(self.path, now, checkpoint, kept, energies)

    def open(
        self, bodies: Particles, header: RunHeader, schedule: Schedule, frames: int, now: Moment
    ) -> TrajectoryWriter:
        """Open the file, with room for every frame of the schedule after the moment ``now``. ``frames``: those to keep."""
        new = schedule.count_after(now)
        if self.start is None:
            self._room = 1 + new
            header = replace(header, frames=self._room, resolved=self._used(header, schedule, 0))
            return TrajectoryWriter(self.path, bodies, header, overwrite=self._overwrite, notify=self._notify)
        needed = frames + new
        fits = 0 < needed <= self._room and self._used(header, schedule, 0)["record"] == self._record
        if fits:
            return self._reopen(self._room, frames, None)
        row = 2 * 3 * np.dtype(header.dtype).itemsize * bodies.count
        spare = min(self._room, GROWTH // row)
        try:
            return self._reopen(needed + spare, frames, self._used(header, schedule, spare))
        except InputError:
            if not spare:
                raise
            return self._reopen(needed, frames, self._used(header, schedule, 0))

    def _reopen(self, room: int, keep: int, resolved: Mapping[str, Any] | None) -> TrajectoryWriter:
        assert self.start is not None
        writer = TrajectoryWriter.reopen(
            self.path, self.start.checkpoint, frames=room, keep=keep, resolved=resolved, notify=self._notify
        )
        self._room = room
        return writer

    def _used(self, header: RunHeader, schedule: Schedule, spare: int) -> dict[str, Any]:
        """The scenario with the schedule that the run uses, prolonged by ``spare`` frames."""
        used = with_schedule(header.resolved, schedule, spare)
        self._record = used["record"]
        return used


def with_schedule(resolved: Mapping[str, Any], schedule: Schedule, spare: int = 0) -> dict[str, Any]:
    """The scenario ``resolved`` as a recording holds it: with this schedule, prolonged by ``spare`` frames."""
    integrator = {key: value for key, value in resolved["integrator"].items() if key not in ("steps", "end")}
    record = {key: value for key, value in resolved.get("record", {}).items() if key not in ("every", "dt")}
    if isinstance(schedule, StepSchedule):
        integrator["steps"], record["every"] = schedule.last + spare * schedule.every, schedule.every
    else:
        integrator["end"], record["dt"] = schedule.end + spare * schedule.interval, schedule.interval
    return {**resolved, "integrator": integrator, "record": record}
