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

STATUS_SECONDS = 0.25  # seconds between updates of the status


class LiveClock(Playback):
    """Shows the present of ``source``, or plays the frames that were shown before, and meanwhile the run is paused. With
    ``detach`` the run goes on when the window is closed (``nbody run --view``).

    Attributes:
        back: an earlier frame than the present one is shown.
    """

    kind = LIVE

    def __init__(self, source: Live, detach: bool = False) -> None:
        super().__init__(source.frames, source=source)
        self.source, self.run, self._detach = source, source.run, detach
        self.back = False
        self._plays = self._goes_on = False  # the frames while going back; the run afterwards
        self._status, self._status_at = "", -math.inf
        self._facts: tuple = ()
        self._newest: ShownFrame | None = None
        self._reported = False  # the failure of the run

    @property
    def playing(self) -> bool:  # type: ignore[override]
        return self._plays if self.back else self.run.pace.playing

    @playing.setter
    def playing(self, value: bool) -> None:
        if self.back:
            self._plays = value
        elif value != self.run.pace.playing:
            self.run.pace.toggle()

    @property
    def done(self) -> bool:
        # A run that is recorded to its end has ended.
        return self._detach and not self.run.thread.is_alive()

    @property
    def number(self) -> int:
        return self.source.caption(self.at).step

    def place(self, at: float) -> float:
        """How much of the run was done at the moment ``at``."""
        first, last = (self.source.caption(k).time for k in (0, self.frames - 1))
        done = 0.0 if self.run.progress is None else self.run.progress.fraction_done
        return done if last == first else done * (self.source.caption(at).time - first) / (last - first)

    def frame_at(self, place: float) -> int:
        # The nearest one.
        after = bisect_left(range(self.frames), place, key=self.place)
        nearest = [k for k in (after - 1, after) if 0 <= k < self.frames]
        return min(nearest, key=lambda k: abs(self.place(k) - place))

    def advance(self, seconds: float) -> bool:
        with suppress(queue.Empty):
            self.message = self.run.messages.get_nowait()
        if self.run.failure is not None and not self.run.prepared:
            self.failure = self.run.failure
        elif self.run.failure is not None and not self._reported:
            self._reported, self.message = True, " ".join(str(self.run.failure).split()) or "the run has ended"
        before = self.at, self.status
        if self.back:
            super().advance(seconds)
        elif (newest := self.source.past(self.source.refresh() - 1)) is not self._newest:
            self._newest = newest
            self._show_present()
            return True
        return (self.at, self.status) != before

    def _turn(self) -> None:
        # At the newest frame the run goes on.
        if self.direction > 0:
            self._go(self.frames - 1)
        else:
            self._now, self._plays = 0.0, False

    def _show_present(self) -> None:
        self.back, self.direction, self.frames = False, 1, self.source.frames
        self._now = self.frames - 1.0

    def _go(self, k: int) -> None:
        """Show frame ``k``, with the run paused; or the present, where the run goes on if it did before."""
        if not self.back:
            self._goes_on = self.run.pace.playing
        self.playing = False
        if k < self.frames - 1:
            self.back, self._plays = True, False
            self.seek(k)
        else:
            self._show_present()
            self.playing = self._goes_on

    @property
    def status(self) -> str:
        run, now = self.run, time.monotonic()
        facts = (
            run.ended,
            self.playing,
            self.back and self.at,
            self.rate,
            self.direction,
            run.pace.steps_per_picture,
            run.recording,
            run.progress is None,
        )
        if facts != self._facts or now - self._status_at >= STATUS_SECONDS:
            self._status, self._status_at, self._facts = self._describe(), now, facts
        return self._status

    def _describe(self) -> str:
        run, pace, words = self.run, self.run.pace, []
        if self.back:
            return f"{super().status}, picture {self.frame + 1} of {self.frames} · End: the present"
        if run.ended or run.failure is not None:
            words.append("■ at its end" if run.failure is None else "■ stopped")
        elif run.progress is None and pace.playing:
            words.append("▶ preparing")
        else:
            words += ["▶" if pace.playing else "❚❚ paused,", _speed(pace.steps_per_picture)]
        if pace.steps_per_s and pace.playing and not run.ended:
            if pace.steps_per_picture >= UNLIMITED:
                words.append(f"· {pace.steps_per_s:.3g} steps/s")
            elif not math.isnan(pictures := self.pictures_per_s):
                words.append(f"· {pictures:.0f} pictures/s")
        if run.progress and run.progress.doing:
            words.append(f"· {run.progress.doing}: {run.progress.fraction:.0%}")
        if run.recording:
            words.append(f"· ● recording {run.recording}")
        return " ".join(words)

    def choose(self, place: float) -> None:
        self._go(self.frame_at(place))

    def step(self, frames: int) -> None:
        # Of the run, unless an earlier picture is shown.
        if self.back or frames < 0:
            self._go(max(0, self._stepped(frames)))
        else:
            self.run.pace.step(frames)

    def faster(self, factor: float) -> None:
        # Of a run that is shown: twice or half the steps per picture.
        if self.back:
            super().faster(factor)
        else:
            self.run.pace.faster(2.0 if factor > 1 else 0.5)

    def restart(self) -> None:
        # From the first picture on, start the run again.
        if self.at > 0:
            self._go(0)
            self.message = "" if self._detach else AGAIN
            return
        if not self._detach:
            self._show_present()
        self.run.restart()

    def finish(self) -> None:
        if self.back:
            self._go(self.frames - 1)

    def reverse(self) -> None:
        if not self.back:
            self._go(max(0, self.frames - 2))
        if self.back:
            super().reverse()

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
