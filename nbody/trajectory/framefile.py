"""Puts frames into a file that has room for them, without the HDF5 library (h5format.py says why).

The order of the writes is what makes a crash harmless: a frame's rows first, where nobody looks yet; then the
lengths, that of the positions last, because other programs take the number of frames from there.

Frames may come in groups: their rows lie one after the other, so that each dataset takes one write a group, and so does
each length. One thread writes, because a file takes one write at a time (ext4 and tmpfs lock it: two threads are no
faster, and burn a processor waiting). So a group takes as long as what that thread does: other threads work out all but
positions and velocities while these are written, and the small writes wait until nobody else wants Python's lock.
"""

import os
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nbody.particles import Particles
from nbody.trajectory import h5format, layout
from nbody.trajectory.frame import OBSERVABLES, Frame
from nbody.trajectory.header import RunHeader
from nbody.trajectory.rows import Contiguous, write
from nbody.trajectory.structure import DATASET, Structure
from nbody.trajectory.threads import Threads

ROWS = (
    layout.TIME,
    layout.STEP,
    *(layout.observable(name) for name in OBSERVABLES),
    layout.CHECKSUMS,
    layout.VELOCITY,
    layout.VTK_VELOCITY,
    layout.VTK_POINTS,
    layout.POSITION,
)
"""The datasets with one row a frame, in the order in which their lengths are raised."""

NUMBERS = np.dtype(
    [
        (layout.TIME, "<f8"),
        (layout.STEP, "<i8"),
        *((layout.observable(name), "<f8", () if width == 1 else (width,)) for name, width in OBSERVABLES.items()),
    ]
)
"""All of a frame but its positions and velocities, in the order in which their checksum is taken."""


class FrameFile:
    """The open file of a run.

    Attributes:
        capacity: how many frames it has room for.
        slot_bytes: how large a checkpoint may be.
        commit: the commit record, of dtype :data:`~nbody.trajectory.layout.COMMIT_DTYPE`.
    """

    def __init__(self, path: Path) -> None:
        """Open ``path``, a file that skeleton.py made (and, if it is a stranger's, that opening.py found sound)."""
        self.fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            self._locate()
        except BaseException:
            os.close(self.fd)
            raise
        self._threads = Threads()

    def _locate(self) -> None:
        """Find where everything is. Raises UnknownFormat."""
        find = Structure(self.fd).find
        found = {name: find(name) for name in (*ROWS, layout.COMMIT, *layout.SLOTS)}
        self.capacity = int(found[layout.POSITION].attributes[layout.PLANNED])
        self.dtype, self.count = found[layout.POSITION].dtype, found[layout.POSITION].shape[1]
        self.rows = {name: Contiguous(self.fd, found[name]) for name in ROWS if not _is_view(name)}
        self._lengths_at = {name: h5format.length_address(self.fd, found[name].header) for name in ROWS}
        slots = [Contiguous(self.fd, found[name]) for name in layout.SLOTS if found[name].kind == DATASET]
        self._slots_at = [slot.offset for slot in slots]
        self.slot_bytes = min((slot.capacity for slot in slots), default=0)
        commit = Contiguous(self.fd, found[layout.COMMIT])
        self._commit_at, self.commit = commit.offset, commit.read(0, 1)
        self._nsteps_at = h5format.attribute_address(self.fd, find(layout.VTK_STEPS).header, "NSteps")
        self._shown = self.rows[layout.POSITION].length()  # after a kill, other than the commit record says
        size = os.fstat(self.fd).st_size
        if any(self.capacity > rows.capacity or rows.end > size for rows in self.rows.values()):
            raise h5format.UnknownFormat("no room for the frames it was planned for")

    def share_vtk(self) -> None:
        """Let the VTKHDF view's two arrays be the bytes of the H5MD arrays; once, when the file is made."""
        known = Structure(self.fd)
        for view, source in ((layout.VTK_POINTS, layout.POSITION), (layout.VTK_VELOCITY, layout.VELOCITY)):
            at = h5format.storage_address(self.fd, known.find(view).header)
            write(self.fd, [struct.pack("<Q", self.rows[source].offset)], at)

    def reserve(self) -> None:
        """Have the file system set the whole file's blocks aside now, so that the disk can't fill up during the run.

        Raises OSError when it can't.
        """
        size = os.fstat(self.fd).st_size
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self.fd, 0, size)

    def write_frames(self, k: int, frames: Sequence[Frame]) -> None:
        """Store frames ``k``, ``k`` + 1 … in their room; :meth:`set_length` makes them visible."""
        position = [self._three_columns(frame.position) for frame in frames]
        velocity = [self._three_columns(frame.velocity) for frame in frames]
        size = 2 * len(frames) * self.rows[layout.POSITION].row_bytes
        small = self._threads.begin(lambda: self._small_rows(frames, position, velocity), size)
        try:
            self.rows[layout.VELOCITY].write(k, *velocity)
            self.rows[layout.POSITION].write(k, *position)
        finally:  # in any case: who handed the arrays over may use their memory again
            rows = small()
        for name, data in rows.items():
            self.rows[name].write(k, data)

    def _small_rows(
        self, frames: Sequence[Frame], position: Sequence[np.ndarray], velocity: Sequence[np.ndarray]
    ) -> dict[str, bytes]:
        """The rows of every dataset but positions and velocities."""
        numbers = np.array([_numbers(frame) for frame in frames], NUMBERS)
        sums = self._threads.checksums(position, velocity, [row.tobytes() for row in numbers])
        rows = {name: numbers[name].tobytes() for name in NUMBERS.names or ()}
        rows[layout.CHECKSUMS] = np.array(sums, "<u4").T.tobytes()
        return rows

    def _three_columns(self, values: np.ndarray) -> np.ndarray:
        """``values`` as a contiguous (N, 3) array of the file's dtype; z = 0 in two dimensions. (What a run records has
        that form already: to copy a frame of 20480 particles from two columns takes as long as to write it.)"""
        if values.shape == (self.count, 3) and values.dtype == self.dtype and values.flags.c_contiguous:
            return values
        found = np.zeros((self.count, 3), self.dtype)
        np.copyto(found[:, : values.shape[1]], values, casting="same_kind")
        return found

    def set_length(self, frames: int) -> None:
        """Make the first ``frames`` frames, no fewer than one, what readers see. Lengths are raised in the order of
        :data:`ROWS` and lowered in reverse, so that there is never a position without its time."""
        down = frames < self._shown
        fields = [(at, frames * (self.count if _is_view(name) else 1)) for name, at in self._lengths_at.items()]
        fields.append((self._nsteps_at, frames))
        for at, length in reversed(fields) if down else fields:
            write(self.fd, [struct.pack("<Q", length)], at)
            if at == self._lengths_at[layout.POSITION]:
                self._shown = frames
        self.commit["frames"] = frames

    def write_commit(self) -> None:
        """Write the commit record."""
        write(self.fd, [self.commit.tobytes()], self._commit_at)

    def write_slot(self, sequence: int, packed: bytes) -> None:
        """Store a packed checkpoint where the one before the last was. Raises ValueError if it does not fit."""
        if len(packed) > self.slot_bytes:
            raise ValueError(f"a checkpoint of {len(packed)} bytes in a file with room for {self.slot_bytes}")
        write(self.fd, [packed], self._slots_at[sequence % 2])

    def sync(self) -> None:
        """Return when the disk has everything written so far."""
        getattr(os, "fdatasync", os.fsync)(self.fd)

    def close(self) -> None:
        """Close the file; what it holds is what it held before."""
        self._threads.close()
        os.close(self.fd)


def make_file(path: Path, particles: Particles, header: RunHeader) -> FrameFile:
    """A new file at ``path`` with room for all of ``header.frames``, set aside on the disk, and no frame yet.

    Raises OSError (for one, where the disk is too small).
    """
    from nbody.trajectory import skeleton  # imports h5py, 0.15 s, which going on with a file does without

    skeleton.create(path, particles, header)
    file = FrameFile(path)
    try:
        file.share_vtk()
        file.reserve()
    except BaseException:
        file.close()
        raise
    return file


def _numbers(frame: Frame) -> tuple:
    """A row of :data:`NUMBERS`."""
    observables = (frame.observables.get(name, np.nan) for name in OBSERVABLES)
    return (frame.time, frame.step, *observables)


def _is_view(name: str) -> bool:
    """True for the arrays of the VTKHDF view, which have a row a particle and no bytes of their own."""
    return name in (layout.VTK_POINTS, layout.VTK_VELOCITY)
