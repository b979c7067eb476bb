"""The recorder: a background thread with a queue, which measures frames and writes them to the file.

The next steps are computed while a frame is checked, measured and written. The queue is short, so a slow disk slows the
run down instead of filling the memory. Frames that arrive during a write are written together as one group: a run with
few frames has each in the file at once, and a run with thousands of frames per second has little overhead per frame.

Only the thread writes and closes the file. So the file is never closed during a write, however the run ends and however
often Ctrl-C is pressed while the disk is slow.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nbody.errors import RunFailed, counted
from nbody.run.measured import Measured
from nbody.state import BLOCKS, Frame

if TYPE_CHECKING:
    from nbody.trajectory import TrajectoryWriter

TOGETHER = 2
"""The maximum number of blocks of frames in one group. Two blocks halve the number of groups when the run waits for the
recorder; each group costs 0.2 ms beside its frames (on an H200's host)."""

Job = Frame | Callable[[], None]
"""A job for the thread."""


class Recorder:
    """Measures and stores frames in order, in a background thread.

    Args:
        sink: the destination of frames and checkpoints, from now on used by the recorder only; None only measures frames.
        measured: what measures the frames, and counts those that are stored.
        at_a_time: the number of frames that arrive together. Up to :data:`~nbody.state.BLOCKS` times as many can be queued;
            up to :data:`TOGETHER` times as many are written as one group. With 0 there is no thread, and no sink: frames
            are measured at once.
        raises: if False, an error in the thread is kept in ``error`` until :meth:`close`.

    Attributes:
        has_checkpoint: True once this recorder has stored a checkpoint.

    An error in the thread (a full disk, a NaN in the state) is raised by the next call, or by :meth:`close`. As a context
    manager, the recorder calls :meth:`abandon` after an error.
    """

    def __init__(self, sink: "TrajectoryWriter | None", measured: Measured, at_a_time: int = 1, raises: bool = True) -> None:
        self._sink, self.measured, self._raises = sink, measured, raises
        self.has_checkpoint = False
        self.error: BaseException | None = None
        self._failed = self._complete = False
        # The threads wait with SimpleQueue, whose get and put are atomic. A Ctrl-C inside a Semaphore or an Event can leave
        # its lock held, and the other thread would wait for ever (1 of 200 interrupted runs).
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._ahead: list[Job | None] = []  # taken from the queue, but not part of the current group
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()  # one item for each free place in the queue
        for _ in range(BLOCKS * at_a_time):
            self._room.put(None)
        self._in_a_group = TOGETHER * at_a_time
        self._threaded = at_a_time > 0
        # The end of the thread: a flag, and a queue to wait with
        self._ended, self._end = not self._threaded, queue.SimpleQueue[None]()
        if self._threaded:
            threading.Thread(target=self._work, name="recorder", daemon=True).start()

    def record(self, *frames: Frame) -> None:
        """Queue frames; wait while the queue is full. All are queued even after an error in the thread, because the thread
        releases them."""
        self._put(*frames)

    def checkpoint(self, state: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        """Queue a checkpoint, which is stored after the frames queued before it."""
        if self._sink is not None:
            self._put(lambda: self._keep(state, meta))

    def events(self, rows: np.ndarray, species_names: tuple[str, ...] = ()) -> None:
        """Queue events, which are stored after the frames queued before them; and the names of all species after them."""
        sink = self._sink
        if sink is not None and len(rows):
            self._put(lambda: None if self._failed else sink.append_events(rows, species_names))

    def close(self, complete: bool = True) -> None:
        """Wait until everything queued is stored and the sink is closed; ``complete`` is passed to the sink."""
        self._complete = complete
        self._finish()
        self._raise()

    def abandon(self) -> None:
        """Discard what is queued, and wait until the thread has closed the sink.

        An interrupt during this wait (the third Ctrl-C, because the disk hangs) leaves the sink to the thread, which closes
        it later, or is killed with the process.
        """
        self._failed = True
        self._finish()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None and issubclass(kind, RunFailed):
            self._finish()  # the frames before the failure are kept, and its error is the one to show
        elif kind is not None:
            self.abandon()
        elif not self._ended:
            self.close()

    def _finish(self) -> None:
        """Wait for the end of the thread. (Thread.join returns at once after an interrupt: Python 3.11, gh-90882.)"""
        self._jobs.put(None)
        if not self._ended:
            self._end.get()

    def _put(self, *jobs: Job) -> None:
        for job in jobs:
            if self._threaded:
                self._room.get()
                self._jobs.put(job)
            else:
                self._do(job)
        if self._raises:
            self._raise()

    def _raise(self) -> None:
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def _work(self) -> None:
        while (job := self._ahead.pop() if self._ahead else self._jobs.get()) is not None:
            self._do(job)
        try:
            if self._sink is not None:
                self._sink.close(self._complete and not self._failed)
        except BaseException as error:
            self.error = self.error or error
        finally:
            self._ended = True
            self._end.put(None)

    def _do(self, job: Job) -> None:
        frames: list[Frame] = []
        try:
            if isinstance(job, Frame):
                frames.append(job)
                self._store(frames)
            else:
                job()
        except BaseException as error:
            # Later jobs only release their frames, so that record() never waits for a thread that has failed.
            self.error, self._failed = error, True
        finally:
            for _ in range(len(frames) or 1):
                self._room.put(None)

    def _keep(self, state: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        # A state that became NaN between two frames must not replace the last good one; the next frame stops the run.
        sound = all(np.isfinite(array).all() for array in state.values())
        if sound and not self._failed and self._sink is not None:
            self._sink.checkpoint(state, meta)
            self.has_checkpoint = True

    def _store(self, frames: list[Frame]) -> None:
        """Store the first frame together with those that have arrived after it, which are appended to the list."""
        try:
            if not self._failed:
                frames[0].wait()  # its whole block arrives with it and can then be written as one group
            while len(frames) < self._in_a_group and not self._jobs.empty():
                job = self._jobs.get()
                if not isinstance(job, Frame) or not job.arrived():
                    self._ahead.append(job)
                    break
                frames.append(job)
            if not self._failed:
                self._append(frames)
        finally:
            for frame in frames:
                frame.release()

    @np.errstate(all="ignore")  # a NaN of a state that went wrong is found by check_finite
    def _append(self, frames: Sequence[Frame]) -> None:
        """Measure and store frames. If a check fails, the frames before it are still stored."""
        good, measured = 0, self.measured
        try:
            for frame in frames:
                frame.wait()
                measured.add(frame)
                good += 1
                measured.check_energy(frame.step)
        except RunFailed as error:
            if (sink := self._sink) is None:
                raise
            raise RunFailed(f"{error}; {counted(measured.frames + good, 'frame')} until then: {sink.path}") from None
        finally:
            if good and self._sink is not None:
                self._sink.append_many(frames[:good])
            measured.frames += good
