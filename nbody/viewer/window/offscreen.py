"""The window without a screen: a page of a notebook or a browser shows its pictures and passes events on.

Import this module only after :func:`nbody.viewer.backends.use_screenless`.
"""

from math import isfinite
from typing import Any

import numpy as np
from vispy import gloo

from nbody.viewer.gl.shaders import new_target
from nbody.viewer.picture.aim import Display
from nbody.viewer.sources.camera import Size
from nbody.viewer.sources.source import Source
from nbody.viewer.window.canvas import Window
from nbody.viewer.window.clock import Playback
from nbody.viewer.window.controls import Pixel

LEAST_SIDE, LARGEST = 16, (3840, 2160)  # limits of a picture, in pixels
MOST_NOTCHES = 10.0  # of the wheel, in one event


class OffscreenWindow(Window):
    """A window whose pictures are drawn when :meth:`draw` is called.

    Attributes:
        due: True if there is something new to draw.
        closed: True after :meth:`close`.
        texture, target: the last picture, and the frame buffer that contains it.
        pixel_scale: pixels of the page's screen per pixel at scale 1.
    """

    pixel_scale: float = 1.0
    fullscreen: bool = False  # the browser's own key

    def __init__(self, source: Source, transport: Playback, view: Display = Display()) -> None:
        self.due, self.closed = True, False
        super().__init__(source, transport, view, on_screen=False)
        self.set_current()
        self._pointer: Pixel = (0.0, 0.0)
        self.resize(view.size)

    def resize(self, size: Size, scale: float = 1.0) -> None:
        """Draw pictures of ``size`` (width, height) in pixels from now on, ``scale`` of which are one at scale 1."""
        self.size = size = max(LEAST_SIDE, size[0]), max(LEAST_SIDE, size[1])
        self.pixel_scale, self.due = scale, True
        self.texture, self.target = new_target(size)

    def update(self, event=None) -> None:
        """Draw again at the next opportunity."""
        self.due = True

    def draw(self) -> None:
        """Draw the moment that is due. Raises the error that closed the window."""
        self.set_current()
        self.due = False
        with self.target:
            self.on_draw(None)
        if self.failure:
            raise self.failure

    def read(self) -> np.ndarray:
        """The last picture, (height, width, RGB) uint8."""
        with self.target:
            return gloo.read_pixels((0, 0, *self.size), alpha=False)

    def handle(self, event: dict[str, Any]) -> None:
        """Handle an event of a page: a ``type`` and what belongs to it, as in jupyter_rfb; ``x``, ``y``, ``width`` and
        ``height`` are pixels of the picture, ``ratio`` those per pixel at scale 1, ``dy`` is 100 per notch of the wheel.
        Raises KeyError, TypeError, ValueError or ArithmeticError for what is no such event."""
        kind, shift = event["type"], "Shift" in event.get("modifiers", ())
        if kind == "resize":
            width, height = (int(_number(event[side])) for side in ("width", "height"))
            shrunk = min(1.0, LARGEST[0] / width, LARGEST[1] / height)
            size = round(width * shrunk) // 2 * 2, round(height * shrunk) // 2 * 2  # H.264 needs even sides
            self.resize(size, min(max(_number(event["ratio"]) * shrunk, 0.5), 4.0))
        if kind == "key_down":
            name = str(event["key"]).removeprefix("Arrow")
            self.key(name.upper() if len(name) == 1 else name, shift)
            return
        if kind not in ("pointer_down", "pointer_move", "pointer_up", "wheel"):
            return
        at, before = (_number(event["x"]), _number(event["y"])), self._pointer
        if kind == "pointer_down":
            self._press(at, int(event["button"]), shift)
        elif kind == "pointer_move":
            self._move(at, before)
        elif kind == "pointer_up":
            self._release(at)
        else:
            notches = -_number(event["dy"]) / 100
            self._wheel(min(max(notches, -MOST_NOTCHES), MOST_NOTCHES), at)
        self._pointer = at

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            super().close()


def _number(value: Any) -> float:
    number = float(value)
    if not isfinite(number):
        raise ValueError(value)
    return number
