"""The clock that plays a recording."""

from nbody.errors import NBodyError
from nbody.viewer.sources.source import Source
from nbody.viewer.window.transport import Transport

SLOWEST, FASTEST = 0.25, 480.0
"""Limits of the rate, in frames per second."""

LOOPS = ("repeat", "there and back", "once")
"""What happens at the end of the recording."""

REFRESH = 0.5
"""Seconds between checks for new frames, with ``--follow``."""


class Playback(Transport):
    """Plays frames at a fixed rate, forward or backward, and begins again at the end.

    The clock measures seconds, so slow drawing skips frames instead of slowing the playback down.

    Args:
        frames: the number of frames.
        rate: frames per second.
        follow: wait for new frames at the last frame instead of beginning again.
        source: where :meth:`advance` looks for new frames while ``follow``.

    Attributes:
        frames: may be set to a larger number.
        direction: 1 forward, -1 backward.
        loop: one of :data:`LOOPS`.
    """

    frames: int = 0  # type: ignore[assignment]

    def __init__(self, frames: int, rate: float = 30.0, follow: bool = False, source: Source | None = None) -> None:
        self.frames, self.rate, self.follow = frames, rate, follow
        self.direction, self.loop = 1, LOOPS[0]
        self._source, self._since_refresh = source, 0.0
        self._now = 0.0  # in frames

    @property
    def at(self) -> float:
        return min(self._now, self.frames - 1.0)

    @property
    def status(self) -> str:
        state = ("▶" if self.direction > 0 else "◀") if self.playing else "❚❚ paused,"
        loop = "waits for new frames" if self.follow else "" if self.loop == LOOPS[0] else self.loop
        return f"{state} {self.rate:.3g} frames/s" + (f", {loop}" if loop else "")

    def advance(self, seconds: float) -> bool:
        # With ``follow``, also looks for new frames.
        before = self.at, self.frames
        if self.follow:
            self._look_for_frames(seconds)
        if self.playing:
            clock = self._now, self.direction, self.playing
            self._now += seconds * self.rate * self.direction
            if not 0 <= self._now < self.frames:
                self._turn()
            if self._source is not None and self._source.waiting(self.at):
                # Large frames: the clock waits for the disk, and the window goes on drawing.
                self._now, self.direction, self.playing = clock
        return (self.at, self.frames) != before

    def _turn(self) -> None:
        """The clock has passed an end."""
        if self.follow and self.direction > 0:
            self._now = self.frames - 1.0
        elif self.loop == "repeat":
            self._now %= self.frames
        else:
            self._now = self.frames - 1.0 if self._now > 0 else 0.0
            if self.loop == "once":
                self.playing = False
            else:
                self.direction = -self.direction

    def _look_for_frames(self, seconds: float) -> None:
        self._since_refresh += seconds
        if self._source is None or self._since_refresh < REFRESH:
            return
        self._since_refresh = 0.0
        try:
            self.frames = self._source.refresh()
        except NBodyError as error:
            self.follow = self.playing = False
            self.message = str(error)

    def seek(self, frame: float) -> None:
        self._now = float(min(max(frame, 0), self.frames - 1))

    def step(self, frames: int) -> None:
        # Between two frames, a step leads to the next whole frame.
        self.playing = False
        self.seek((self.frame if frames > 0 else -int(-self.at // 1)) + frames)

    def toggle(self) -> None:
        """Play or pause. At the end of a recording that plays once, begin again."""
        end = self.frames - 1 if self.direction > 0 else 0
        if not self.playing and self.loop == "once" and self.at == end and not self.follow:
            self.seek(self.frames - 1 - end)
        super().toggle()

    def faster(self, factor: float) -> None:
        """Multiply the rate by ``factor``, within :data:`SLOWEST` and :data:`FASTEST`."""
        self.rate = min(max(self.rate * factor, SLOWEST), FASTEST)

    def reverse(self) -> None:
        """Play in the other direction."""
        self.direction, self.playing = -self.direction, True

    def next_loop(self) -> None:
        """The next of :data:`LOOPS`."""
        self.loop = LOOPS[(LOOPS.index(self.loop) + 1) % len(LOOPS)]
