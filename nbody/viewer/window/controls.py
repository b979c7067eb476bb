"""What keys and mouse do to camera, clock and look. Nothing here draws, so tests need no window."""

import math

from nbody.viewer.display.hud import Timeline
from nbody.viewer.display.keys import Table
from nbody.viewer.picture.aim import CENTRES
from nbody.viewer.picture.camera import Camera
from nbody.viewer.picture.look import Look
from nbody.viewer.window.keys import GROUPS, KEYS, LEAP, TIME, VIEW, Key
from nbody.viewer.window.transport import Transport

Pixel = tuple[float, float]
Size = tuple[int, int]

LEFT, RIGHT = 1, 2
"""Mouse buttons, as vispy numbers them."""

WHEEL_ZOOM = 1.15

CLICK = 4.0
"""Pixels that the mouse may move between press and release of a click."""

BODY = "body"


class Controls:
    """Turns events into changes of :attr:`camera`, :attr:`transport` and :attr:`look`.

    Attributes:
        show_hud: True if text and time line are drawn.
        show_diagrams, show_keys: True if this panel is drawn.
        chosen: the chosen body (0 to N-1), or None.
        follow: what the camera follows: a word of :data:`~nbody.viewer.picture.aim.CENTRES`, :data:`BODY` for the
            chosen body, or empty.
        notice: a line that tells what a key did; the window takes it.
        requests: what only the window can do: ``picture``, ``view``, ``fullscreen``; the window takes them.
        closed: True if the user asked to close the window.
    """

    camera: Camera
    transport: Transport
    look: Look

    def __init__(self, camera: Camera, transport: Transport, look: Look = Look()) -> None:
        self.camera, self.transport, self.look = camera, transport, look
        self.show_hud, self.show_diagrams, self.show_keys, self.closed = True, False, False, False
        self.chosen: int | None = None
        self.follow, self.notice = "", ""
        self.requests: list[str] = []
        self._home = camera.copy()
        self._dragged = ""  # what the pressed mouse button moves: "timeline", "centre" or "angle"
        self._moved = 0.0

    def key(self, name: str, shift: bool = False) -> bool:
        """Handle a pressed key. Returns True if the key has an action."""
        for key in KEYS:
            if name in key.names and self._applies(key):
                key.action(self, LEAP if shift else 1)
                return True
        return False

    def _applies(self, key: Key) -> bool:
        return key.only in ("", self.transport.kind)

    def press(self, at: Pixel, button: int, shift: bool, timeline: Timeline) -> None:
        """Handle a mouse button pressed at pixel ``at``."""
        self._moved = 0.0
        if button == LEFT and self.show_hud and self.transport.frames > 1 and timeline.contains(*at):
            self._dragged = "timeline"
            self.transport.playing = False
            self.transport.seek(timeline.frame_at(at[0], self.transport.frames))
        else:
            self._dragged = "centre" if self.camera.flat or shift or button != LEFT else "angle"

    def move(self, at: Pixel, before: Pixel, timeline: Timeline, size: Size) -> bool:
        """Handle a mouse move from ``before`` to ``at``. Returns True if it was a drag."""
        dx, dy = at[0] - before[0], at[1] - before[1]
        self._moved += math.hypot(dx, dy)
        if self._dragged == "timeline":
            self.transport.seek(timeline.frame_at(at[0], self.transport.frames))
        elif self._dragged == "centre":
            self.camera.pan(dx, dy, size)
        elif self._dragged == "angle":
            self.camera.orbit(dx, dy, size)
        return bool(self._dragged)

    def release(self, scale: float = 1.0) -> bool:
        """Handle a released mouse button. Returns True if it was a click into the picture."""
        clicked = self._dragged in ("centre", "angle") and self._moved < CLICK * scale
        self._dragged = ""
        return clicked

    def wheel(self, notches: float, at: Pixel, size: Size) -> None:
        """Zoom about pixel ``at``: in if ``notches`` is positive, else out."""
        self.camera.zoom(WHEEL_ZOOM**notches, at, size)

    def go_home(self) -> None:
        """Restore the initial view."""
        self.camera = self._home.copy()

    def choose(self, body: int | None) -> None:
        """Choose a body, or none, which also ends following one."""
        self.chosen = body
        if body is None and self.follow == BODY:
            self.follow = ""

    def next_follow(self) -> None:
        """Follow the chosen body if there is one, then the centre of mass, then the densest point, then nothing."""
        order = ([BODY] if self.chosen is not None else []) + [*CENTRES, ""]
        self.follow = order[(order.index(self.follow) + 1) % len(order)] if self.follow else order[0]

    def change_look(self, name: str) -> None:
        """Choose the next value of a field of the look."""
        self.look = self.look.next(name)
        self._notice(name)

    def brighter(self, stops: float) -> None:
        """Change the exposure."""
        self.look = self.look.brighter(stops)
        self._notice("exposure")

    def _notice(self, name: str) -> None:
        value = getattr(self.look, name)
        text = {True: "on", False: "off"}.get(value, value) if name != "exposure" else f"{value:+g}"
        self.notice = f"{name.replace('_', ' ')}: {text}"

    def toggle(self, name: str) -> None:
        """Show or hide what the attribute ``name`` shows."""
        setattr(self, name, not getattr(self, name))

    def leave(self) -> None:
        """Close the table of keys, or else give up the chosen body, or else close the window."""
        if self.show_keys:
            self.show_keys = False
        elif self.chosen is not None:
            self.choose(None)
        else:
            self.close()

    def close(self) -> None:
        """Ask the window to close."""
        self.closed = True

    @property
    def hints(self) -> list[str]:
        """The most useful keys, for the help line."""
        return [key.hint for key in KEYS if key.hint and self._applies(key)]

    @property
    def key_table(self) -> Table:
        """All keys and mouse actions, by groups."""
        drag = [("drag", "move")] if self.camera.flat else [("drag", "turn"), ("Shift drag", "move")]
        mouse = {TIME: [("bar", "choose the moment")], VIEW: [*drag, ("wheel", "zoom"), ("click", "choose a body")]}
        return [
            (
                group,
                mouse.get(group, [])
                + [(key.label, key.help) for key in KEYS if key.label and key.group == group and self._applies(key)],
            )
            for group in GROUPS
        ]
