"""The file of a simulation: the first run makes it, and later runs of the same simulation append to it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nbody import machine
from nbody.errors import InputError
from nbody.run.force_error import force_errors
from nbody.run.schedule import Schedule, of_whole_run, written
from nbody.run.setup import Setup
from nbody.run.stepper import Stepper
from nbody.scenario import FromArrays
from nbody.state import Moment, Outputs
from nbody.trajectory import Checkpoint, RunHeader, TrajectoryWriter, check_output, read_checkpoint, state_bytes
from nbody.trajectory.writing.output_path import RECORDING, RESUMED, check_suffix
from nbody.whole_file import Notify

GROWTH = 2**30
"""The most bytes of room that a file gets beyond the frames of the next run. (A file without room is copied to a larger one,
so the room doubles with each copy up to this limit.)"""


class Output:
    """The recording of a simulation.

    Args:
        path: the file.
        overwrite: replace an existing file instead of keeping it under a numbered name.
        notify: gets a line if an older file is renamed.
        checkpoint: where the next run goes on, an attribute too; None if the first run makes the file.
        inputs: the files that the run reads.

    Attributes:
        origin: where bodies come from that are given as arrays.
    """

    def __init__(
        self,
        path: str | Path,
        overwrite: bool,
        notify: Notify,
        checkpoint: Checkpoint | None = None,
        inputs: Sequence[Path] = (),
    ) -> None:
        new = checkpoint is None
        check_output(path, RECORDING if new else RESUMED, inputs if new else ())
        if new:
            check_suffix(path)
        self.path, self._overwrite, self._notify, self.checkpoint = path, overwrite, notify, checkpoint
        self.origin = "arrays of a Python program"
        self._room = 0
        self._written: tuple[Any, ...] = ()  # what the file says of frames and of the direction of time

    def go_on(self, now: Moment, kept: int) -> None:
        """Prepare to append to the file that this simulation has recorded, after ``kept`` of its frames. Raises
        InputError: the file is gone, or its last checkpoint is not the present state."""
        self.checkpoint = read_checkpoint(self.path)
        if int(self.checkpoint.meta["step"]) != now.step or self.checkpoint.frames < kept:
            raise InputError(
                f"{self.path}: does not end with the present state (step {now.step}), so nothing can be appended; "
                "give record() another file"
            )

    def open(
        self, setup: Setup, stepper: Stepper, schedule: Schedule, frames: int, meta: Mapping[str, Any]
    ) -> TrajectoryWriter:
        """Open the file, with room for every frame of the schedule from now on.

        The scenario in the file ends where the run does, if frames are counted as in ``schedule``. What a later call, for
        which there is room, adds to that is in the checkpoints.

        Args:
            frames: the number of frames to keep.
            meta: the contents of a checkpoint besides the stepper's arrays.
        """
        now, header = stepper.moment, self._header(setup, stepper)
        new, whole = schedule.count_after(now), of_whole_run(setup.plan.schedule, schedule)
        used = with_schedule(header.resolved, written(whole))
        if self.checkpoint is None:
            self._room = 1 + new
            self._written = _frames_and_direction(used)
            size = state_bytes(stepper.arrays(), meta)
            header = replace(header, frames=self._room, resolved=used, state_bytes=size)
            return TrajectoryWriter(self.path, setup.bodies, header, overwrite=self._overwrite, notify=self._notify)
        needed = frames + new
        if 0 < needed <= self._room and self._written == _frames_and_direction(used):
            return self._reopen(self._room, frames, None)
        row = 2 * 3 * np.dtype(header.dtype).itemsize * setup.bodies.count
        spare = min(self._room, GROWTH // row)
        try:
            return self._reopen(needed + spare, frames, used)
        except InputError:
            if not spare:
                raise
            return self._reopen(needed, frames, used)

    def _header(self, setup: Setup, stepper: Stepper) -> RunHeader:
        """The header, with what the run and its machine are."""
        initial, state = setup.scenario.initial, stepper.state
        seed = getattr(initial, "seed", "none: the bodies come from a file")
        facts = {"seed": seed, "without_potential": setup.without_potential}
        if isinstance(initial, FromArrays):
            facts |= {"seed": "none: the bodies were given as arrays", "bodies": self.origin}
        known: dict[str, Any] = setup.scope() | facts | setup.team.provenance()
        if (devices := setup.engine.identity(state).device) != known["device"]:
            known["devices"] = devices
        if self.checkpoint is None and setup.measures_forces and Outputs.ACCELERATION in state.clock.current:
            drawn = seed if isinstance(seed, int) else 1
            known["force_error"] = force_errors(setup.engine, state, setup.bodies.mass, drawn)
        if functions := sum(event.call is not None or event.is_function for event in setup.events):
            known["event_functions"] = functions
        return replace(setup.plan.header(**machine.provenance(**known)), events=setup.event_capacity)

    def _reopen(self, room: int, keep: int, resolved: Mapping[str, Any] | None) -> TrajectoryWriter:
        assert self.checkpoint is not None
        writer = TrajectoryWriter.reopen(
            self.path, self.checkpoint, frames=room, keep=keep, resolved=resolved, notify=self._notify
        )
        self._room = room
        if resolved is not None:
            self._written = _frames_and_direction(resolved)
        return writer


def _frames_and_direction(resolved: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a file says of the moments that become frames, of the time step, and whether it ends at a time."""
    return resolved["record"], resolved["integrator"].get("dt"), "end" in resolved["integrator"]


def with_schedule(resolved: Mapping[str, Any], schedule: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario ``resolved`` as a recording holds it: with a schedule as :func:`~nbody.run.schedule.written` gives it."""
    integrator = {key: value for key, value in resolved["integrator"].items() if key not in ("steps", "end")}
    record = {key: value for key, value in resolved.get("record", {}).items() if key not in ("every", "dt")}
    for key, value in schedule.items():
        (integrator if key in ("steps", "end") else record)[key] = value
    return {**resolved, "integrator": integrator, "record": record}
