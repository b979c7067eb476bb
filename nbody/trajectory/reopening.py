"""Opens a recording to resume it: in place, or in a larger copy."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbody.errors import InputError
from nbody.trajectory.checkpoint import META_ROOM, Checkpoint, pack, read_checkpoint, state_bytes
from nbody.trajectory.framefile import FrameFile, make_file
from nbody.trajectory.h5format import UnknownFormat
from nbody.trajectory.opening import one_line
from nbody.trajectory.output_path import RESUMED, check_space
from nbody.trajectory.reader import Trajectory
from nbody.trajectory.records import RunHeader, required_bytes

COPY_BLOCK = 2**26


def continue_file(
    path: Path, part: Path, checkpoint: Checkpoint, keep: int, frames: int, resolved: Mapping[str, Any] | None
) -> FrameFile:
    """The file to record into: the file at ``path`` if it has room and the same scenario, else a copy at ``part``. Call this
    with the lock held. Arguments as for :meth:`~nbody.trajectory.writer.TrajectoryWriter.reopen`."""
    if read_checkpoint(path).sequence != checkpoint.sequence:
        raise InputError(f"{path}: another run has gone on with it meanwhile; try again")
    with Trajectory(path) as run:
        frames = max(frames or run.planned, keep)
        if not 1 <= keep <= len(run):
            raise InputError(f"{path}: has {len(run)} frames, and is to go on after frame {keep - 1}; it is damaged")
        resolved = run.resolved if resolved is None else json.loads(json.dumps(resolved))  # as it would come back
        file = _for_writing(path)
        try:
            header = RunHeader(
                frames=frames,
                dtype=str(file.dtype),
                scenario_text=run.scenario_text,
                resolved=resolved,
                provenance=run.stored_provenance,
                state_bytes=state_bytes(checkpoint.state, checkpoint.meta),
                observables=run.widths,
                events=file.events.capacity if file.events else 0,
            )
            has_room = frames <= file.capacity and header.state_bytes - META_ROOM <= file.slot_bytes
            if has_room and resolved == run.resolved:
                return file
            check_space(path, required_bytes(run.count, header), "the longer recording, made as a copy,", RESUMED)
            copy = make_file(part, run.particles(0), header)
            _fill(copy, file, keep, checkpoint)
        except BaseException:
            file.close()
            raise
        file.close()
        return copy


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


def _fill(copy: FrameFile, file: FrameFile, keep: int, checkpoint: Checkpoint) -> None:
    """Write the first ``keep`` frames of ``file`` and the checkpoint to ``copy``; close it if that fails."""
    try:
        for name, rows in copy.rows.items():
            _copy_bytes(file.fd, copy.fd, file.rows[name].offset, rows.offset, keep * rows.row_bytes)
        if copy.events and file.events:
            count, row = events_until(checkpoint), copy.events.row_bytes
            _copy_bytes(file.fd, copy.fd, file.events.offset, copy.events.offset, count * row)
            copy.set_events(count)
        for name in file.commit.dtype.names or ():
            copy.commit[name] = file.commit[name]
        copy.set_length(keep)
        copy.write_slot(checkpoint.sequence, pack(checkpoint))
        copy.write_commit()
    except BaseException:
        copy.close()
        raise


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
