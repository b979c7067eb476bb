"""``TrajectoryWriter``: records a run so that the file is valid after a crash at any moment."""

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nbody.errors import InputError, RunFailed
from nbody.output_file import FileKind, as_input_error
from nbody.particles import Particles
from nbody.state.frames import Frame
from nbody.trajectory.lock import WriterLock, same_file
from nbody.trajectory.structure import layout
from nbody.trajectory.structure.header import RunHeader, required_bytes
from nbody.trajectory.writing import output_path
from nbody.trajectory.writing.background import BackgroundSync
from nbody.trajectory.writing.checkpoint import Checkpoint, pack, state_bytes
from nbody.trajectory.writing.framefile import FrameFile, make_file
from nbody.trajectory.writing.larger import continue_file, events_until, with_more_room
from nbody.whole_file import Notify, keep_older_file

Array = np.ndarray

UNCHANGED = "no file has been made or changed"


class TrajectoryWriter:
    """Records frames in ``path``. The file appears, and can be opened, with its first frame; if the run makes checkpoints
    (``header.state_bytes``), with the first checkpoint, so that it can be resumed, or when it is closed without one.

    Args:
        path: an existing file is renamed to a numbered name (``run.1.h5``).
        particles: the bodies at the start, for the constants of the file.
        overwrite: replace an existing file instead; it disappears when the first frame of the new file is written.
        notify: receives one line if an existing file is renamed, or if the file system has no locks.

    Raises:
        InputError: the path can't be written, or the disk is too small; nothing has been created.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        particles: Particles,
        header: RunHeader,
        *,
        overwrite: bool = False,
        notify: Notify = lambda line: None,
    ) -> None:
        self.path = output_path.check_output(path)
        output_path.check_space(path, required_bytes(particles.count, header), f"recording {header.frames} frames")
        with as_input_error(self.path, output_path.RECORDING):
            self.path.parent.mkdir(exist_ok=True)
        self._begin(lambda part: make_file(part, particles, header), output_path.RECORDING, overwrite, notify)
        self._waits_for_checkpoint = header.state_bytes > 0

    @classmethod
    def reopen(
        cls,
        path: str | os.PathLike,
        checkpoint: Checkpoint,
        *,
        frames: int = 0,
        keep: int | None = None,
        resolved: Mapping[str, Any] | None = None,
        notify: Notify = lambda line: None,
    ) -> "TrajectoryWriter":
        """Resume a recording from its newest checkpoint, after a crash or an orderly end.

        Frames after the checkpoint are dropped when the first new frame or checkpoint is recorded. If the file has too
        little room, a larger copy replaces it when the copy is complete.

        Args:
            frames: the total number of frames of the run; 0 for the planned number.
            keep: the number of frames to keep, if not all up to the checkpoint.
            resolved: the scenario, if it has changed.

        Raises:
            InputError: not a recording; another run is writing it, or has; no disk space for the larger copy.
        """
        writer = cls.__new__(cls)
        writer.path = output_path.check_output(path, output_path.RESUMED)
        keep = checkpoint.frames if keep is None else min(keep, checkpoint.frames)
        prepare = partial(continue_file, writer.path, checkpoint=checkpoint, keep=keep, frames=frames, resolved=resolved)
        writer._begin(prepare, output_path.RESUMED, True, notify)
        writer._sequence, writer._restart_at, writer._events = checkpoint.sequence, keep, events_until(checkpoint)
        return writer

    def _begin(self, prepare: Callable[[Path], FrameFile], kind: FileKind, overwrite: bool, notify: Notify) -> None:
        """Take the lock, and the file that ``prepare(part)`` makes at ``part`` or opens; leave nothing if it fails."""
        self._overwrite, self._notify = overwrite, notify
        with as_input_error(self.path, kind):
            self._lock = WriterLock(self.path, notify)
        part = self.path.with_name(f".{self.path.name}.part")
        try:
            with as_input_error(self.path, kind):
                part.unlink(missing_ok=True)  # left by a run that was killed before its first frame
                self._file: FrameFile | None = prepare(part)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            self._lock.release()
            raise
        self._part = part if part.exists() else None
        self._sequence = self._events = 0
        self._restart_at: int | None = None
        self._waits_for_checkpoint = self._has_failed = self._bodies_change = False
        self._started = time.perf_counter() - float(self._file.commit["wall_s"][0])
        self._sync = BackgroundSync(self._file.sync)

    @property
    def frames(self) -> int:
        return int(self._open_file().commit["frames"][0]) if self._restart_at is None else self._restart_at

    def append(self, frame: Frame) -> None:
        """Record a frame. When this returns, the frame is visible to every reader and safe from a kill. Raises RunFailed:
        the file can't be written any more; earlier frames stay valid."""
        self.append_many([frame])

    def append_many(self, frames: Sequence[Frame]) -> None:
        """Record consecutive frames, as :meth:`append` for each, but all of them become visible at once; if not all fit on
        the disk, those that fit are kept. (20480 particles in float32 take 0.10 ms per frame in groups of 16 on tmpfs, where
        plain writes of the same bytes take 0.09, and 0.3 to 0.5 one by one; an H200's host, 16 cores.)"""
        file, k = self._open_file(), self.frames
        end = k + len(frames)
        with self._as_run_failed(f"frame {k}"):
            self._hide_dropped()
            if end > file.capacity:  # how many there are was not known
                file = self._enlarge(np.zeros(0, layout.EVENT_DTYPE), frames=max(2 * file.capacity, end))
            try:
                file.write_frames(k, frames)
            except OSError:
                if len(frames) == 1:
                    raise
                for frame in frames:
                    self.append(frame)
                return
            file.set_length(end)
            file.commit["status"] = layout.RUNNING.encode()
            file.commit["wall_s"] = time.perf_counter() - self._started
            file.write_commit()
            if self._part and (end > 1 or not self._waits_for_checkpoint):
                self._publish()
            confirmed = self._sync.poll(end)
            if confirmed is not None:
                self._check_intact()
                self._note_synced(confirmed)

    def append_events(self, events: Array, species_names: tuple[str, ...] = ()) -> None:
        """Record events, rows of :data:`layout.EVENT_DTYPE`. If the file has no room for them, for the bodies that they
        add, or for the names of their species, a larger copy replaces it. Raises as :meth:`append`."""
        file, kind = self._open_file(), events["kind"]
        room = 0 if file.events is None else file.events.capacity - self._events
        changes = bool(np.isin(kind, layout.BOOKED).any())
        added = np.isin(kind, layout.ADDED)
        self._bodies_change |= changes or bool(added.any())  # then checkpoints grow
        books = changes and layout.observable("booked_energy") not in file.rows
        with self._as_run_failed("an event"):
            self._hide_dropped()
            named = len(species_names) <= file.species or not added.any()
            if len(events) > room or books or added.sum() > file.count - file.bodies or not named:
                file = self._enlarge(events, species_names=species_names)
            else:
                file.add_bodies(events[added])
            file.write_events(self._events, events)
            file.set_events(self._events + len(events))
        self._events += len(events)

    def _enlarge(self, events: Array, **more: Any) -> FrameFile:
        """Replace the file by a copy with room for these events, and ``more`` as of :func:`~.larger.with_more_room`."""
        file, where = self._open_file(), self._part or self.path
        self._sync.finish()
        larger = where.with_name(f".{self.path.name}.larger")
        larger.unlink(missing_ok=True)
        try:
            copy = with_more_room(where, larger, file, self._events, events, **more)
        except InputError as error:
            raise RunFailed(f"{error}; the {self.frames} frames so far are kept") from None
        copy.sync()
        os.replace(larger, where)
        output_path.sync_folder(where.parent)
        file.close()
        self._file, self._sync = copy, BackgroundSync(copy.sync)
        return copy

    def _hide_dropped(self) -> None:
        """After :meth:`reopen`: hide the dropped frames and events before anything new is written."""
        if self._restart_at is not None:
            file = self._open_file()
            file.set_length(self._restart_at)
            file.set_events(self._events)
            self._restart_at = None
            file.commit["status"] = layout.RUNNING.encode()
            self._note_synced(min(int(file.commit["synced"][0]), self.frames))
            file.sync()

    def _publish(self) -> None:
        """Give the file its final name, atomically, when it has a frame."""
        assert self._part and self._file
        if not same_file(self._file.fd, self._part):
            raise RunFailed(f"{self.path}: can't be given its name any more ({self._part.name} is gone); {UNCHANGED}")
        self._file.sync()
        self._check_intact()
        try:
            if not self._overwrite:
                keep_older_file(self.path, self._notify)
            os.replace(self._part, self.path)
        except OSError as error:
            raise RunFailed(f"{self.path}: can't be given its name any more ({error.strerror}); {UNCHANGED}") from error
        self._part = None
        output_path.sync_folder(self.path.parent)

    def _note_synced(self, frames: int) -> None:
        file = self._open_file()
        file.commit["synced"] = frames
        file.write_commit()

    def checkpoint(self, state: Mapping[str, Array], meta: Mapping[str, Any]) -> None:
        """Store the engine's state after the last recorded frame or later. When this returns, the disk has confirmed it and
        the frames before it. Call it from the thread that appends.

        Raises:
            RunFailed: the file can't be written any more; the previous checkpoint stays valid.
            ValueError: there is no frame yet, or the state is larger than the header declares.
        """
        if not self.frames:
            raise ValueError("a checkpoint needs a frame before it")
        with self._as_run_failed("a checkpoint"):
            self._hide_dropped()
        self.sync()
        with self._as_run_failed("a checkpoint"):
            packed = pack(Checkpoint(state, meta, self.frames, self._sequence + 1))
            file = self._open_file()
            if sum(map(len, packed)) > file.slot_bytes > 0 and self._bodies_change:
                self._enlarge(np.zeros(0, layout.EVENT_DTYPE), slot_bytes=state_bytes(state, meta))
            self._open_file().write_slot(self._sequence + 1, packed)
            self._open_file().sync()
            if self._part:
                self._publish()
        self._sequence += 1

    def sync(self) -> None:
        """Return when the disk has confirmed every frame recorded so far."""
        with self._as_run_failed("the recording"):
            self._sync.finish()
            self._check_intact()
            file = self._open_file()
            file.sync()
            # The system reports a failed write only once; later confirmations may not include those frames.
            self._note_synced(int(file.commit["synced"][0]) if self._has_failed else self.frames)

    def close(self, complete: bool = True) -> None:
        """End the recording; ``complete``: it is the whole run. Without any frame the file is removed."""
        if self._file is None:
            return
        file = self._file
        try:
            with self._as_run_failed("the recording"):
                self._sync.finish()
                if complete:
                    self._hide_dropped()
                if self._part and self._waits_for_checkpoint and self.frames and not self._has_failed:
                    self._publish()
            if self._part is None and self._restart_at is None:
                file.commit["status"] = (layout.COMPLETE if complete else layout.STOPPED).encode()
                self.sync()
                with self._as_run_failed("the recording"):
                    file.sync()  # the status itself
                    self._check_intact()
        finally:
            self._file = None
            file.close()
            if self._part:
                with contextlib.suppress(OSError):
                    self._part.unlink(missing_ok=True)
            self._lock.release()

    def __enter__(self) -> "TrajectoryWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            self.close(complete=kind is None)
        except RunFailed:
            if kind is None:
                raise  # else the error that ended the run is the one to show

    def _open_file(self) -> FrameFile:
        if self._file is None:
            raise ValueError(f"{self.path}: the recording has been closed")
        return self._file

    def _check_intact(self) -> None:
        """Raise RunFailed if another program has removed, replaced, truncated or overwritten the file. (Writes to the open
        file would not fail.)"""
        file = self._open_file()
        if self._part is None and not same_file(file.fd, self.path):
            raise RunFailed(f"{self.path}: was removed or replaced while the run was writing it; the run stops")
        if not file.is_intact():
            raise RunFailed(
                f"{self.path}: another program truncated or overwrote it while the run was writing it; the run stops, and "
                "the file is damaged"
            )

    @contextlib.contextmanager
    def _as_run_failed(self, what: str):
        try:
            yield
        except BaseException as error:
            self._has_failed = True
            if not isinstance(error, OSError):
                raise
            kept = (
                f"the {self.frames} frames before it are whole; mend the disk, then 'nbody resume' goes on from the last "
                "checkpoint"
            )
            raise RunFailed(
                f"{self.path}: writing {what} failed ({error.strerror}); {UNCHANGED if self._part else kept}"
            ) from error
