"""What keys and mouse do to camera and playback. Nothing here draws, so tests need no window."""

from collections.abc import Callable
from dataclasses import dataclass

from nbody.viewer.display.hud import Timeline
from nbody.viewer.picture.camera import Camera
from nbody.viewer.window.playback import Playback

Pixel = tuple[float, float]
Size = tuple[int, int]

LEFT, RIGHT, MIDDLE = 1, 2, 3
"""Mouse buttons, as vispy numbers them."""

LEAP = 10
"""Frames per press of an arrow key with Shift."""

WHEEL_ZOOM, KEY_ZOOM, SPEED_UP = 1.15, 1.25, 1.5


@dataclass(frozen=True)
class Key:
    """A key: its names in vispy, its action (called with the controls and 1 or :data:`LEAP` frames), and its help."""

    names: tuple[str, ...]
    action: Callable[["Controls", int], object]
    help: str = ""


class Controls:
    """Turns events into changes of :attr:`camera` and :attr:`playback`.

    Attributes:
        show_hud: True if text and time line are drawn.
        closed: True if the user asked to close the window.
    """

    def __init__(self, camera: Camera, playback: Playback) -> None:
        self.camera, self.playback = camera, playback
        self.show_hud, self.closed = True, False
        self._home = camera.copy()
        self._dragged: str = ""  # what the pressed mouse button moves: "timeline", "centre" or "angle"

    def key(self, name: str, shift: bool = False) -> bool:
        """Handle a pressed key. Returns True if the key has an action."""
        for key in KEYS:
            if name in key.names:
                key.action(self, LEAP if shift else 1)
                return True
        return False

    def press(self, at: Pixel, button: int, shift: bool, timeline: Timeline) -> None:
        """Handle a mouse button pressed at pixel ``at``."""
        if button == LEFT and self.show_hud and timeline.contains(*at):
            self._dragged = "timeline"
            self.playback.playing = False
            self.playback.seek(timeline.frame_at(at[0], self.playback.frames))
        else:
            self._dragged = "centre" if self.camera.flat or shift or button != LEFT else "angle"

    def move(self, at: Pixel, before: Pixel, timeline: Timeline, size: Size) -> bool:
        """Handle a mouse move from ``before`` to ``at``. Returns True if it was a drag."""
        dx, dy = at[0] - before[0], at[1] - before[1]
        if self._dragged == "timeline":
            self.playback.seek(timeline.frame_at(at[0], self.playback.frames))
        elif self._dragged == "centre":
            self.camera.pan(dx, dy, size)
        elif self._dragged == "angle":
            self.camera.orbit(dx, dy, size)
        return bool(self._dragged)

    def release(self) -> None:
        """Handle a released mouse button."""
        self._dragged = ""

    def wheel(self, notches: float, at: Pixel, size: Size) -> None:
        """Zoom about pixel ``at``: in if ``notches`` is positive, else out."""
        self.camera.zoom(WHEEL_ZOOM**notches, at, size)

    def go_home(self) -> None:
        """Restore the initial view."""
        self.camera = self._home.copy()

    def zoom_in_middle(self, factor: float) -> None:
        """Magnify about the middle of the picture."""
        self.camera.radius /= factor

    def toggle_hud(self) -> None:
        """Show or hide text and time line."""
        self.show_hud = not self.show_hud

    def close(self) -> None:
        """Ask the window to close."""
        self.closed = True

    @property
    def key_help(self) -> str:
        """One line that names the keys and the mouse actions."""
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
