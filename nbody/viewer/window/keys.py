"""The keys of the window, and what each does. Help line and table of keys are made from this list."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nbody.viewer.window.transport import LIVE, RECORDED

if TYPE_CHECKING:
    from nbody.viewer.window.controls import Controls

LEAP = 10
"""Frames per press of an arrow key with Shift."""

KEY_ZOOM, SPEED_UP, STOP = 1.25, 1.5, 0.5


@dataclass(frozen=True)
class Key:
    """A key.

    Attributes:
        names: its names in vispy.
        action: called with the controls and 1, or :data:`LEAP` with Shift.
        group: the group in the table.
        label, help: the key's name and what it does, in the table; empty for a key whose neighbour says it.
        hint: shown in the help line.
        only: :data:`RECORDED` or :data:`LIVE`, if it has a meaning only there.
    """

    names: tuple[str, ...]
    action: Callable[["Controls", int], object]
    group: str = ""
    label: str = ""
    help: str = ""
    hint: str = ""
    only: str = ""


TIME, VIEW, LOOK, PANELS = "Time", "View", "Look", "Panels and files"
GROUPS = (TIME, VIEW, LOOK, PANELS)

KEYS = (
    Key((" ", "Space"), lambda c, n: c.transport.toggle(), TIME, "Space", "play, pause", "Space play/pause"),
    Key(("Left",), lambda c, n: c.transport.step(-n)),
    Key(("Right",), lambda c, n: c.transport.step(n), TIME, "← →", "one step; Shift: ten", "← → step"),
    Key(("Up",), lambda c, n: c.transport.faster(SPEED_UP)),
    Key(("Down",), lambda c, n: c.transport.faster(1 / SPEED_UP), TIME, "↑ ↓", "faster, slower", "↑ ↓ speed"),
    Key(("Home",), lambda c, n: c.transport.restart()),
    Key(("End",), lambda c, n: c.transport.finish(), TIME, "Home End", "start, end"),
    Key(("B",), lambda c, n: c.transport.reverse(), TIME, "B", "backward, forward", only=RECORDED),
    Key(("L",), lambda c, n: c.transport.next_loop(), TIME, "L", "what happens at the end", only=RECORDED),
    Key(("O",), lambda c, n: c.transport.record(), TIME, "O", "start, stop recording", "O record", LIVE),
    Key(("+", "="), lambda c, n: c.camera.magnify(KEY_ZOOM)),
    Key(("-",), lambda c, n: c.camera.magnify(1 / KEY_ZOOM), VIEW, "+ −", "zoom, as the wheel"),
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
    Key(("[",), lambda c, n: c.brighter(-STOP)),
    Key(("]",), lambda c, n: c.brighter(STOP), LOOK, "[ ]", "darker, brighter"),
    Key(("P",), lambda c, n: c.toggle("show_diagrams"), PANELS, "P", "diagrams against time", "P diagrams"),
    Key(("H",), lambda c, n: c.toggle("show_hud"), PANELS, "H", "hide, show all text", "H hide"),
    Key(("S",), lambda c, n: c.requests.append("picture"), PANELS, "S", "save a picture", "S save picture"),
    Key(("F11",), lambda c, n: c.requests.append("fullscreen"), PANELS, "F11", "full screen"),
    Key(("F1", "?"), lambda c, n: c.toggle("show_keys"), PANELS, "F1 ?", "this table"),
    Key(("Escape",), lambda c, n: c.leave(), PANELS, "Esc", "close table, body, window"),
    Key(("Q",), lambda c, n: c.close(), PANELS, "Q", "close the window", "Q quit"),
)
