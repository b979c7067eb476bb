"""The clock of a simulation that is running: it takes the newest picture, passes keys on to the run, and goes back to
pictures that were shown before."""

import math
import queue
import time
from bisect import bisect_left
from contextlib import suppress

from nbody.errors import counted
from nbody.run.live_pace import UNLIMITED
from nbody.viewer.sources.frames import ShownFrame
from nbody.viewer.sources.live import Live
from nbody.viewer.window.clock import LIVE, Playback

AGAIN = "the first picture; Home again starts the run anew"

STATUS_SECONDS = 0.25  # seconds between changes of the figures in the status


class LiveClock(Playback):
    """Shows the present of ``source``, or plays the frames that were shown before, and meanwhile the run is paused. With
    ``detach`` the run goes on when the window is closed (``nbody run --view``)."""

    kind = LIVE

    def __init__(self, source: Live, detach: bool = False) -> None:
        super().__init__(source.frames, source=source)
        self._live, self._run, self._detach = source, source.run, detach
        self._back = False  # an earlier frame than the present one is shown
        self._plays = self._goes_on = False  # the frames while going back; the run afterwards
        self._figures, self._figures_at = "", -math.inf
        self._described = ""  # at the last tick
        self._newest: ShownFrame | None = None
        self._reported = False  # the failure of the run

    @property
    def playing(self) -> bool:  # type: ignore[override]
        return self._plays if self._back else self._run.pace.playing

    @playing.setter
    def playing(self, value: bool) -> None:
        if self._back:
            self._plays = value
        elif value != self._run.pace.playing:
            self._run.pace.toggle()

    @property
    def done(self) -> bool:  # type: ignore[override]
        # A run that is recorded to its end has ended.
        return self._detach and not self._run.thread.is_alive()

    def place(self, at: float) -> float:
        """How much of the run was done at the moment ``at``."""
        first, last = (self._live.caption(k).time for k in (0, self.frames - 1))
        done = 0.0 if self._run.progress is None else self._run.progress.fraction_done
        return done if last == first else done * (self._live.caption(at).time - first) / (last - first)

    def advance(self, seconds: float) -> bool:
        run, at = self._run, self.at
        with suppress(queue.Empty):
            self.message = run.messages.get_nowait()
        if run.failure is not None and not run.prepared:
            raise run.failure
        if run.failure is not None and not self._reported:
            self._reported, self.message = True, " ".join(str(run.failure).split()) or "the run has ended"
        if self._back:
            super().advance(seconds)
        elif (newest := self._live.past(self._live.refresh() - 1)) is not self._newest:
            self._newest = newest
            self._show_present()
            return True
        described, self._described = self._described, self.status
        return (at, described) != (self.at, self._described)

    def _turn(self) -> None:
        # At the newest frame the run goes on.
        if self._direction > 0:
            self._go(self.frames - 1)
        else:
            self._now, self._plays = 0.0, False

    def _show_present(self) -> None:
        self._back, self._direction, self.frames = False, 1, self._live.frames
        self._now = self.frames - 1.0

    def _go(self, k: int) -> None:
        """Show frame ``k``, with the run paused; or the present, where the run goes on if it did before."""
        if not self._back:
            self._goes_on = self._run.pace.playing
        self.playing = False
        if k < self.frames - 1:
            self._back, self._plays = True, False
            self.seek(k)
        else:
            self._show_present()
            self.playing = self._goes_on

    @property
    def status(self) -> str:
        run, pace = self._run, self._run.pace
        if self._back:
            return f"{super().status}, picture {int(self.at) + 1} of {self.frames} · End: the present"
        if run.ended or run.failure is not None:
            state = "■ at its end" if run.failure is None else "■ stopped"
        elif run.progress is None and pace.playing:
            state = "▶ preparing"
        else:
            state = f"{'▶' if pace.playing else '❚❚ paused,'} {_speed(pace.steps_per_picture)}"
        recording = f" · ● recording {run.recording}" if run.recording else ""
        if (now := time.monotonic()) >= self._figures_at + STATUS_SECONDS:
            self._figures, self._figures_at = self._measured(), now
        return state + ("" if run.ended else self._figures) + recording

    def _measured(self) -> str:
        """The speed of the run in one number, and what takes long in it."""
        pace, progress, speed = self._run.pace, self._run.progress, ""
        if pace.playing and pace.steps_per_s and pace.steps_per_picture >= UNLIMITED:
            speed = f"{pace.steps_per_s:.3g} steps/s"
        elif pace.playing and (pictures := self._pictures_per_s()) > 0:
            speed = f"{pictures:.2g} pictures/s"
        doing = f"{progress.doing}: {progress.fraction:.0%}" if progress and progress.doing else ""
        return "".join(f" · {each}" for each in (speed, doing) if each)

    def choose(self, place: float) -> None:
        # The nearest frame.
        after = bisect_left(range(self.frames), place, key=self.place)
        self._go(min({max(after - 1, 0), min(after, self.frames - 1)}, key=lambda k: abs(self.place(k) - place)))

    def step(self, frames: int) -> None:
        # Of the run, unless an earlier picture is shown.
        if self._back or frames < 0:
            self._go(max(0, self._stepped(frames)))
        else:
            self._run.pace.step(frames)

    def faster(self, factor: float) -> None:
        # Of a run that is shown: twice or half the steps per picture.
        if self._back:
            super().faster(factor)
        else:
            self._run.pace.faster(2.0 if factor > 1 else 0.5)

    def leap(self, direction: int) -> None:
        # To the present; or to the first picture, and from there on start the run again.
        if direction > 0:
            if self._back:
                self._go(self.frames - 1)
        elif self.at > 0:
            self._go(0)
            self.message = "" if self._detach else AGAIN
        else:
            if not self._detach:
                self._show_present()
            self._run.restart()

    def reverse(self) -> None:
        if not self._back:
            self._go(max(0, self.frames - 2))
        if self._back:
            super().reverse()

    def record(self) -> None:
        self._run.record()

    def close(self) -> None:
        if self._detach:
            self._run.detach()
        else:
            self._run.close()


def _speed(steps_per_picture: float) -> str:
    if steps_per_picture >= UNLIMITED:
        return "full speed"
    if steps_per_picture >= 1:
        return f"{counted(round(steps_per_picture), 'step')} per picture"
    return f"1 step per {1 / steps_per_picture:.0f} pictures"
