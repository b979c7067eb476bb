"""Goes on with a recording in place, or in a larger copy that replaces it: for more frames, events or bodies."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nbody.diagnostics.energy import booked
from nbody.errors import InputError
from nbody.particles import Particles
from nbody.trajectory.reading.events import BOOKED
from nbody.trajectory.reading.frames import RecordedFrames
from nbody.trajectory.structure import layout
from nbody.trajectory.structure.contents import UnknownFormat
from nbody.trajectory.structure.header import RunHeader, required_bytes
from nbody.trajectory.structure.opening import one_line
from nbody.trajectory.writing.checkpoint import META_ROOM, Checkpoint, newest, pack, read_checkpoint, state_bytes
from nbody.trajectory.writing.framefile import FrameFile, make_file
from nbody.trajectory.writing.output_path import RESUMED, check_space

COPY_BLOCK = 2**26
LEAST_EVENTS = 64
BYTES_PER_BODY = 128
"""What a checkpoint keeps of a body that was added, besides the state."""


def continue_file(
    path: Path, part: Path, checkpoint: Checkpoint, keep: int, frames: int, resolved: Mapping[str, Any] | None
) -> FrameFile:
    """The file to record into: the file at ``path`` if it has room and the same scenario, else a copy at ``part``. Call this
    with the lock held. Arguments as for :meth:`~nbody.trajectory.writing.writer.TrajectoryWriter.reopen`."""
    if read_checkpoint(path).sequence != checkpoint.sequence:
        raise InputError(f"{path}: another run has gone on with it meanwhile; try again")
    with RecordedFrames(path) as run:
        frames = max(frames or run.planned, keep)
        if not 1 <= keep <= len(run):
            raise InputError(f"{path}: has {len(run)} frames, and is to go on after frame {keep - 1}; it is damaged")
        resolved = run.resolved if resolved is None else json.loads(json.dumps(resolved))  # as it would come back
        file = _for_writing(path)
        try:
            rows, events = run.event_rows(), events_until(checkpoint)
            dropped = np.isin(rows["kind"][events:], layout.ADDED).sum()  # bodies that are added later, or not at all
            known, left = file.bodies, run.count - dropped
            file.bodies = left
            state = state_bytes(checkpoint.state, checkpoint.meta)
            has_room = frames <= file.capacity and state - META_ROOM <= file.slot_bytes
            if has_room and left >= known and resolved == run.resolved:
                return file
            bodies = _constants(run).rows(np.arange(left))
            header = _header(run, file, frames=frames, resolved=resolved, state_bytes=state)
            if header.room:
                header = replace(header, state_bytes=max(state, file.slot_bytes))
            copy = _copy(run, file, part, bodies, header, keep, events, checkpoint)
        except BaseException:
            file.close()
            raise
        file.close()
        return copy


def with_more_room(
    path: Path, part: Path, file: FrameFile, events: int, added: np.ndarray, *,
    slot_bytes: int = 0, species_names: tuple[str, ...] = (), frames: int = 0,
) -> FrameFile:  # fmt: skip
    """A copy at ``part`` of the recording at ``path``, which is open for writing, with all its frames, and with what is
    needed for further events.

    Args:
        events: the number of events so far; there will be room for more.
        added: the events that follow. Bodies that they add get slots, and frames the observables of such runs.
        slot_bytes: the size of a checkpoint that must fit.
        species_names: those of all species, if there are more.
        frames: the number that must fit.
    """
    new = added[np.isin(added["kind"], layout.ADDED)]
    with RecordedFrames(path) as run:
        bodies, room = _constants(run), file.count - file.bodies - len(new)
        if room < 0:  # as many as were added so far
            room = len(new) + np.isin(run.event_rows()["kind"], layout.ADDED).sum()
        bodies.species_names = species_names or bodies.species_names
        if len(new):
            bodies = replace(
                bodies, mass=np.append(bodies.mass, new["mass_2"]), id=np.append(bodies.id, new["id_1"]),
                position=np.zeros((run.count + len(new), run.dimensions)), species=np.append(bodies.species, new["id_2"]),
                velocity=np.zeros((run.count + len(new), run.dimensions)),
                radius=np.append(bodies.radius, new["radius_2"]) if len(bodies.radius) else bodies.radius,
            )  # fmt: skip
        header = _header(run, file, frames=max(run.planned, frames), room=room)
        if (needed := events + len(added)) > header.events:
            header = replace(header, events=max(2 * header.events, needed, LEAST_EVENTS))
        if np.isin(added["kind"], layout.BOOKED).any():
            header = replace(header, observables={**run.widths, **BOOKED})
        more_rows = bodies.count + room - file.count
        state = file.slot_bytes + (file.slot_bytes // file.count + BYTES_PER_BODY) * more_rows if file.slot_bytes else 0
        header = replace(header, state_bytes=max(state, slot_bytes))
        checkpoint = newest(file.file) if file.slot_bytes else None
        return _copy(run, file, part, bodies, header, len(run), events, checkpoint)


def events_until(checkpoint: Checkpoint) -> int:
    """The number of events before a checkpoint."""
    return int(checkpoint.meta.get("events", 0))


def _for_writing(path: Path) -> FrameFile:
    """Open the valid recording at ``path`` for writing."""
    with one_line(path):
        try:
            return FrameFile(path)
        except UnknownFormat as error:
            raise InputError(
                f"{path}: has been repacked by another program ({error}) and can't be recorded into; "
                "start from its last frame instead (initial: {file: …})"
            ) from error


def _constants(run: RecordedFrames) -> Particles:
    """All bodies of a recording, with what does not change."""
    x, v = np.zeros((2, run.count, run.dimensions))
    return Particles(run.mass, x, v, run.id, species=run.species, species_names=run.species_names, radius=run.radius)


def _header(run: RecordedFrames, file: FrameFile, **changes: Any) -> RunHeader:
    """The header of a copy: that of a recording, with ``changes``."""
    header = RunHeader(
        run.planned, str(file.dtype), run.scenario_text, run.resolved, run.stored_provenance, file.slot_bytes, run.widths,
        file.events.capacity if file.events else 0, file.count - file.bodies,
    )  # fmt: skip
    return replace(header, **changes)


def _copy(
    run: RecordedFrames, file: FrameFile, part: Path, bodies: Particles, header: RunHeader, keep: int, events: int,
    checkpoint: Checkpoint | None,
) -> FrameFile:  # fmt: skip
    """A copy of the first ``keep`` frames and ``events`` of a recording with these bodies, and of a checkpoint."""
    check_space(part, required_bytes(bodies.count, header), "the longer recording, made as a copy,", RESUMED)
    copy = make_file(part, bodies, header)
    try:
        if copy.count == file.count and header.observables == run.widths:
            for name, rows in copy.rows.items():
                _copy_bytes(file.fd, copy.fd, file.rows[name].offset, rows.offset, keep * rows.row_bytes)
        else:
            _copy_frames(run, copy, keep)
        if copy.events and file.events:
            if copy.events.dtype == file.events.dtype:
                count = events * copy.events.row_bytes
                _copy_bytes(file.fd, copy.fd, file.events.offset, copy.events.offset, count)
            else:
                copy.write_events(0, file.events.read(0, events))
        copy.set_events(events)
        for name in file.commit.dtype.names or ():
            copy.commit[name] = file.commit[name]
        copy.set_length(keep)
        if checkpoint is not None:
            copy.write_slot(checkpoint.sequence, pack(checkpoint))
        copy.write_commit()
    except BaseException:
        copy.close()
        raise
    return copy


def _copy_frames(run: RecordedFrames, copy: FrameFile, keep: int) -> None:
    """Write frames with other bodies or more observables."""
    for k in range(keep):
        frame = run.frame(k)
        for name in ("position", "velocity"):
            setattr(frame, name, getattr(frame, name)[: copy.bodies])
        before = {"bodies": float(np.count_nonzero(run.left(k).alive)), "booked_energy": booked(frame.observables)}
        frame.observables = {**before, **frame.observables}
        copy.write_frames(k, [frame])


def _copy_bytes(source: int, target: int, offset: int, to: int, count: int) -> None:
    """Copy ``count`` bytes between two open files, inside the kernel if possible."""
    while count:
        try:
            done = os.copy_file_range(source, target, min(count, COPY_BLOCK), offset, to)
        except (AttributeError, OSError):
            done = os.pwrite(target, os.pread(source, min(count, COPY_BLOCK), offset), to)
        if not done:
            raise OSError(0, "the file has become shorter")
        offset, to, count = offset + done, to + done, count - done
