"""What keys and mouse do to camera and playback. Nothing here draws, so that it is tested without a window."""

from collections.abc import Callable
from dataclasses import dataclass

from nbody.viewer.camera import Camera
from nbody.viewer.hud import Timeline
from nbody.viewer.playback import Playback

Place = tuple[float, float]
Size = tuple[int, int]

LEFT, RIGHT, MIDDLE = 1, 2, 3
"""Mouse buttons, as vispy numbers them."""

LEAP = 10
"""Frames of an arrow key with Shift."""

WHEEL_ZOOM, KEY_ZOOM, SPEED_UP = 1.15, 1.25, 1.5


@dataclass(frozen=True)
class Key:
    """A key: its names in vispy, what it does (given the frames of a step, 1 or :data:`LEAP`), and the help."""

    names: tuple[str, ...]
    action: Callable[["Controls", int], object]
    help: str = ""


class Controls:
    """Turns events into changes of :attr:`camera` and :attr:`playback`.

    Attributes:
        show_hud: whether the display is drawn.
        closed: whether the window is to close.
    """

    def __init__(self, camera: Camera, playback: Playback) -> None:
        self.camera, self.playback = camera, playback
        self.show_hud, self.closed = True, False
        self._home = camera.copy()
        self._held: str = ""  # what the mouse button that is down moves

    def key(self, name: str, shift: bool = False) -> bool:
        """A key went down. True if it meant something."""
        for key in KEYS:
            if name in key.names:
                key.action(self, LEAP if shift else 1)
                return True
        return False

    def press(self, at: Place, button: int, shift: bool, timeline: Timeline) -> None:
        """A mouse button went down at pixel ``at``."""
        if button == LEFT and self.show_hud and timeline.contains(*at):
            self._held = "timeline"
            self.playback.playing = False
            self.playback.seek(timeline.frame_at(at[0], self.playback.frames))
        else:
            self._held = "centre" if self.camera.flat or shift or button != LEFT else "angle"

    def move(self, at: Place, before: Place, timeline: Timeline, size: Size) -> bool:
        """The mouse moved from ``before`` to ``at``. True if something was held."""
        dx, dy = at[0] - before[0], at[1] - before[1]
        if self._held == "timeline":
            self.playback.seek(timeline.frame_at(at[0], self.playback.frames))
        elif self._held == "centre":
            self.camera.pan(dx, dy, size)
        elif self._held == "angle":
            self.camera.orbit(dx, dy, size)
        return bool(self._held)

    def release(self) -> None:
        """The mouse button went up."""
        self._held = ""

    def wheel(self, notches: float, at: Place, size: Size) -> None:
        """The wheel turned, away from the hand if positive."""
        self.camera.zoom(WHEEL_ZOOM**notches, at, size)

    def go_home(self) -> None:
        """See the run as at first."""
        self.camera = self._home.copy()

    def zoom_in_middle(self, factor: float) -> None:
        """Magnify what is in the middle."""
        self.camera.radius /= factor

    def toggle_hud(self) -> None:
        """Show or hide the display."""
        self.show_hud = not self.show_hud

    def close(self) -> None:
        """Have the window closed."""
        self.closed = True

    @property
    def key_help(self) -> str:
        """One line about keys and mouse."""
        drag = "drag move" if self.camera.flat else "drag turn   Shift+drag move"
        return "   ".join([*(key.help for key in KEYS if key.help), drag, "wheel zoom"])


KEYS = (
    Key((" ", "Space"), lambda c, n: c.playback.toggle(), "Space play/pause"),
    Key(("Left",), lambda c, n: c.playback.step(-n)),
    Key(("Right",), lambda c, n: c.playback.step(n), "← → frame (Shift: ten)"),
    Key(("Up",), lambda c, n: c.playback.faster(SPEED_UP)),
    Key(("Down",), lambda c, n: c.playback.faster(1 / SPEED_UP), "↑ ↓ speed"),
    Key(("Home",), lambda c, n: c.playback.step(-c.playback.frames)),
    Key(("End",), lambda c, n: c.playback.step(c.playback.frames), "Home End"),
    Key(("+", "="), lambda c, n: c.zoom_in_middle(KEY_ZOOM)),
    Key(("-",), lambda c, n: c.zoom_in_middle(1 / KEY_ZOOM)),
    Key(("R",), lambda c, n: c.go_home(), "R reset view"),
    Key(("H",), lambda c, n: c.toggle_hud(), "H hide"),
    Key(("Escape", "Q"), lambda c, n: c.close(), "Q quit"),
)
