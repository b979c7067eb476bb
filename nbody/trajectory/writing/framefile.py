"""Writes frames into a file that has room for them, without the HDF5 library (h5format.py explains why).

The order of the writes makes a crash harmless: first the rows of a frame, which no reader reads yet; then the lengths. The
length of the positions is last, because other programs take the number of frames from it.

Frames may be written in groups: their rows are contiguous, so that each dataset and each length needs one write per group.
One thread writes, because ext4 and tmpfs lock a file during a write: two threads are no faster, and one of them would only
wait. Other threads compute checksums and the small rows while it writes positions and velocities.
"""

import os
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nbody.particles import Particles
from nbody.state.frames import Frame
from nbody.trajectory.structure import layout
from nbody.trajectory.structure.contents import DATASET, UnknownFormat, parse_json, read_index
from nbody.trajectory.structure.header import RunHeader
from nbody.trajectory.structure.opening import Bytes, DatasetRows, OpenFile, write
from nbody.trajectory.writing.background import Threads


class FrameFile:
    """The open file of a run.

    Attributes:
        file: it, open; ``fd``: its descriptor.
        rows: the datasets with one row per frame, by name; there is room for ``capacity`` frames.
        events: the table of events; None if there is none.
        bodies: the number of bodies so far; there is room for ``count``.
        species: the number of names of species.
        slot_bytes: the largest size of a checkpoint.
        commit: the commit record, of dtype :data:`layout.COMMIT_DTYPE`.
    """

    def __init__(self, path: Path) -> None:
        """Raises InputError (see :mod:`opening`), or UnknownFormat if it can be read but not recorded into."""
        self.file = OpenFile(path, writable=True)
        self.fd = self.file.fd
        try:
            self._locate()
        except BaseException:
            self.file.close()
            raise
        self._threads = Threads()

    def _locate(self) -> None:
        """Find the addresses of all data. Raises UnknownFormat."""
        found, names = self.file.found, layout.rows_per_frame(self.file.observables)
        values = [(layout.observable(each), "<f8", (width,)) for each, width in self.file.observables.items()]
        self.numbers = np.dtype([(layout.TIME, "<f8"), (layout.STEP, "<i8"), *values])  # in the order of their checksum
        dtypes = {name: self.numbers[name].base for name in self.numbers.names or ()} | {layout.CHECKSUMS: "<u4"}
        slots = [name for name in layout.SLOTS if found[name].kind == DATASET]
        for name in (*names, *slots, layout.COMMIT):
            expected = dtypes.get(name, found[name].dtype.newbyteorder("<"))
            if found[name].offset is None or found[name].dtype != expected:
                raise UnknownFormat(f"/{name} is stored in another way")
        self.capacity = int(found[layout.POSITION].attributes[layout.PLANNED])
        self.dtype, self.count = found[layout.POSITION].dtype, found[layout.POSITION].shape[1]
        self.bodies = int(found[layout.ID].attributes.get(layout.BODIES, self.count))
        self.species = len(parse_json(found[layout.SPECIES].attributes.get(layout.SPECIES_NAMES, "[]")))
        self.rows = {name: DatasetRows(self.fd, found[name]) for name in names}
        self._lengths_at: dict[str, int] = {}
        for name in layout.growing(self.file.observables):
            at = found[name].length_at
            if at is None:
                raise UnknownFormat(f"nbody can't change the length of /{name}")
            self._lengths_at[name] = at
        self._slots_at = [DatasetRows(self.fd, found[name]).offset for name in slots]
        self.slot_bytes = min((found[name].stored for name in slots), default=0) if len(slots) == 2 else 0
        self._commit = DatasetRows(self.fd, found[layout.COMMIT])
        self.events, self._events_at = None, found[layout.EVENTS].length_at
        if found[layout.EVENTS].kind == DATASET:
            if found[layout.EVENTS].offset is None or self._events_at is None:
                raise UnknownFormat(f"/{layout.EVENTS} is stored in another way")
            self.events = DatasetRows(self.fd, found[layout.EVENTS])
        self._shown = self.rows[layout.POSITION].length()  # after a kill it may differ from the commit record
        self._read_commit()
        self._size = os.fstat(self.fd).st_size
        self._has_index = read_index(self.fd) is not None
        if any(self.capacity > rows.capacity for rows in self.rows.values()):
            raise UnknownFormat("no room for the frames it was planned for")

    def _read_commit(self) -> None:
        """Read the commit record; begin a new one if it is damaged."""
        self.commit = self._commit.read(0, 1)
        self._committed: bytes | None = None
        if not layout.is_whole(self.commit):
            self.commit = np.zeros(1, self.commit.dtype)
            self.commit["frames"], self.commit["status"] = self._shown, layout.RUNNING.encode()

    def reserve(self) -> None:
        """Reserve the whole file's blocks on the disk, so that it can't fill up during the run. Raises OSError."""
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self.fd, 0, self._size)

    def is_intact(self) -> bool:
        """False if another program has truncated or overwritten the file: its size, its structure or its commit record
        differs from what was written."""
        if os.fstat(self.fd).st_size != self._size or (self._has_index and read_index(self.fd) is None):
            return False
        return self._committed is None or self._commit.read(0, 1).tobytes() == self._committed

    def write_frames(self, k: int, frames: Sequence[Frame]) -> None:
        """Write frames ``k``, ``k`` + 1 … at their addresses; :meth:`set_length` makes them visible."""
        position = [self._three_columns(frame.position) for frame in frames]
        velocity = [self._three_columns(frame.velocity) for frame in frames]
        size = 2 * len(frames) * self.rows[layout.POSITION].row_bytes
        small = self._threads.begin(lambda: self._small_rows(frames, position, velocity), size)
        try:
            self.rows[layout.VELOCITY].write(k, *velocity)
            self.rows[layout.POSITION].write(k, *position)
        finally:  # in any case: the caller may reuse the memory of the arrays
            rows = small()
        for name, data in rows.items():
            self.rows[name].write(k, data)

    def _small_rows(
        self, frames: Sequence[Frame], position: Sequence[np.ndarray], velocity: Sequence[np.ndarray]
    ) -> dict[str, bytes]:
        """The rows of every dataset but positions and velocities."""
        numbers = np.array([self._numbers(frame) for frame in frames], self.numbers)
        sums = self._threads.checksums(position, velocity, [row.tobytes() for row in numbers])
        rows = {name: numbers[name].tobytes() for name in self.numbers.names or ()}
        rows[layout.CHECKSUMS] = np.array(sums, "<u4").T.tobytes()
        return rows

    def _numbers(self, frame: Frame) -> tuple:
        """A row of :attr:`numbers`."""
        return (frame.time, frame.step, *(frame.observables.get(name, np.nan) for name in self.file.observables))

    def _three_columns(self, values: np.ndarray) -> np.ndarray:
        """``values`` as a contiguous (N, 3) array of the file's dtype; z = 0 in two dimensions, NaN of bodies that are not
        there yet. (The snapshots of a run without such bodies already have this form: converting a frame of 20480 particles
        from two columns takes as long as writing it.)"""
        if values.shape == (self.count, 3) and values.dtype == self.dtype and values.flags.c_contiguous:
            return values
        found = np.zeros((self.count, 3), self.dtype)
        np.copyto(found[: len(values), : values.shape[1]], values, casting="same_kind")
        found[len(values) :] = np.nan
        return found

    def set_length(self, frames: int) -> None:
        """Make the first ``frames`` frames, at least one, visible to readers. Lengths are lowered in the reverse order of
        raising them, so that there is never a position without its time."""
        names = list(self._lengths_at)
        for name in names if frames >= self._shown else names[::-1]:
            length = frames * (self.count if name in layout.VIEWS else 1)
            write(self.fd, [struct.pack("<Q", length)], self._lengths_at[name])
            if name == layout.POSITION:
                self._shown = frames
        self.commit["frames"] = frames

    def add_bodies(self, added: np.ndarray) -> None:
        """Write what other programs read of bodies that are added by these events, into the room for them."""
        columns = {layout.MASS: "mass_2", layout.ID: "id_1", layout.SPECIES: "id_2", layout.RADIUS: "radius_2"}
        for name, column in columns.items():
            if (found := self.file.found[name]).kind == DATASET:
                DatasetRows(self.fd, found).write(self.bodies, added[column].astype(found.dtype))
        self.bodies += len(added)

    def write_events(self, k: int, events: np.ndarray) -> None:
        """Write events ``k``, ``k`` + 1 … at their addresses; :meth:`set_events` makes them visible."""
        assert self.events is not None
        self.events.write(k, layout.with_sums(layout.events_as(events, self.events.dtype)))

    def set_events(self, count: int) -> None:
        """Make the first ``count`` events visible to readers."""
        if self.events is not None and self._events_at is not None:
            write(self.fd, [struct.pack("<Q", count)], self._events_at)

    def write_commit(self) -> None:
        if "crc32" in (self.commit.dtype.names or ()):
            self.commit["crc32"] = layout.commit_sum(self.commit)
        self._committed = self.commit.tobytes()
        self._commit.write(0, self._committed)

    def write_slot(self, sequence: int, parts: Sequence[Bytes]) -> None:
        """Store a packed checkpoint over the one before the last. Raises ValueError if it does not fit."""
        size = sum(map(len, parts))
        if size > self.slot_bytes:
            raise ValueError(f"a checkpoint of {size} bytes in a file with room for {self.slot_bytes}")
        write(self.fd, parts, self._slots_at[sequence % 2])

    def sync(self) -> None:
        """Return when the disk has confirmed all writes so far."""
        getattr(os, "fdatasync", os.fsync)(self.fd)

    def close(self) -> None:
        """Close the file, without changing it."""
        self._threads.close()
        self.file.close()


def make_file(path: Path, particles: Particles, header: RunHeader) -> FrameFile:
    """A new file at ``path`` with room for all of ``header.frames``, reserved on the disk, and no frame yet.

    Raises OSError (for example if the disk is too small).
    """
    from nbody.trajectory.writing import skeleton  # imports h5py (0.15 s), which a resume does not need

    skeleton.create(path, particles, header)
    file = FrameFile(path)
    try:
        file.reserve()
        file.set_events(0)
    except BaseException:
        file.close()
        raise
    return file
