"""The clock of a simulation that is running: it takes the newest picture, and passes keys on to the run."""

import math
import queue
import time
from collections import deque
from contextlib import suppress

from nbody.errors import counted
from nbody.run.live_pace import UNLIMITED
from nbody.run.schedule import StepSchedule
from nbody.viewer.sources.live import Live
from nbody.viewer.window.clock import LIVE, Transport

NO_WAY_BACK = "a simulation that is running can't be moved in time; Home starts it again"

COLUMNS = 1000  # positions on the time line of a run that ends at a time
STATUS_SECONDS = 0.25  # seconds between updates of the status
RATE_SECONDS = 1.0  # the pictures per second are counted over this time


class LiveClock(Transport):
    """Shows the present of ``source``. With ``detach`` the run goes on when the window is closed (``nbody run --view``)."""

    kind = LIVE

    def __init__(self, source: Live, detach: bool = False) -> None:
        self.source, self.run, self._detach = source, source.run, detach
        self._frames = 0  # not yet known
        self._status, self._status_at = "", -math.inf
        self._facts: tuple = ()
        self._taken: deque[float] = deque()
        self._reported = False  # the failure of the run

    @property
    def playing(self) -> bool:  # type: ignore[override]
        return self.run.pace.playing

    @playing.setter
    def playing(self, value: bool) -> None:
        if value != self.run.pace.playing:
            self.run.pace.toggle()

    @property
    def done(self) -> bool:
        # A run that is recorded to its end has ended.
        return self._detach and not self.run.thread.is_alive()

    @property
    def at(self) -> float:
        progress = self.run.progress
        if progress is None:
            return 0.0
        return float(progress.step if progress.steps is not None else progress.fraction_done * (COLUMNS - 1))

    @property
    def frames(self) -> int:
        # The steps of the run; none before there is a simulation.
        if not self._frames and self.run.prepared:
            schedule = self.run.simulation.setup.plan.schedule
            self._frames = schedule.last + 1 if isinstance(schedule, StepSchedule) else COLUMNS
        return self._frames

    def advance(self, seconds: float) -> bool:
        with suppress(queue.Empty):
            self.message = self.run.messages.get_nowait()
        if self.run.failure is not None and not self.run.prepared:
            self.failure = self.run.failure
        elif self.run.failure is not None and not self._reported:
            self._reported, self.message = True, " ".join(str(self.run.failure).split()) or "the run has ended"
        before, taken = self._status, self.source.take()
        if taken:
            self._taken.append(time.perf_counter())
        return taken or self.status != before

    @property
    def status(self) -> str:
        run, now = self.run, time.monotonic()
        facts = run.ended, run.pace.playing, run.pace.steps_per_picture, run.recording, run.progress is None
        if facts != self._facts or now - self._status_at >= STATUS_SECONDS:
            self._status, self._status_at, self._facts = self._describe(), now, facts
        return self._status

    def _describe(self) -> str:
        run, pace, words = self.run, self.run.pace, []
        if run.ended or run.failure is not None:
            words.append("■ at its end" if run.failure is None else "■ stopped")
        elif run.progress is None and pace.playing:
            words.append("▶ preparing")
        else:
            words += ["▶" if pace.playing else "❚❚ paused,", _speed(pace.steps_per_picture)]
        while self._taken and self._taken[0] < time.perf_counter() - RATE_SECONDS:
            self._taken.popleft()
        if pace.steps_per_s and pace.playing and not run.ended:
            full, pictures = pace.steps_per_picture >= UNLIMITED, len(self._taken) / RATE_SECONDS
            words.append(f"· {pace.steps_per_s:.3g} steps/s" if full else f"· {pictures:.0f} pictures/s")
        if run.progress and run.progress.doing:
            words.append(f"· {run.progress.doing}: {run.progress.fraction:.0%}")
        if run.recording:
            words.append(f"· ● recording {run.recording}")
        return " ".join(words)

    def seek(self, frame: float) -> None:
        self.message = NO_WAY_BACK

    def step(self, frames: int) -> None:
        if frames > 0:
            self.run.pace.step(frames)
        else:
            self.seek(0)

    def faster(self, factor: float) -> None:
        # Twice or half the steps per picture.
        self.run.pace.faster(2.0 if factor > 1 else 0.5)

    def toggle(self) -> None:
        self.run.pace.toggle()

    def restart(self) -> None:
        self.run.restart()

    def finish(self) -> None:
        pass  # the present is shown always

    def record(self) -> None:
        self.run.record()

    def close(self) -> None:
        if self._detach:
            self.run.detach()
        else:
            self.run.close()


def _speed(steps_per_picture: float) -> str:
    if steps_per_picture >= UNLIMITED:
        return "full speed"
    if steps_per_picture >= 1:
        return f"{counted(round(steps_per_picture), 'step')} per picture"
    return f"1 step per {1 / steps_per_picture:.0f} pictures"
