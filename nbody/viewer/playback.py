"""When: the clock that says which frame is shown."""

SLOWEST, FASTEST = 0.25, 480.0


class Playback:
    """Plays ``frames`` frames at ``rate`` frames a second, from the first again after the last.

    A drawing that is late skips frames instead of slowing down: the clock counts seconds, not drawings.

    Attributes:
        frames: how many there are.
        rate: frames a second.
        playing: whether time goes on.
        follow: wait for more at the last frame instead of beginning anew.
    """

    def __init__(self, frames: int, rate: float = 30.0, follow: bool = False) -> None:
        self.frames, self.rate, self.follow, self.playing = frames, rate, follow, True
        self._now = 0.0  # in frames

    @property
    def frame(self) -> int:
        """The frame to show."""
        return int(self._now)

    @property
    def last(self) -> int:
        """The last frame."""
        return self.frames - 1

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if not self.playing:
            return
        self._now += seconds * self.rate
        if self._now >= self.frames:
            self._now = float(self.last) if self.follow else self._now % self.frames

    def seek(self, frame: int) -> None:
        """Show ``frame``, or the first or last if it lies beyond."""
        self._now = float(min(max(frame, 0), self.last))

    def step(self, frames: int) -> None:
        """Stop, and move by some frames; at the ends, stay there."""
        self.playing = False
        self.seek(self.frame + frames)

    def toggle(self) -> None:
        """Play or pause."""
        self.playing = not self.playing

    def faster(self, factor: float) -> None:
        """Change the rate."""
        self.rate = min(max(self.rate * factor, SLOWEST), FASTEST)

    def grow(self, frames: int) -> None:
        """There are more frames now."""
        self.frames = frames
