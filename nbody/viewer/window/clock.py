"""The clock that chooses the moment to show: that of a recording; of a live simulation see :mod:`.live_clock`."""

import math
from collections import deque
from time import perf_counter

from nbody.errors import NBodyError
from nbody.viewer.sources.source import Source

RECORDED, LIVE = "recorded", "live"

SLOWEST, FASTEST = 0.25, 480.0  # limits of the rate of a playback, in frames per second
LOOPS = ("repeat", "there and back", "once")  # what happens at the end of the recording
COUNTED = 1.0  # seconds over which pictures are counted
SLOW = 0.8  # fewer pictures than this part of the frames per second are told
REFRESH = 0.5  # seconds between checks for new frames, with '--follow'


class Playback:
    """Plays ``rate`` frames per second, and obeys the keys. It measures seconds, so slow drawing skips frames instead of
    slowing the playback down. With ``follow`` it waits at the last frame for new ones, which :meth:`advance` looks for in
    ``source``. All methods return at once: long work belongs on a thread.

    Attributes:
        kind: :data:`RECORDED` or :data:`LIVE`; some keys apply to one of them only.
        frames: their number, which may grow. With fewer than two there is no time line.
        playing: False while paused.
        message: a line for the user, shown below the caption until the next key; the clock may set it at any time.
        done: nothing more will come, and the command goes on without a page.
    """

    kind: str = RECORDED
    playing: bool = True
    message: str = ""
    done: bool = False

    def __init__(self, frames: int, rate: float = 30.0, follow: bool = False, source: Source | None = None) -> None:
        self.frames, self._rate, self._follow, self._source = frames, rate, follow, source
        self._direction, self._loop = 1, LOOPS[0]  # 1 forward, -1 backward
        self._since_refresh, self._now = 0.0, 0.0  # the moment that is shown, in frames
        self._drawn_at: deque[float] = deque()

    @property
    def at(self) -> float:
        """The moment to show, counted in frames: 2.5 is halfway between the frames 2 and 3."""
        return min(self._now, self.frames - 1.0)

    def drawn(self) -> None:
        """A picture has been drawn."""
        self._drawn_at.append(perf_counter())

    def _pictures_per_s(self) -> float:
        """The pictures drawn per second, measured over the last one; NaN in the first second, and after a pause."""
        now, found = perf_counter(), self._drawn_at
        while found and (found[0] < now - 2 * COUNTED or (len(found) > 1 and found[1] <= now - COUNTED)):
            found.popleft()
        return (len(found) - 1) / (now - found[0]) if found and found[0] <= now - COUNTED else math.nan

    @property
    def status(self) -> str:
        """Pause, speed and direction in a few words, such as ``▶ 30 frames/s``."""
        state = ("▶" if self._direction > 0 else "◀") if self.playing else "❚❚ paused,"
        if self._follow and self.playing and self.at == self.frames - 1:
            return f"{state} the newest frame, waits for others"
        loop = "then waits for new frames" if self._follow else "" if self._loop == LOOPS[0] else self._loop
        made = self._pictures_per_s() if self.playing else math.nan
        pictures = f" in {made:.2g} pictures" if made < SLOW * self._rate else ""
        return f"{state} {self._rate:.3g} frames/s{pictures}" + (f", {loop}" if loop else "")

    def place(self, at: float) -> float:
        """Where the moment ``at`` is on the time line, from 0 to 1."""
        return (at + 0.5) / self.frames

    def choose(self, place: float) -> None:
        """Pause, and show the frame at a place on the time line."""
        self.playing = False
        self.seek(int(place * self.frames))

    def advance(self, seconds: float) -> bool:
        """Let ``seconds`` pass. Returns True if there is something new to draw. Raises the error because of which there is
        nothing more to show."""
        before = self.at, self.frames
        if self._follow:
            self._look_for_frames(seconds)
        if self.playing:
            clock = self._now, self._direction, self.playing
            self._now += seconds * self._rate * self._direction
            if not 0 <= self._now < self.frames:
                self._turn()
            if self._source is not None and self._source.waiting(self.at):
                # Large frames: the clock waits for the disk, and the window goes on drawing.
                self._now, self._direction, self.playing = clock
        return (self.at, self.frames) != before

    def _turn(self) -> None:
        """The clock has passed an end."""
        if self._follow and self._direction > 0:
            self._now = self.frames - 1.0
        elif self._loop == "repeat":
            self._now %= self.frames
        else:
            self._now = self.frames - 1.0 if self._now > 0 else 0.0
            if self._loop == "once":
                self.playing = False
            else:
                self._direction = -self._direction

    def _look_for_frames(self, seconds: float) -> None:
        self._since_refresh += seconds
        if self._source is None or self._since_refresh < REFRESH:
            return
        self._since_refresh = 0.0
        try:
            self.frames = self._source.refresh()
        except NBodyError as error:
            self._follow = self.playing = False
            self.message = str(error)

    def seek(self, frame: float) -> None:
        """Show the moment ``frame``, limited to the first and the last frame."""
        self._now = float(min(max(frame, 0), self.frames - 1))

    def step(self, frames: int) -> None:
        """Pause, and move by ``frames`` (of a live simulation: compute that many steps). May be negative."""
        self.playing = False
        self.seek(self._stepped(frames))

    def _stepped(self, frames: int) -> int:
        """Between two frames, a step leads to the next whole frame."""
        return (int(self.at) if frames > 0 else -int(-self.at // 1)) + frames

    def toggle(self) -> None:
        """Play or pause. At the end of a recording that plays once, begin again."""
        end = self.frames - 1 if self._direction > 0 else 0
        if not self.playing and self._loop == "once" and self.at == end and not self._follow:
            self.seek(self.frames - 1 - end)
        self.playing = not self.playing

    def faster(self, factor: float) -> None:
        """Multiply the speed by ``factor``, within limits."""
        self._rate = min(max(self._rate * factor, SLOWEST), FASTEST)

    def leap(self, direction: int) -> None:
        """The keys Home (-1) and End (1): go to the first or the last frame (live: the present), and pause."""
        self.step(direction * self.frames)

    def reverse(self) -> None:
        """Play in the other direction."""
        self._direction, self.playing = -self._direction, True

    def next_loop(self) -> None:
        """Choose what happens at the end (recordings)."""
        self._loop = LOOPS[(LOOPS.index(self._loop) + 1) % len(LOOPS)]

    def record(self) -> None:
        """Start or stop recording (live)."""

    def close(self) -> None:
        """The window is closing: end threads, finish files. May take a moment."""
