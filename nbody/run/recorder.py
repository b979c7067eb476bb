"""The recorder: takes snapshots of a run, measures them, and hands them to the file, in a thread of its own.

The next steps compute while a frame is checked, summed and written. The queue is short, so that a slow disk slows the
run down instead of filling the memory. Frames that have arrived while others were written are written as one group: a run
that makes few of them has each in the file at once, one that makes thousands a second pays for the file's bookkeeping
once every few frames.

The file belongs to the thread: it alone writes to it and closes it. So however the run ends, and however often Ctrl-C
is pressed while the disk is slow, nobody closes the file under a write.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import numpy as np

from nbody.errors import RunFailed
from nbody.law import Gravity
from nbody.run.diagnostics import Energies, observables
from nbody.run.guards import check_finite
from nbody.scenario import EnergyLimit
from nbody.state import BLOCKS, Snapshot
from nbody.trajectory import Frame

TOGETHER = 2
"""Blocks of frames that are written as one group at most: where the recorder holds the run up, there are half as many
groups, each of which takes 0.2 ms beside its frames (an H200's host)."""


class FrameSink(Protocol):
    """What frames and checkpoints are handed to: a trajectory's writer."""

    def append_many(self, frames: Sequence[Frame]) -> None:
        """Store frames, one or more, after all those before them."""

    def checkpoint(self, state: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        """Keep the engine's state, as it is after the last frame."""

    def close(self, complete: bool) -> None:
        """Nothing follows; ``complete`` says whether all that was planned is there."""


class Moment(NamedTuple):
    """A snapshot on its way, and when it was."""

    step: int
    time: float
    snapshot: Snapshot


Job = Moment | Callable[[], None]
"""What the thread is given to do."""


class Recorder:
    """Measures and stores snapshots in order, in the background.

    Args:
        sink: where frames and checkpoints go, from here on the recorder's own; None measures frames only.
        limit: what to do when the energy error grows too large.
        notify: gets one line when it does, if the run is to go on.
        energies: those of the frames that are in the file already, when a run goes on.
        frames: how many frames are there already.
        at_a_time: how many frames come together. :data:`~nbody.state.BLOCKS` times as many may be queued; :data:`TOGETHER`
            times as many, where so many wait, are written as one group.

    ``has_checkpoint`` turns True when the sink has one of this recorder's.

    An error in the background (a full disk, a NaN in the state) is raised by the next call, or by
    :meth:`close`. As a context manager it ends on an error by :meth:`abandon`.
    """

    def __init__(
        self,
        sink: FrameSink | None = None,
        limit: EnergyLimit | None = None,
        notify: Callable[[str], None] = lambda line: None,
        energies: Energies | None = None,
        frames: int = 0,
        at_a_time: int = 1,
    ) -> None:
        self.energies = energies or Energies()
        self.frames = frames
        self.has_checkpoint = False
        self._sink, self._limit, self._notify = sink, limit, notify
        self.gravity: Gravity | None = None
        """The law between the bodies, where it is known: it may explain what goes wrong."""
        self._error: BaseException | None = None
        self._failed = self._complete = False
        # What the two threads wait by is a SimpleQueue, whose get and put are one step each: a Ctrl-C inside a Semaphore or
        # an Event may leave its lock taken, and the other thread would wait for ever (1 of 200 interrupted runs).
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._ahead: list[Job | None] = []  # taken from the queue too early
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()  # one for each job that may be queued
        for _ in range(BLOCKS * at_a_time):
            self._room.put(None)
        self._in_a_group = TOGETHER * at_a_time
        self._ended, self._end = False, queue.SimpleQueue[None]()  # the thread's end: seen, and waited for
        threading.Thread(target=self._work, name="recorder", daemon=True).start()

    def record(self, step: int, time: float, snapshot: Snapshot) -> None:
        """Queue a snapshot; waits while too many are queued."""
        self._put(Moment(step, time, snapshot))

    def record_many(self, moments: Sequence[Moment]) -> None:
        """Queue snapshots, all of them whatever has gone wrong in the background: who takes them releases them."""
        self._put(*moments)

    def checkpoint(self, state: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        """Queue a checkpoint, to be kept after the frames queued before it."""
        if self._sink is not None:
            self._put(lambda: self._keep(state, meta))

    def close(self, complete: bool = True) -> None:
        """Return when everything queued is stored and the sink is closed; ``complete`` is for the sink."""
        self._complete = complete
        self._finish()
        self._raise()

    def abandon(self) -> None:
        """Let go of what is queued, and return when the thread has closed the sink.

        An interrupt during that wait (the third Ctrl-C, of a user whose disk hangs) leaves the sink to the thread,
        which closes it when it can, or dies with the process as by a kill.
        """
        self._failed = True
        self._finish()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abandon()  # the error that ended the run is the one to show
        elif not self._ended:
            self.close()

    def _finish(self) -> None:
        """Return when the thread has ended. (Thread.join, once interrupted, returns at once: Python 3.11, gh-90882.)"""
        self._jobs.put(None)
        if not self._ended:
            self._end.get()

    def _put(self, *jobs: Job) -> None:
        for job in jobs:
            self._room.get()
            self._jobs.put(job)
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _work(self) -> None:
        while (job := self._next()) is not None:
            moments: list[Moment] = []
            try:
                if isinstance(job, Moment):
                    moments.append(job)
                    self._store(moments)
                else:
                    job()
            except BaseException as error:
                # Later jobs only release what they hold, so that record() never waits for a thread that gave up.
                self._error, self._failed = error, True
            finally:
                for _ in range(len(moments) or 1):
                    self._room.put(None)
        try:
            if self._sink is not None:
                self._sink.close(self._complete and not self._failed)
        except BaseException as error:
            self._error = self._error or error
        finally:
            self._ended = True
            self._end.put(None)

    def _keep(self, state: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        # A state gone wrong between two frames must not replace the last good one; the next frame stops the run.
        sound = all(np.isfinite(array).all() for array in state.values())
        if sound and not self._failed and self._sink is not None:
            self._sink.checkpoint(state, meta)
            self.has_checkpoint = True

    def _next(self) -> Job | None:
        return self._ahead.pop() if self._ahead else self._jobs.get()

    def _store(self, moments: list[Moment]) -> None:
        """Store a moment, and those behind it that are here too, which join it in the list."""
        try:
            if not self._failed:
                moments[0].snapshot.wait()  # those of its block come with it: not a group for it, and one for the rest
            while len(moments) < self._in_a_group and not self._jobs.empty():
                job = self._jobs.get()
                if not isinstance(job, Moment) or not job.snapshot.arrived():
                    self._ahead.append(job)
                    break
                moments.append(job)
            if not self._failed:
                self._append(moments)
        finally:
            for moment in moments:
                moment.snapshot.release()

    @np.errstate(all="ignore")  # a NaN of a state that went wrong is found by check_finite
    def _append(self, moments: Sequence[Moment]) -> None:
        """Measure and store moments; those before one that is refused are stored too."""
        frames: list[Frame] = []
        energies = self.energies
        try:
            for step, time, snapshot in moments:
                snapshot.wait()
                check_finite(step, snapshot, self.gravity)
                values = observables(snapshot.sums)
                frames.append(Frame(step, time, snapshot.position, snapshot.velocity, values))
                energies = energies.after(float(values["total_energy"]))
                self._check_energy(step, energies)
        finally:
            if frames and self._sink is not None:
                self._sink.append_many(frames)
            self.energies, self.frames = energies, self.frames + len(frames)

    def _check_energy(self, step: int, energies: Energies) -> None:
        """Warn once, or stop, when the energy error passes its limit."""
        limit = self._limit
        if limit is None or abs(energies.error) <= limit.limit:
            return
        line = (
            f"step {step}: the relative energy error is {energies.error:+.2e}, beyond the limit of "
            f"{limit.limit:g} (on_energy_error); try a smaller --dt"
        )
        self._limit = None
        if limit.action == "stop":
            raise RunFailed(f"{line}. The frames so far are kept")
        self._notify(f"warning: {line}")
