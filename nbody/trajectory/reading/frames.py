"""The frames of a recording as arrays, during the run or after it."""

import os
import struct
import zlib
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np

from nbody.diagnostics.observables import ALWAYS
from nbody.errors import InputError, printable, unknown
from nbody.given import converted, path_text, whole
from nbody.particles import Particles
from nbody.state.frames import Frame
from nbody.trajectory.lock import same_file, writing_process
from nbody.trajectory.reading.column import FrameColumn
from nbody.trajectory.reading.events import Left, left_after, no_events
from nbody.trajectory.structure import layout
from nbody.trajectory.structure.contents import DATASET, MISSING, parse_json
from nbody.trajectory.structure.opening import OpenFile, one_line

Array = np.ndarray

CHECKED = ("position", "velocity", "numbers")
"""What of a frame has a checksum each, in order; the numbers are time, step and observables."""

TORN = 5
"""The number of attempts to read a commit record: its checksum is wrong while it is being written."""


class NoFrame(InputError, IndexError):
    """A recording has no frame with this number."""


class RecordedFrames:
    """A recording, open for reading: its constants, its frames as arrays, and its status.

    Attributes:
        path: the file's name.
        step, time: (T,) int64 and float64, of every frame as of the last :meth:`refresh`.
        dimensions: 2 or 3.
        mass, id: (N,) float64 and int64, with the bodies that were added until the last :meth:`refresh`.
        species: (N,) int64, the component of each body: an index into the names ``species_names``.
        radius: (N,) float64 at the first frame; empty if the bodies have no radii.
        position, velocity: ``position[k]`` is (N, D); see :class:`FrameColumn`.
        scenario_text: the scenario as the user wrote it.
        resolved: the scenario with all defaults.
        dtype: the precision of positions and velocities.
        widths: the names of the observables stored with each frame, and how many numbers each has.
        stored_provenance: :attr:`provenance` without the values that change during the run.
        planned: the planned number of frames.

    Raises:
        InputError: one line with the file and the reason why it is not a valid recording.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = path_text(path)
        file = OpenFile(path)
        with one_line(path), ExitStack() as on_error:
            on_error.callback(file.close)
            self.dimensions = int(file.found[layout.NBODY].attributes[layout.DIMENSIONS])
            self.mass: Array = file.value(layout.MASS).astype(np.float64, copy=False)
            self.id: Array = file.value(layout.ID).astype(np.int64, copy=False)
            self.species, self.species_names = _species(file, len(self.mass))
            has = {name: file.found[name].kind != MISSING for name in (layout.RADIUS, layout.EVENTS)}
            self.radius: Array = file.value(layout.RADIUS).astype(np.float64) if has[layout.RADIUS] else np.empty(0)
            self._events = file.rows(layout.EVENTS) if has[layout.EVENTS] else None
            self.scenario_text = file.text(layout.SCENARIO)
            self.resolved: dict[str, Any] = parse_json(file.text(layout.RESOLVED))
            if not isinstance(self.resolved, dict):
                raise ValueError(f"/{layout.RESOLVED} holds no keys")
            self.planned = int(file.found[layout.POSITION].attributes[layout.PLANNED])
            attributes = file.found[layout.PROVENANCE].attributes
            self.stored_provenance = {printable(name): _parsed(value) for name, value in attributes.items() if name}
            self.widths = file.observables
            self.dtype = file.found[layout.POSITION].dtype.newbyteorder("=")
            self._first = int(file.found[layout.ID].attributes.get(layout.BODIES, len(self.mass)))
            if not 0 < self._first <= len(self.mass):
                raise ValueError(f"/{layout.ID} does not say how many bodies there are")
            self._room = self._first < len(self.mass)
            self._rows = {name: file.rows(name) for name in layout.rows_per_frame(file.observables)}
            on_error.pop_all()
        self._file: OpenFile | None = file
        self._replaced: list[OpenFile] = []  # in which threads may still read
        self.temporary: TemporaryDirectory | None = None
        """The folder that is removed with the file, if the recording is temporary."""
        self.position = self._column(layout.POSITION, "position")
        self.velocity = self._column(layout.VELOCITY, "velocity")
        self.refresh()

    def _column(self, name: str, what: str) -> FrameColumn:
        """The dataset ``name``; ``what``: which of :data:`CHECKED` it is."""

        def frame(k: int) -> Array:
            k = self.index(k)
            values, sums = self._rows_at((name, layout.CHECKSUMS), k)
            if zlib.crc32(values) != sums[CHECKED.index(what)]:
                raise InputError(f"{self.path}: frame {k}: the {what} has been damaged since it was recorded")
            return np.ascontiguousarray(values[: self.count, : self.dimensions])

        def part(k: int, start: int, count: int) -> Array:
            k = self.index(k)
            self._opened()
            with one_line(self.path):
                return self._rows[name].part(k, start, count)

        return FrameColumn(lambda: (len(self), self.count, self.dimensions), self.dtype, frame, part)

    def _rows_at(self, names: Iterable[str], k: int) -> list[Array]:
        """Row ``k`` of each of these datasets."""
        self._opened()
        with one_line(self.path):
            return [self._rows[name].read(k, 1)[0] for name in names]

    def refresh(self) -> int:
        """Look for new frames (30 µs). Returns the number of frames.

        Raises:
            InputError: the file was removed or replaced. The frames known so far can still be read.
        """
        if not same_file(self._opened().fd, self.path):
            self._go_on_with_copy()
        with one_line(self.path):
            self._frames = min(rows.length() for rows in self._rows.values())
            self.step: Array = self._rows[layout.STEP].read(0, self._frames)
            self.time: Array = self._rows[layout.TIME].read(0, self._frames)
            self._events_known = self._events.length() if self._events else 0  # of all frames, which come after them
            if self._room:
                self._take_added()
        self._left = no_events(), -1, Left(*[np.empty(0)] * 3)
        """All events, the number of those until the last frame asked for, and what was left after them."""
        return self._frames

    def _go_on_with_copy(self) -> None:
        """Go on with the larger copy by which the run that writes the file has replaced it."""
        if not os.path.exists(self.path):
            raise InputError(f"{self.path}: there is no such file any more")
        found, own = RecordedFrames(self.path), self.stored_provenance
        if "started" not in own or own != found.stored_provenance:
            found.close()
            raise InputError(f"{self.path}: has been replaced by another recording; open it anew")
        self._replaced.append(self._opened())
        kept = ("position", "velocity", "temporary", "_replaced")
        vars(self).update({name: value for name, value in vars(found).items() if name not in kept})

    def _take_added(self) -> None:
        """Take over the bodies for which the file had room."""
        first = self._first
        rows = self.event_rows()[: self._events_known]
        new = rows[np.isin(rows["kind"], layout.ADDED) & ~np.isin(rows["id_1"], self.id[:first])]
        self.mass = np.append(self.mass[:first], new["mass_2"])
        self.id = np.append(self.id[:first], new["id_1"])
        self.species = np.append(self.species[:first], new["id_2"])
        if len(self.radius):
            self.radius = np.append(self.radius[:first], new["radius_2"])

    def _opened(self) -> OpenFile:
        if self._file is None:
            raise ValueError(f"{self.path}: has been closed")
        return self._file

    def __len__(self) -> int:
        """The number of frames at the last :meth:`refresh`."""
        return self._frames

    @property
    def count(self) -> int:
        """N."""
        return len(self.mass)

    def index(self, frame: int) -> int:
        """``frame`` counted from the start. Raises NoFrame if there is no such frame, InputError if it is no number."""
        frame = converted(f"{self.path}: frame: ", whole, frame)
        k = frame + len(self) if frame < 0 else frame
        if not 0 <= k < len(self):
            known = f"0 to {len(self) - 1}, or from the end -1 to -{len(self)}" if len(self) else "none yet"
            raise NoFrame(f"{self.path}: there is no frame {frame}; it has frames {known}")
        return k

    def frame(self, frame: int) -> Frame:
        """Frame ``frame``, with its observables."""
        k = self.index(frame)
        values = dict(zip(self.widths, self._rows_at(map(layout.observable, self.widths), k), strict=True))
        return Frame(int(self.step[k]), float(self.time[k]), self.position[k], self.velocity[k], values)

    def particles(self, frame: int) -> Particles:
        """The bodies at frame ``frame``, in float64: initial conditions for another run. Bodies that are not there are
        left out. (The rows in :attr:`position` of those that have merged are where the others are, and of others NaN.)

        Raises:
            NoFrame: there is no such frame.
            InputError: the checksum of the frame, the masses or the scenario is wrong.
        """
        if damaged := self._damaged_constants():
            raise InputError(f"{self.path}: {damaged[0]}: has been damaged since it was recorded")
        moment, left = self.frame(frame), self.left(frame)
        mass, id, species, radius = (each.copy() for each in (left.mass, self.id, self.species, left.radius))
        found = Particles(
            mass, moment.position, moment.velocity, id, moment.time, moment.step, species, self.species_names, radius
        )
        return found.rows(left.alive) if not left.alive.all() else found

    def event_rows(self) -> Array:
        """The events so far, (M,) of :data:`layout.EVENT_DTYPE`."""
        return layout.events_as(self.stored_events())

    def stored_events(self) -> Array:
        """The same in the form that the file has: one of an earlier version lacks columns."""
        self._opened()
        with one_line(self.path):
            return no_events() if self._events is None else self._events.read(0, self._events.length())

    def left(self, frame: int) -> Left:
        """Which bodies are left at frame ``frame``, and their masses and radii; do not write into these arrays."""
        step = int(self.step[self.index(frame)])
        self._opened()
        rows, last, found = self._left
        with one_line(self.path):
            if len(rows) != self._events_known:
                rows, last = self.event_rows()[: self._events_known], -1
            if (done := int(np.count_nonzero(rows["step"] <= step))) != last:
                found = left_after(rows, step, self.id, self.mass, self.radius)
                self._left = rows, done, found  # frames are also read in threads
        return found

    def observable(self, name: str) -> Array:
        """One observable (:attr:`widths`) at every frame, (T,) or (T, width), of systems (T, S); NaNs if this file lacks one
        that every run records.

        Raises:
            InputError: there is no such observable; the line names those that exist.
        """
        self._opened()
        if name not in self.widths:
            if name not in ALWAYS:
                raise unknown("observable", name, self.widths, f"{printable(self.path)}: ")
            width = ALWAYS[name]
            return np.full(len(self) if width == 1 else (len(self), width), np.nan)
        with one_line(self.path):
            found: Array = self._rows[layout.observable(name)].read(0, len(self))
        return found[:, None] if name.startswith(layout.SYSTEM) and found.ndim == 1 else found

    @property
    def provenance(self) -> dict[str, Any]:
        """The origin of the recording: program, packages, machine, command line, and ``status`` and ``wall_s``."""
        return {**self.stored_provenance, "status": self.status, "wall_s": float(self._commit()["wall_s"][0])}

    def _commit(self) -> Array:
        file = self._opened()
        with one_line(self.path):
            for _ in range(TORN):
                commit = np.asarray(file.value(layout.COMMIT))
                if layout.is_whole(commit):
                    break
        return commit

    @property
    def status(self) -> str:
        """``complete``; ``stopped`` (ended early, in good order); ``running``; ``killed`` by a crash or a signal; or
        ``damaged`` if the commit record is damaged."""
        commit = self._commit()
        if not layout.is_whole(commit):
            return "damaged"
        status = commit["status"][0].decode(errors="replace")
        if status == layout.RUNNING and not writing_process(Path(self.path).resolve()):
            return "killed"
        return printable(status)

    @property
    def complete(self) -> bool:
        """True if the run recorded all planned frames."""
        return self.status == layout.COMPLETE

    def verify(self) -> list[str]:
        """Check everything against its checksums. Returns one line per damaged object, as in ``frame 12: velocity``."""
        found = self._damaged_constants()
        found += [] if layout.is_whole(self._commit()) else [f"/{layout.COMMIT}"]
        found += [f"frame {k}: {what}" for k in range(len(self)) for what in self._damaged_fields(k)]
        events = self.stored_events()
        return found + [f"event {k}" for k in np.flatnonzero(layout.with_sums(events)["crc32"] != events["crc32"])]

    def _damaged_constants(self) -> list[str]:
        """The damaged ones of the datasets that never change."""
        file = self._opened()
        names = [name for name in layout.CONSTANTS if file.found[name].kind == DATASET]
        with one_line(self.path):
            found = {name: np.asarray(file.value(name), file.found[name].dtype) for name in names}
        rows = {name: value[: self._first] if value.ndim else value for name, value in found.items()}
        sums = {name: zlib.crc32(each.tobytes()) for name, each in rows.items()}
        return [f"/{name}" for name in names if sums[name] != file.found[name].attributes.get(layout.CRC)]

    def _damaged_fields(self, k: int) -> list[str]:
        """The damaged ones of position, velocity and numbers (time, step, observables) of frame ``k``."""
        try:
            sums, position, velocity = self._rows_at((layout.CHECKSUMS, layout.POSITION, layout.VELOCITY), k)
            time, step, *others = self._rows_at((layout.TIME, layout.STEP, *map(layout.observable, self.widths)), k)
        except InputError as error:
            return [f"unreadable ({error})"]
        numbers = struct.pack("<dq", time, step) + b"".join(each.astype("<f8").tobytes() for each in others)
        own = [zlib.crc32(each) for each in (position, velocity, numbers)]
        return [what for what, found, stored in zip(CHECKED, own, sums, strict=True) if found != stored]

    def close(self) -> None:
        """Close the file, and remove it if it is temporary."""
        for file in (self._file, *self._replaced):
            if file is not None:
                file.close()
        self._file = None
        self._replaced.clear()
        if self.temporary is not None:
            self.temporary.cleanup()
            self.temporary = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _species(file: OpenFile, count: int) -> tuple[Array, tuple[str, ...]]:
    """The species of each body, and their names: one species without a name if the file has none."""
    found = file.found[layout.SPECIES]
    if found.kind == MISSING or layout.SPECIES_NAMES not in found.attributes:
        return np.zeros(count, np.int64), ("",)
    names = parse_json(found.attributes[layout.SPECIES_NAMES])
    species: Array = file.value(layout.SPECIES).astype(np.int64, copy=False)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or not names:
        raise ValueError(f"/{layout.SPECIES} has no names")
    if species.min(initial=0) < 0 or species.max(initial=0) >= len(names):
        raise ValueError(f"/{layout.SPECIES} has a species without a name")
    return species, tuple(map(printable, names))


def _parsed(value: Any) -> Any:
    """An attribute, made printable; JSON text as its value."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        with suppress(ValueError):
            value = parse_json(value)
    return _printable(value)


def _printable(value: Any) -> Any:
    if isinstance(value, dict):
        return {printable(key): _printable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_printable(inner) for inner in value]
    return printable(value) if isinstance(value, str) else value
