"""The clock that chooses the frame to show."""

SLOWEST, FASTEST = 0.25, 480.0
"""Limits of the rate, in frames per second."""


class Playback:
    """Plays frames at a fixed rate and starts again after the last one.

    The clock measures seconds, so slow drawing skips frames instead of slowing the playback down.

    Attributes:
        frames: the number of frames.
        rate: frames per second.
        playing: False while paused.
        follow: wait for new frames at the last frame instead of starting again.
    """

    def __init__(self, frames: int, rate: float = 30.0, follow: bool = False) -> None:
        self.frames, self.rate, self.follow, self.playing = frames, rate, follow, True
        self._now = 0.0  # in frames

    @property
    def at(self) -> float:
        """The moment to show, counted in frames: 2.5 is halfway between the frames 2 and 3."""
        return min(self._now, float(self.last))

    @property
    def frame(self) -> int:
        """The frame to show."""
        return int(self._now)

    @property
    def last(self) -> int:
        """The last frame."""
        return self.frames - 1

    def advance(self, seconds: float) -> None:
        """Advance the clock, if it is playing."""
        if not self.playing:
            return
        self._now += seconds * self.rate
        if self._now >= self.frames:
            self._now = float(self.last) if self.follow else self._now % self.frames

    def seek(self, frame: int) -> None:
        """Show ``frame``, limited to the first and the last."""
        self._now = float(min(max(frame, 0), self.last))

    def step(self, frames: int) -> None:
        """Pause, and move by ``frames`` (may be negative), limited to the first and the last."""
        self.playing = False
        self.seek(self.frame + frames)

    def toggle(self) -> None:
        """Play or pause."""
        self.playing = not self.playing

    def faster(self, factor: float) -> None:
        """Multiply the rate by ``factor``, within :data:`SLOWEST` and :data:`FASTEST`."""
        self.rate = min(max(self.rate * factor, SLOWEST), FASTEST)

    def grow(self, frames: int) -> None:
        """Set a larger number of frames."""
        self.frames = frames
