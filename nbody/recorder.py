"""The recorder: takes snapshots of a run, measures them, and hands them to the file, in a thread of its own.

The next steps compute while a frame is checked, summed and written. The queue is short, so that a slow disk slows the
run down instead of filling the memory.
"""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nbody.diagnostics import observables, relative_energy_error
from nbody.errors import RunFailed
from nbody.scenario import EnergyLimit
from nbody.state import Snapshot
from nbody.trajectory import Frame

WAITING_FRAMES = 4


class FrameSink(Protocol):
    """What frames and checkpoints are handed to: a trajectory's writer."""

    def append(self, frame: Frame) -> None:
        """Store one frame, after all those before it."""

    def checkpoint(self, state: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        """Keep the engine's state, as it is after the last frame."""


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
        sink: where frames and checkpoints go; None measures frames only.
        limit: what to do when the energy error grows too large.
        notify: gets one line when it does, if the run is to go on.
        energies: those of the frames that are in the file already, when a run goes on.
        frames: how many frames are there already.

    An error in the background (a full disk, a NaN in the state) is raised by the next :meth:`record` or
    :meth:`close`.
    """

    def __init__(
        self,
        sink: FrameSink | None = None,
        limit: EnergyLimit | None = None,
        notify: Callable[[str], None] = lambda line: None,
        energies: Energies | None = None,
        frames: int = 0,
    ) -> None:
        self.energies = energies or Energies()
        self.frames = frames
        self._sink, self._limit, self._notify = sink, limit, notify
        self._error: BaseException | None = None
        self._queue: queue.Queue[Callable[[], None] | None] = queue.Queue(WAITING_FRAMES)
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._thread.start()

    def record(self, step: int, time: float, snapshot: Snapshot) -> None:
        """Queue a snapshot; waits while too many are queued."""
        self._queue.put(lambda: self._store(step, time, snapshot))
        self._raise()

    def checkpoint(self, state: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        """Queue a checkpoint, to be kept after the frames queued before it."""
        if self._sink is not None:
            self._queue.put(lambda: self._keep(state, meta))
            self._raise()

    def close(self) -> None:
        """Return when everything queued is stored."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _work(self) -> None:
        self._failed = False
        while (job := self._queue.get()) is not None:
            try:
                job()
            except BaseException as error:
                # Later jobs only release what they hold, so that record() never waits for a thread that gave up.
                self._error, self._failed = error, True

    def _keep(self, state: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        # A state gone wrong between two frames must not replace the last good one; the next frame stops the run.
        sound = all(np.isfinite(array).all() for array in state.values())
        if sound and not self._failed and self._sink is not None:
            self._sink.checkpoint(state, meta)

    def _store(self, step: int, time: float, snapshot: Snapshot) -> None:
        try:
            if self._failed:
                return
            snapshot.wait()
            check_finite(step, snapshot)
            values = observables(snapshot.sums)
            if self._sink is not None:
                self._sink.append(Frame(step, time, snapshot.position, snapshot.velocity, values))
        finally:
            snapshot.release()
        energy = float(values["total_energy"])
        first = energy if np.isnan(self.energies.initial) else self.energies.initial
        self.energies, self.frames = Energies(first, energy), self.frames + 1
        self._check_energy(step)

    def _check_energy(self, step: int) -> None:
        """Warn once, or stop, when the energy error passes its limit."""
        limit = self._limit
        if limit is None or abs(self.energies.error) <= limit.limit:
            return
        line = (
            f"step {step}: the relative energy error is {self.energies.error:+.2e}, beyond the limit of "
            f"{limit.limit:g} (on_energy_error); try a smaller --dt"
        )
        self._limit = None
        if limit.action == "stop":
            raise RunFailed(f"{line}. The frames so far are kept")
        self._notify(f"warning: {line}")


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
