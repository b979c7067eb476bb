"""The recorder: takes snapshots of a run, measures them, and hands them to the file, in a thread of its own.

The next steps compute while a frame is checked, summed and written. The queue is short, so that a slow disk slows the
run down instead of filling the memory.
"""

import queue
import threading
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nbody.diagnostics import observables, relative_energy_error
from nbody.errors import RunFailed
from nbody.state import Snapshot
from nbody.trajectory import Frame

WAITING_FRAMES = 4


class FrameSink(Protocol):
    """What frames are handed to: a trajectory's writer."""

    def append(self, frame: Frame) -> None:
        """Store one frame, after all those before it."""


@dataclass(frozen=True)
class Energies:
    """Total energy of the first and the latest recorded frame; NaN before there is one."""

    initial: float = float("nan")
    latest: float = float("nan")

    @property
    def error(self) -> float:
        """(E - E₀)/|E₀|."""
        return relative_energy_error(self.latest, self.initial)


class Recorder:
    """Measures and stores snapshots in order, in the background.

    Args:
        sink: where frames go; None measures them only.

    An error in the background (a full disk, a NaN in the state) is raised by the next :meth:`record` or
    :meth:`close`.
    """

    def __init__(self, sink: FrameSink | None = None) -> None:
        self.energies = Energies()
        self.frames = 0
        self._sink = sink
        self._error: BaseException | None = None
        self._queue: queue.Queue[tuple[int, float, Snapshot] | None] = queue.Queue(WAITING_FRAMES)
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._thread.start()

    def record(self, step: int, time: float, snapshot: Snapshot) -> None:
        """Queue a snapshot; waits while too many are queued."""
        self._queue.put((step, time, snapshot))
        self._raise()

    def close(self) -> None:
        """Return when every queued snapshot is stored."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _work(self) -> None:
        failed = False
        while (item := self._queue.get()) is not None:
            if failed:
                item[2].release()  # go on emptying the queue, so that record() never waits for a thread that gave up
                continue
            try:
                self._store(*item)
            except BaseException as error:
                self._error, failed = error, True

    def _store(self, step: int, time: float, snapshot: Snapshot) -> None:
        snapshot.wait()
        try:
            check_finite(step, snapshot)
            values = observables(snapshot.sums)
            if self._sink is not None:
                self._sink.append(Frame(step, time, snapshot.position, snapshot.velocity, values))
        finally:
            snapshot.release()
        energy = float(values["total_energy"])
        initial = self.energies.initial if self.frames else energy
        self.energies, self.frames = Energies(initial, energy), self.frames + 1


def check_finite(step: int, snapshot: Snapshot) -> None:
    """Raise RunFailed if a number of the state is a NaN or an infinity, with the step, the particle and the likely
    cause."""
    if np.isfinite(snapshot.sums).all():
        return
    what = "the potential"
    for name in ("position", "velocity"):
        values = getattr(snapshot, name)
        sound = np.isfinite(values).all(axis=1)
        if not sound.all():
            what = f"the {name} of particle {int(np.argmin(sound))}"
            break
    raise RunFailed(
        f"step {step}: {what} is no longer a finite number; likely a close encounter without softening, or a time "
        "step too large (try a smaller --dt, or softening: plummer). The frames before this step are kept"
    )
