"""What keys, time line and canvas ask of a clock: that of a recording, or that of a simulation that is running."""

from abc import ABC, abstractmethod

RECORDED, LIVE = "recorded", "live"


class Transport(ABC):
    """Chooses the moment to show, and obeys the keys. All methods return at once: long work belongs on a thread.

    Attributes:
        kind: :data:`RECORDED` or :data:`LIVE`; some keys apply to one of them only.
        playing: False while paused.
        message: a line for the user, shown below the caption until the next key; the clock may set it at any time.
        failure: an error because of which there is nothing more to show: the window closes.
    """

    kind: str = RECORDED
    playing: bool = True
    message: str = ""
    failure: BaseException | None = None

    @property
    @abstractmethod
    def at(self) -> float:
        """The moment to show, counted in frames: 2.5 is halfway between the frames 2 and 3."""

    @property
    @abstractmethod
    def frames(self) -> int:
        """The number of frames on the time line. With fewer than two there is no time line."""

    @property
    @abstractmethod
    def status(self) -> str:
        """Pause, speed and direction in a few words, such as ``▶ 30 frames/s``; shown at all times."""

    @property
    def frame(self) -> int:
        """The frame at or before :attr:`at`."""
        return int(self.at)

    @abstractmethod
    def advance(self, seconds: float) -> bool:
        """Let ``seconds`` pass. Returns True if there is something new to draw."""

    @abstractmethod
    def seek(self, frame: float) -> None:
        """Show the moment ``frame``, limited to the first and the last frame."""

    @abstractmethod
    def step(self, frames: int) -> None:
        """Pause, and move by ``frames`` (of a live simulation: compute that many steps). May be negative."""

    @abstractmethod
    def faster(self, factor: float) -> None:
        """Multiply the speed by ``factor``."""

    def toggle(self) -> None:
        """Play or pause."""
        self.playing = not self.playing

    def restart(self) -> None:
        """The key Home: go to the first frame, and pause (live: back to the initial conditions)."""
        self.step(-self.frames)

    def finish(self) -> None:
        """The key End: go to the last frame, and pause (live: to the present)."""
        self.step(self.frames)

    def reverse(self) -> None:  # noqa: B027
        """Play in the other direction (recordings)."""

    def next_loop(self) -> None:  # noqa: B027
        """Choose what happens at the end (recordings)."""

    def record(self) -> None:  # noqa: B027
        """Start or stop recording (live)."""

    def close(self) -> None:  # noqa: B027
        """The window is closing: end threads, finish files. May take a moment."""
