"""What keys and mouse do to camera, clock and look. Nothing here draws, so tests need no window.

:data:`KEYS` is the only list of keys: handlers, help line and the table of F1 are made from it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nbody.viewer.display.hud import Timeline
from nbody.viewer.display.text import Table
from nbody.viewer.picture.aim import CENTRES, Follow
from nbody.viewer.picture.look import BRIGHTEST, DIMMEST, Look
from nbody.viewer.sources.camera import Camera, Size
from nbody.viewer.sources.frames import Array, ShownMoment
from nbody.viewer.sources.source import Source
from nbody.viewer.window.clock import LIVE, RECORDED, Playback

Pixel = tuple[float, float]

LEFT, RIGHT = 1, 2  # mouse buttons, as vispy numbers them
WHEEL_ZOOM, KEY_ZOOM, SPEED_UP, STOP = 1.15, 1.25, 1.5, 0.5  # of zoom and speed; of the exposure
LEAP = 10  # frames per press of an arrow key with Shift
THRUST, MOST_THRUST, COAST = 0.35, 1.5, 0.4
"""Of free flight: what a key adds to the speed, and the greatest speed, in radii of the view per second; and the seconds in
which the speed falls to 1/e."""

CLICK = 4.0  # pixels that the mouse may move between press and release of a click

BODY = "body"


class Controls:
    """Turns events into changes of ``camera``, clock (``transport``) and ``look``.

    Attributes:
        show_hud: True if text and time line are drawn.
        flying: the mouse turns the camera about itself, and letters move it, instead of orbiting the centre.
        chosen: the chosen body (0 to N-1), or None.
        follow: what the camera follows: :data:`BODY` for the chosen body, one of ``centres``, or empty.
        centres: words that :class:`~nbody.viewer.picture.aim.Follow` knows, for the key F.
        notice: a line that tells what a key did; the window takes it.
        requests: what only the window can do: ``picture``, ``view``, ``fullscreen``; the window takes them.
        closed: True if the user asked to close the window.
    """

    def __init__(self, camera: Camera, transport: Playback, look: Look = Look()) -> None:
        self.camera, self.transport, self.look = camera, transport, look
        self.show_hud, self.show_diagrams, self.show_keys, self.closed = True, False, False, False
        self.flying, self._speed = False, np.zeros(2)
        self.chosen: int | None = None
        self.follow, self.notice = "", ""
        self.centres = tuple(CENTRES)
        self.requests: list[str] = []
        self._home = camera.copy()
        self._followed: Follow | None = None
        self._aimed_at: tuple[Camera, Array] | None = None  # camera and followed point at the last drawing
        self._dragged = ""  # what the pressed mouse button moves: "timeline", "centre" or "angle"
        self._moved = 0.0

    # --- Keys ---

    def key(self, name: str, shift: bool = False) -> bool:
        """Handle a pressed key. Returns True if the key has an action."""
        for key in self._keys():
            if name in key.names:
                key.action(self, LEAP if shift else 1)
                return True
        return False

    def _keys(self) -> list["Key"]:
        """The keys that have a meaning now."""
        now = "", self.transport.kind, PLANE if self.camera.flat else SPACE, FLIGHT if self.flying else ORBIT
        keys = [key for key in KEYS if key.only in now]
        flight = {name for key in keys if key.only == FLIGHT for name in key.names}
        return [key for key in keys if key.only == FLIGHT or not flight.intersection(key.names)]

    @property
    def hints(self) -> tuple[str, ...]:
        """The most useful keys, for the help line."""
        return tuple(key.hint for key in self._keys() if key.hint)

    @property
    def key_table(self) -> Table:
        """All keys and mouse actions, by groups."""
        rows = [(key.group, (key.label, key.help)) for key in self._keys() if key.label]
        return tuple((group, tuple(row for of, row in rows if of == group)) for group in GROUPS)

    def go_home(self) -> None:
        self.camera, self.flying = self._home.copy(), False

    def fly(self, right: float, ahead: float) -> None:
        """Accelerate to the right or ahead, by a number of pressed keys."""
        speed = self._speed + THRUST * np.array([right, ahead])
        self._speed = speed * min(1.0, MOST_THRUST / max(float(np.linalg.norm(speed)), 1e-9))

    def tick(self, seconds: float) -> bool:
        """Let time pass for free flight. Returns True if the camera moves."""
        if not (self.flying and self._speed.any()):
            self._speed[:] = 0.0
            return False
        left = math.exp(-seconds / COAST)
        self.camera.fly(*(COAST * (1 - left) * self._speed))
        self._speed *= left * (np.abs(self._speed).max() > THRUST / 50)
        return True

    def choose(self, body: int | None) -> None:
        """Choose a body, or none, which also ends following one."""
        self.chosen = body
        if body is None and self.follow == BODY:
            self.follow = ""

    def next_follow(self) -> None:
        """Follow the chosen body if there is one, then each of the centres, then nothing."""
        order = ([BODY] if self.chosen is not None else []) + [*self.centres, ""]
        self.follow = order[(order.index(self.follow) + 1) % len(order)] if self.follow else order[0]

    def aim(self, source: Source, moment: ShownMoment) -> str:
        """Move the camera with what it follows; returns that in words. The mouse may move the camera relative to it, until
        the view is reset."""
        if not self.follow:
            self._followed = self._aimed_at = None
            return ""
        target = str(source.catalogue.id[self.chosen]) if self.follow == BODY else self.follow
        if self._followed is None or self._followed.target != target:
            self._followed, self._aimed_at = Follow(source, target), None
        before = self.camera.centre
        self._followed.aim(self.camera, moment)
        point = self.camera.centre
        if self._aimed_at is not None and self._aimed_at[0] is self.camera:
            self.camera.centre = before + (point - self._aimed_at[1])
        self._aimed_at = self.camera, point
        return self._followed.label

    def change_look(self, name: str) -> None:
        """Choose the next value of a field of the look."""
        self.look = self.look.next(name)
        value = getattr(self.look, name)
        shown = ("off", "on")[value] if isinstance(value, bool) else value
        self.notice = f"{name.replace('_', ' ')}: {shown}"

    def brighter(self, stops: float) -> None:
        """Multiply the light by 2 to the power of ``stops``, within limits."""
        exposure = min(max(self.look.exposure + stops, DIMMEST), BRIGHTEST)
        self.look, self.notice = replace(self.look, exposure=exposure), f"exposure: {exposure:+g}"

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
            self.closed = True

    # --- Mouse ---

    def press(self, at: Pixel, button: int, shift: bool, timeline: Timeline) -> None:
        """Handle a mouse button pressed at pixel ``at``."""
        self._moved = 0.0
        if button == LEFT and self.show_hud and self.transport.frames > 1 and timeline.contains(*at):
            self._dragged = "timeline"
            self.transport.choose(timeline.place(at[0]))
        else:
            turn = "look" if self.flying else "angle"
            self._dragged = "centre" if self.camera.flat or shift or button != LEFT else turn

    def move(self, at: Pixel, before: Pixel, timeline: Timeline, size: Size) -> bool:
        """Handle a mouse move from ``before`` to ``at``. Returns True if it was a drag."""
        dx, dy = at[0] - before[0], at[1] - before[1]
        self._moved += math.hypot(dx, dy)
        if self._dragged == "timeline":
            self.transport.choose(timeline.place(at[0]))
        elif self._dragged == "centre":
            self.camera.pan(dx, dy, size)
        elif self._dragged == "angle":
            self.camera.orbit(dx, dy, size)
        elif self._dragged == "look":
            self.camera.look(dx, dy, size)
        return bool(self._dragged)

    def release(self, scale: float = 1.0) -> bool:
        """Handle a released mouse button. Returns True if it was a click into the picture."""
        clicked = self._dragged in ("centre", "angle", "look") and self._moved < CLICK * scale
        self._dragged = ""
        return clicked

    def wheel(self, notches: float, at: Pixel, size: Size) -> None:
        """Zoom about pixel ``at``: in if ``notches`` is positive, else out. In free flight, fly ahead or back."""
        if self.flying:
            self.camera.fly(0.0, notches * math.log(WHEEL_ZOOM))
            return
        self.camera.zoom(WHEEL_ZOOM**notches, at, size)


@dataclass(frozen=True)
class Key:
    """A key, by its ``names`` in vispy, or what the mouse does (without names).

    Attributes:
        action: called with the controls and 1, or :data:`LEAP` with Shift.
        label, help: the key's name and what it does, in the table; empty for a key whose neighbour says it.
        hint: shown in the help line.
        only: where it has a meaning, if not everywhere: :data:`RECORDED`, :data:`LIVE`, :data:`PLANE`, :data:`SPACE`,
            :data:`ORBIT` or :data:`FLIGHT`, whose keys are not those of other things then.
    """

    names: tuple[str, ...]
    action: Callable[[Controls, int], object]
    group: str = ""
    label: str = ""
    help: str = ""
    hint: str = ""
    only: str = ""


def _mouse(group: str, label: str, help: str, only: str = "") -> Key:
    return Key((), lambda c, n: None, group, label, help, only=only)


PLANE, SPACE, ORBIT, FLIGHT = "plane", "space", "orbit", "flight"
TIME, VIEW, LOOK, PANELS = "Time", "View", "Look", "Panels and files"
GROUPS = (TIME, VIEW, LOOK, PANELS)

KEYS = (
    _mouse(TIME, "bar", "choose the moment"),
    Key((" ", "Space"), lambda c, n: c.transport.toggle(), TIME, "Space", "play, pause", "Space play/pause"),
    Key(("Left",), lambda c, n: c.transport.step(-n)),
    Key(("Right",), lambda c, n: c.transport.step(n), TIME, "← →", "one step; Shift: ten", "← → step"),
    Key(("Up",), lambda c, n: c.transport.faster(SPEED_UP)),
    Key(("Down",), lambda c, n: c.transport.faster(1 / SPEED_UP), TIME, "↑ ↓", "faster, slower", "↑ ↓ speed"),
    Key(("Home",), lambda c, n: c.transport.leap(-1)),
    Key(("End",), lambda c, n: c.transport.leap(1), TIME, "Home End", "start, end"),
    Key(("B",), lambda c, n: c.transport.reverse(), TIME, "B", "backward, forward"),
    Key(("L",), lambda c, n: c.transport.next_loop(), TIME, "L", "what happens at the end", only=RECORDED),
    Key(("O",), lambda c, n: c.transport.record(), TIME, "O", "start, stop recording", "O record", LIVE),
    _mouse(VIEW, "drag", "move", PLANE),
    _mouse(VIEW, "drag", "turn", SPACE),
    _mouse(VIEW, "Shift drag", "move", SPACE),
    _mouse(VIEW, "wheel", "zoom", ORBIT),
    _mouse(VIEW, "wheel", "fly", FLIGHT),
    Key(("W",), lambda c, n: c.fly(0, n), only=FLIGHT),
    Key(("A",), lambda c, n: c.fly(-n, 0), only=FLIGHT),
    Key(("S",), lambda c, n: c.fly(0, -n), only=FLIGHT),
    Key(("D",), lambda c, n: c.fly(n, 0), VIEW, "W A S D", "fly", "W A S D fly", FLIGHT),
    Key(("Y",), lambda c, n: c.toggle("flying"), VIEW, "Y", "free flight, or orbit", "Y free flight", SPACE),
    _mouse(VIEW, "click", "choose a body"),
    Key(("+", "="), lambda c, n: c.camera.magnify(KEY_ZOOM)),
    Key(("-",), lambda c, n: c.camera.magnify(1 / KEY_ZOOM), VIEW, "+ −", "zoom"),
    Key(("R",), lambda c, n: c.go_home(), VIEW, "R", "reset the view", "R reset view"),
    Key(("F",), lambda c, n: c.next_follow(), VIEW, "F", "follow body or centre", "F follow"),
    Key(("V",), lambda c, n: c.requests.append("view"), VIEW, "V", "save view for --camera"),
    Key(("C",), lambda c, n: c.change_look("color"), LOOK, "C", "what colours show", "C colours"),
    Key(("M",), lambda c, n: c.change_look("map"), LOOK, "M", "colour map"),
    Key(("G",), lambda c, n: c.change_look("background"), LOOK, "G", "background"),
    Key(("Z",), lambda c, n: c.change_look("sizes"), LOOK, "Z", "sizes"),
    Key(("T",), lambda c, n: c.change_look("trails"), LOOK, "T", "trails"),
    Key(("W",), lambda c, n: c.change_look("vectors"), LOOK, "W", "velocity arrows"),
    Key(("N",), lambda c, n: c.change_look("contours"), LOOK, "N", "density contours"),
    Key(("A",), lambda c, n: c.change_look("axes"), LOOK, "A", "axes"),
    Key(("K",), lambda c, n: c.change_look("scale_bar"), LOOK, "K", "scale bar"),
    Key(("D",), lambda c, n: c.change_look("smooth"), LOOK, "D", "smooth density"),
    Key(("E",), lambda c, n: c.change_look("auto_exposure"), LOOK, "E", "automatic exposure"),
    Key(("[",), lambda c, n: c.brighter(-STOP)),
    Key(("]",), lambda c, n: c.brighter(STOP), LOOK, "[ ]", "darker, brighter"),
    Key(("P",), lambda c, n: c.toggle("show_diagrams"), PANELS, "P", "diagrams against time", "P diagrams"),
    Key(("H",), lambda c, n: c.toggle("show_hud"), PANELS, "H", "hide, show all text", "H hide"),
    Key(("S",), lambda c, n: c.requests.append("picture"), PANELS, "S", "save a picture", "S save picture"),
    Key(("F11",), lambda c, n: c.requests.append("fullscreen"), PANELS, "F11", "full screen"),
    Key(("F1", "?"), lambda c, n: c.toggle("show_keys"), PANELS, "F1 ?", "this table"),
    Key(("Escape",), lambda c, n: c.leave(), PANELS, "Esc", "close table, body, window"),
    Key(("Q",), lambda c, n: setattr(c, "closed", True), PANELS, "Q", "close the window", "Q quit"),
)
