"""``Trajectory``: the frames of a recording by index, while the run goes on or after it."""

import json
import os
import zlib
from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import h5py
import numpy as np

from nbody.errors import InputError
from nbody.particles import Particles
from nbody.trajectory import layout, place
from nbody.trajectory.frame import OBSERVABLES, Frame
from nbody.trajectory.opening import member, one_line, open_file
from nbody.trajectory.rows import Contiguous, rows_of

Array = np.ndarray

PER_FRAME = (
    layout.POSITION,
    layout.VELOCITY,
    layout.STEP,
    layout.TIME,
    layout.CHECKSUMS,
    *(layout.observable(name) for name in OBSERVABLES),
    layout.COMMIT,
)


class Column:
    """The positions or velocities of a trajectory: ``column[k]`` is those of frame ``k``, (N, D), checked."""

    def __init__(self, trajectory: "Trajectory", name: str, checksum: int) -> None:
        self._trajectory, self._name, self._checksum = trajectory, name, checksum

    def __len__(self) -> int:
        return len(self._trajectory)

    def __getitem__(self, frame: int | slice) -> Array:
        """Frame ``frame``, counted from the end if negative: (N, D); a slice gives (frames, N, D).

        Raises:
            IndexError: there is no such frame.
            InputError: the bytes on disk are not those that were recorded.
        """
        if isinstance(frame, slice):
            return np.stack([self[k] for k in range(len(self))[frame]])
        k = self._trajectory.index(frame)
        values, sums = self._trajectory.rows((self._name, layout.CHECKSUMS), k)
        if zlib.crc32(values) != sums[self._checksum]:
            what = self._name.split("/")[-2]
            raise InputError(f"{self._trajectory.path}: frame {k}: the {what} has been damaged since it was recorded")
        dimensions = self._trajectory.dimensions
        return values if dimensions == 3 else np.ascontiguousarray(values[:, :2])


class Trajectory:
    """A recording, open for reading. ``with Trajectory(path) as run:`` closes it.

    Attributes:
        path: the file's name.
        step: (T,) int64, and
        time: (T,) float64, of every frame as of the last :meth:`refresh`.
        dimensions: 2 or 3.
        mass: (N,) float64.
        id: (N,) int64.
        position: ``position[k]`` is (N, D); see :class:`Column`.
        velocity: likewise.
        scenario_text: the scenario as its user wrote it.
        resolved: the scenario with every default filled in.
        stored_provenance: :attr:`provenance` without what changes while the run goes on.
        planned: how many frames the run was to record.

    Raises:
        InputError: one line naming the file and what in it is not a recording.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = os.fspath(path)
        file = open_file(path)
        with one_line(path), ExitStack() as on_error:
            on_error.callback(file.close)
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            on_error.callback(os.close, self._fd)
            self.dimensions = int(file[layout.NBODY].attrs[layout.DIMENSIONS])
            self.mass: Array = file[layout.MASS][:].astype(np.float64, copy=False)
            self.id: Array = file[layout.ID][:].astype(np.int64, copy=False)
            self.scenario_text = file[layout.SCENARIO][()].decode()
            self.resolved: dict[str, Any] = json.loads(file[layout.RESOLVED][()].decode())
            self.planned = int(file[layout.POSITION].attrs[layout.PLANNED])
            attributes = member(file, path, layout.PROVENANCE).attrs
            self.stored_provenance = {name: _plain(value) for name, value in attributes.items()}
            self._rows = {name: rows_of(self._fd, file[name]) for name in PER_FRAME}
            on_error.pop_all()
        self._file: h5py.File | None = file
        if all(isinstance(rows, Contiguous) for rows in self._rows.values()):
            file.close()  # nothing more is read through HDF5
        self.position = Column(self, layout.POSITION, 0)
        self.velocity = Column(self, layout.VELOCITY, 1)
        self.refresh()

    def refresh(self) -> int:
        """Look for frames recorded since the last look (30 µs). Returns how many there are now.

        Raises:
            InputError: the file is gone, or another is in its place. The frames seen so far can still be read.
        """
        if not place.same_file(self._open_fd(), place.Path(self.path)):
            gone = "has been replaced by another recording; open it anew"
            raise InputError(f"{self.path}: {gone if os.path.exists(self.path) else 'there is no such file any more'}")
        with one_line(self.path):
            self._frames = min(rows.length() for name, rows in self._rows.items() if name != layout.COMMIT)
            self.step: Array = self._rows[layout.STEP].read(0, self._frames)
            self.time: Array = self._rows[layout.TIME].read(0, self._frames)
        return self._frames

    def _open_fd(self) -> int:
        if self._file is None:
            raise ValueError(f"{self.path}: has been closed")
        return self._fd

    def __len__(self) -> int:
        """How many frames there are, as of the last :meth:`refresh`."""
        return self._frames

    @property
    def count(self) -> int:
        """N."""
        return len(self.mass)

    def index(self, frame: int) -> int:
        """``frame`` counted from the start. Raises IndexError if there is no such frame."""
        k = frame + len(self) if frame < 0 else frame
        if not 0 <= k < len(self):
            raise IndexError(f"{self.path}: there is no frame {frame}; it has {len(self)}, counted from 0")
        return k

    def rows(self, names: Iterable[str], k: int) -> list[Array]:
        """Row ``k`` of datasets of :mod:`.layout`."""
        self._open_fd()
        with one_line(self.path):
            return [self._rows[name].read(k, 1)[0] for name in names]

    def frame(self, frame: int) -> Frame:
        """Frame ``frame``, with its observables."""
        k = self.index(frame)
        values = dict(zip(OBSERVABLES, self.rows(map(layout.observable, OBSERVABLES), k), strict=True))
        return Frame(int(self.step[k]), float(self.time[k]), self.position[k], self.velocity[k], values)

    def particles(self, frame: int) -> Particles:
        """The bodies at frame ``frame``, in float64: initial conditions for another run."""
        moment = self.frame(frame)
        return Particles(self.mass, moment.position, moment.velocity, self.id, moment.time, moment.step)

    def observable(self, name: str) -> Array:
        """An observable of :data:`~nbody.trajectory.frame.OBSERVABLES` at every frame, (T,) or (T, 3)."""
        self._open_fd()
        with one_line(self.path):
            return self._rows[layout.observable(name)].read(0, len(self))

    @property
    def provenance(self) -> dict[str, Any]:
        """How the recording came about: program, packages, machine, command line, and ``status`` and ``wall_s``."""
        return {**self.stored_provenance, "status": self.status, "wall_s": float(self._commit["wall_s"])}

    @property
    def _commit(self) -> Any:
        return self.rows((layout.COMMIT,), 0)[0]

    @property
    def status(self) -> str:
        """``complete``; ``stopped`` early in good order; ``running`` now; or ``killed``, by a crash or a signal."""
        status = self._commit["status"].decode(errors="replace")
        if status == layout.RUNNING and not place.being_written(place.Path(self.path).resolve()):
            return "killed"
        return status

    @property
    def complete(self) -> bool:
        """True if the run recorded all it was asked to."""
        return self.status == layout.COMPLETE

    def verify(self) -> list[str]:
        """Check every frame against its checksums. Returns a line for each thing found damaged."""
        from nbody.trajectory.verify import damage

        return damage(self)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
            os.close(self._fd)

    def __enter__(self) -> "Trajectory":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _plain(value: Any) -> Any:
    """An attribute as Python's own type; JSON text as what it says."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value.item() if isinstance(value, np.generic) else value
