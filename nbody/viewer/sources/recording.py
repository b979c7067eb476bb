"""A recording as a source of pictures: its frames, which are read ahead in threads within a bound of memory."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np

from nbody import machine
from nbody.analysis.data import spread
from nbody.diagnostics.energy import relative_energy_error
from nbody.errors import InputError, counted
from nbody.law.gravity import Gravity
from nbody.trajectory import Trajectory
from nbody.trajectory.structure.layout import BY_CALL, CHANGED, COLLISIONS
from nbody.viewer.sources.camera import Camera
from nbody.viewer.sources.frames import FAR, Array, ShownFrame, ShownMoment
from nbody.viewer.sources.history import MEMORY
from nbody.viewer.sources.samples import SAMPLE, SAMPLES, RecordedSeries, leaves_view, sampled, speed_scale, whole_view
from nbody.viewer.sources.source import Caption, Catalogue, Series, Source, unit_near
from nbody.whole_file import Notify

MARKED, SHORTEST_MARK = 0.025, 4  # an event is marked for this fraction of the frames, and at least for so many
MOST_MARKS = 32  # the most events that are marked at the same time, the latest ones
LEAST_FRAMES, MOST_FRAMES = 3, 8  # frames that are kept: two that are shown, and the next; more do not help a playback
MOST_THREADS = 4  # a frame of 1e7 bodies takes 0.2 s to read and check (page cache, zlib 1.2 on Zen 4)


class ReadAhead:
    """Frames by number, as ``read`` returns them (in any thread): those that :meth:`prepare` named are read in threads.
    ``memory`` bounds the bytes of frames that are kept, if that is at least :data:`LEAST_FRAMES`; ``frame_bytes`` is the
    size of one."""

    def __init__(self, read: Callable[[int], ShownFrame], memory: float, frame_bytes: int) -> None:
        self._read = read
        self.capacity = max(LEAST_FRAMES, min(MOST_FRAMES, int(memory // max(1, frame_bytes))))
        self._frames: dict[int, Future[ShownFrame]] = {}
        self._threads: ThreadPoolExecutor | None = None

    def prepare(self, numbers: Iterable[int]) -> None:
        """Read these frames in this order, as far as there is room, and forget all others."""
        needed = list(dict.fromkeys(numbers))[: self.capacity]
        self._forget_all_but(needed)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(min(MOST_THREADS, machine.cores()), "read-ahead")
        for k in needed:
            if k not in self._frames:
                self._frames[k] = self._threads.submit(self._read, k)

    def get(self, k: int) -> ShownFrame:
        """Frame ``k``; waits until it has been read. Raises what ``read`` raised."""
        if k in self._frames:
            return self._frames[k].result()
        frame = self._read(k)
        if self._threads is None:  # nothing is prepared: a picture, or a window that was never played
            self._forget_all_but(list(self._frames)[1 - self.capacity :])
            self._frames[k] = Future()
            self._frames[k].set_result(frame)
        return frame

    def waiting(self, k: int) -> bool:
        """True if frame ``k`` is being read, so that :meth:`get` would wait."""
        return k in self._frames and not self._frames[k].done()

    def close(self) -> None:
        """End the threads, after the frames that they are reading."""
        self._forget_all_but([])
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None

    def _forget_all_but(self, numbers: list[int]) -> None:
        for k in set(self._frames).difference(numbers):
            self._frames.pop(k).cancel()


class RecordedSource(Source):
    """The bodies of the trajectory ``run``. While moments follow each other, forward or backward, the next frames are read
    ahead, within ``memory`` bytes. ``speeds`` is the same in every frame, so that a constant speed has a constant colour.

    ``notify`` gets one line for each damaged frame, across which the motion is then interpolated, and one line if bodies are
    left out because their positions are not finite. Without it a damaged frame raises InputError, as does a trajectory
    without a frame.
    """

    def __init__(self, run: Trajectory, notify: Notify | None = None, memory: float = MEMORY) -> None:
        if not len(run):
            raise InputError(f"{run.path}: has no frame yet; look again when the run has begun")
        self.run = run
        law = recorded_gravity(run)
        bodies = Catalogue(run.dimensions, run.mass, run.id, run.species, run.species_names, law, run.units)
        super().__init__(run.resolved.get("name", ""), bodies, _length_unit(run))
        self._scaled_at = 0
        self._notify, self._reported = notify, set[str]()
        self._left_out = ""  # the first line about bodies without a finite position
        self._memory = memory
        self._ahead = self._read_ahead()
        self._at, self._direction = -1.0, 0  # the moment before, and where the playback goes
        self._series: RecordedSeries | None = None
        self._update()

    def _update(self) -> None:
        """Take over what the trajectory has now."""
        self._energy = self.run.energy_balance()
        self._events = self.run.event_rows()
        # While a run grows, update the speed scale each time the number of frames has doubled, not for each frame.
        if self.frames >= 2 * self._scaled_at:
            self._scaled_at = self.frames
            self.speeds = speed_scale(sampled(self.run.velocity, spread(self.frames, SAMPLES)))

    def refresh(self) -> int:
        self.run.refresh()
        if (count := self.run.count) != self.catalogue.count:  # bodies were added
            run, self.shown = self.run, self.shown.grown(count)
            self.catalogue = replace(
                self.catalogue, mass=run.mass, id=run.id, species=run.species, species_names=run.species_names
            )
            self._ahead.close()
            self._ahead = self._read_ahead()
        self._update()
        return self.frames

    def _read_ahead(self) -> ReadAhead:
        return ReadAhead(self._read, self._memory, 2 * 3 * 4 * self.catalogue.count)

    @property
    def frames(self) -> int:
        return len(self._energy)  # at the last look

    def moment(self, at: float) -> ShownMoment:
        self._prepare(at)
        k = int(at)
        first = self._readable(k, -1)
        if at == first.number or first.number > at or k + 1 >= self.frames:
            return ShownMoment(first)
        second = self._readable(k + 1, 1)
        if second.number <= first.number:  # every later frame is damaged
            return ShownMoment(first)
        begin, end = (float(self.run.time[frame.number]) for frame in (first, second))
        now = float(np.interp(at, [k, k + 1], self.run.time[k : k + 2]))
        return ShownMoment(first, second, (now - begin) / (end - begin) if end != begin else 0.0)

    def past(self, k: int) -> ShownFrame | None:
        if 0 <= k < self.frames:
            with suppress(InputError):
                return self._frame(k)
        return None

    def _prepare(self, at: float) -> None:
        """Read ahead from the moment ``at``, in the direction in which the playback goes."""
        if self._at >= 0 and at != self._at:
            self._direction = 1 if at > self._at else -1
        self._at = at
        if self._direction:
            k, capacity = int(at), self._ahead.capacity
            shown = [k, k + 1] if at > k else [k]
            coming = range(k + 1, k + capacity) if self._direction > 0 else range(k - 1, k - capacity, -1)
            self._ahead.prepare(number for number in [*shown, *coming] if 0 <= number < self.frames)

    def waiting(self, at: float) -> bool:
        return self._ahead.waiting(int(at)) or (at % 1 > 0 and self._ahead.waiting(int(at) + 1))

    def _readable(self, k: int, step: int) -> ShownFrame:
        """Frame ``k``, or, if damaged frames are only reported, the next readable one in direction ``step``, or else in the
        other one."""
        ahead = range(k, self.frames if step > 0 else -1, step)
        for number in [*ahead, *range(k, -1 if step > 0 else self.frames, -step)]:
            try:
                return self._frame(number)
            except InputError as error:
                if self._notify is None:
                    raise
                self._report(f"{error}; the motion is interpolated across it")
        raise InputError(f"{self.run.path}: every frame is damaged")

    def _report(self, line: str) -> None:
        if self._notify is not None and line not in self._reported:
            self._reported.add(line)
            self._notify(line)

    def _frame(self, k: int) -> ShownFrame:
        """Frame ``k``. Raises InputError if it is damaged."""
        frame = self._ahead.get(k)
        if self._left_out:
            self._report(self._left_out)
        return frame

    def _read(self, k: int) -> ShownFrame:
        """Read frame ``k``, in any thread."""
        position = self.shown.vectors(self.run.position[k], self.length_unit)
        velocity = self.shown.vectors(self.run.velocity[k], self.speed_unit)
        if (absent := self._absent(k, position)) is not None:
            position[absent], velocity[absent] = FAR, 0.0
        if not np.isfinite(position).all():
            bad = ~np.isfinite(position).all(axis=1)
            position[bad], velocity[bad] = FAR, 0.0
            bodies = counted(int(bad.sum()), "body has", "bodies have")
            left_out = f"{self.run.path}: frame {k}: {bodies} no finite position, and can't be drawn"
            self._left_out = self._left_out or left_out
        time = float(self.run.time[k]) * self.speed_unit / self.length_unit
        mass = self.run.left(k).mass if len(self._events) else self.catalogue.mass
        return ShownFrame(k, position, velocity, time, int(self.run.step[k]), self._energy_error(k), mass)

    def _energy_error(self, k: int) -> float:
        return relative_energy_error(float(self._energy[k]), float(self._energy[0]))

    def _absent(self, k: int, position: Array) -> Array | None:
        """The shown bodies that are not there in frame ``k``: (shown,) mask, or None if all are. (In the first frame after a
        merger both bodies are drawn, in one place.)"""
        if not len(self._events) or (alive := self.run.left(k).alive).all():
            return None
        gone: Array = ~self.shown.of(alive)
        before = self.shown.of(self.run.left(max(k - 1, 0)).alive)
        return gone & (~before | np.isnan(position).any(axis=1))

    def flashes(self, at: float) -> tuple[Array, Array]:
        if not len(self._events):
            return super().flashes(at)
        shown, when = max(SHORTEST_MARK, MARKED * self.frames), self._moments(self._events)
        somewhere = (self._events["id_1"] >= 0) & ~np.isin(self._events["kind"], BY_CALL)
        chosen = np.flatnonzero((when <= at) & (when > at - shown) & somewhere)[-MOST_MARKS:]
        rows = self._events[chosen]
        places = np.stack([rows[axis] for axis in "xyz"], axis=1) / self.length_unit
        return places, (at - when[chosen]) / shown

    def marks(self) -> Array:
        return np.unique(self._moments(self._events[~np.isin(self._events["kind"], CHANGED)]))

    def _moments(self, events: Array) -> Array:
        """When they happen, (M,) in frames."""
        falls = -1 if self.run.time[-1] < self.run.time[0] else 1
        found: Array = np.interp(falls * events["time"], falls * self.run.time[:], np.arange(self.frames))
        return found

    def home(self, frame: int | None = None) -> Camera:
        # The view of the run frames the bodies of its samples together.
        if frame is None:
            return self._home.copy()
        return Camera.framing(self.run.position.sample(frame, SAMPLE) / self.length_unit, self.catalogue.dimensions)

    @cached_property
    def leaves_view(self) -> bool:
        return leaves_view(self.run, self.frames, self.length_unit, self._home)

    @cached_property
    def _home(self) -> Camera:
        return whole_view(self.run, self.frames, self.length_unit)

    def series(self) -> Series:
        # Lagrangian radii that were not recorded are computed on a thread.
        self._series = self._series or RecordedSeries(self.run)
        return self._series.read()

    def close(self) -> None:
        # Call it before the trajectory is closed.
        self._ahead.close()
        if self._series:
            self._series.close()

    def caption(self, at: float) -> Caption:
        # Between two frames, time and step are interpolated.
        k, frames = int(at), np.arange(self.frames)
        time, step = float(np.interp(at, frames, self.run.time)), int(np.interp(at, frames, self.run.step))
        return Caption(
            self.name, time, step, k, self.frames, self._energy_error(k), self.catalogue.count, self.shown.count,
            self._note(k), self.catalogue.units.symbol("time"),
        )  # fmt: skip

    def _note(self, k: int) -> str:
        """The collisions, events and changes until frame ``k`` in words; empty if there are none."""
        done = self._events[self._events["step"] <= self.run.step[k]]
        if not len(done):
            return ""
        watched, collisions = int((done["event"] >= 0).sum()), int(np.isin(done["kind"], COLLISIONS).sum())
        left = int(self.run.left(k).alive.sum())
        words = [counted(n, what) for n, what in ((collisions, "collision"), (watched, "event")) if n]
        if left != self.catalogue.count:
            words.append(f"{counted(left, 'particle is', 'particles are')} left")
        return ", ".join(words)


def recorded_gravity(run: Trajectory) -> Gravity | None:
    """The law of a recorded run; None if the file does not say, or if there are external fields."""
    stored = run.resolved.get("gravity")
    if run.resolved.get("fields"):  # their potential would be missing
        return None
    with suppress(TypeError, ValueError, AttributeError, InputError):
        gravity = Gravity(**{"dimensions": run.dimensions, **stored}).check()  # type: ignore[dict-item]
        gravity.squares(run.species, run.species_names)  # raises if the lengths are not those of the species
        return gravity
    return None


def _length_unit(run: Trajectory) -> float:
    """The picture's unit of length, in the scenario's."""
    with suppress(InputError):  # a damaged frame is reported when it is shown
        position = run.position.sample(0, SAMPLE)
        return unit_near(float(np.abs(position[np.isfinite(position)]).max(initial=0.0)))
    return 1.0
