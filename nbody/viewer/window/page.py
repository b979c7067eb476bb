"""The window as a widget of a notebook page: it is drawn without a screen, and the page shows its pictures (jupyter_rfb).

Import this module only after :func:`nbody.viewer.backends.use_screenless`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jupyter_rfb import RemoteFrameBuffer
from vispy import gloo
from vispy.util import keys

from nbody.viewer.picture.aim import Display
from nbody.viewer.picture.look import Look
from nbody.viewer.sources.camera import Size
from nbody.viewer.sources.recording import RecordedSource
from nbody.viewer.window.canvas import Window
from nbody.viewer.window.clock import Playback

POINTER = {"pointer_down": "press", "pointer_move": "move", "pointer_up": "release"}
"""Events of a page, and what vispy calls them."""


class PageCanvas(RemoteFrameBuffer):
    """Plays a recording; the page's events go to the :class:`~.canvas.Window` ``window``, its pictures to the page. ``size``
    is in pixels at scale 1; ``closed`` is called when the widget has been closed.
    """

    def __init__(
        self, recording: RecordedSource, size: Size, look: Look = Look(), closed: Callable[[], object] = lambda: None
    ):
        super().__init__()
        self._closed, self._recording = closed, recording
        playback = Playback(recording.frames, source=recording)
        self.window = Window(recording, playback, Display(look, size=size), on_screen=False)
        self.is_closed = False
        self._resize(size, 1.0)
        self.css_width, self.css_height = f"{size[0]}px", f"{size[1]}px"
        self.request_draw()

    def _resize(self, size: Size, ratio: float) -> None:
        """``ratio``: pixels of the screen per pixel of ``size``."""
        self._ratio = ratio
        self._size = max(16, round(size[0] * ratio)), max(16, round(size[1] * ratio))
        self.window.size = self._size
        self._target: gloo.FrameBuffer | None = None

    def get_frame(self) -> np.ndarray | None:
        """The picture that is due, (height, width, RGB) uint8; the widget asks for it."""
        window = self.window
        if window.controls.closed and not self.is_closed:
            self.close()
        if self.is_closed:
            return None
        window.set_current()
        window.on_timer(None)
        if self._target is None:
            texture = gloo.Texture2D((self._size[1], self._size[0], 4), format="rgba", internalformat="rgba8")
            self._target = gloo.FrameBuffer(color=texture)
        with self._target:
            window.on_draw(None)
            picture = gloo.read_pixels((0, 0, *self._size), alpha=False)
        if window.failure:
            raise window.failure
        if window.transport.playing:
            self.request_draw()  # the next one, as soon as the page can show it
        return picture

    def handle_event(self, event: dict[str, Any]) -> None:
        """Pass an event of the page on."""
        kind = event.get("type") or event["event_type"]  # the second name: jupyter_rfb before 1.0
        if kind == "close":
            self._end()
            return
        if kind == "resize":
            self._resize((event["width"], event["height"]), event.get("ratio") or event["pixel_ratio"])
        elif kind == "key_down":
            key = event["key"]
            self.window.events.key_press(key=keys.Key(key), text=key, modifiers=self._modifiers(event))
        elif kind == "wheel":
            delta = event["dx"] / 100, -event["dy"] / 100
            self.window.events.mouse_wheel(pos=self._position(event), delta=delta, modifiers=self._modifiers(event))
        elif kind in POINTER:
            button = {} if kind == "pointer_move" else {"button": event["button"]}
            handle = getattr(self.window._backend, f"_vispy_mouse_{POINTER[kind]}")
            handle(pos=self._position(event), modifiers=self._modifiers(event), **button)
        else:
            return
        self.request_draw()

    def _position(self, event: dict[str, Any]) -> tuple[float, float]:
        return event["x"] * self._ratio, event["y"] * self._ratio

    def _modifiers(self, event: dict[str, Any]) -> tuple:
        return tuple(getattr(keys, name.upper()) for name in event["modifiers"])

    def _end(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.window.close()
            self._recording.close()
            self._closed()
