"""The window as a widget of a notebook page (jupyter_rfb).

Import this module only after :func:`nbody.viewer.backends.use_screenless`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jupyter_rfb import RemoteFrameBuffer

from nbody.viewer.picture.aim import Display
from nbody.viewer.picture.look import Look
from nbody.viewer.sources.camera import Size
from nbody.viewer.sources.recording import RecordedSource
from nbody.viewer.window.clock import Playback
from nbody.viewer.window.offscreen import OffscreenWindow


class PageCanvas(RemoteFrameBuffer):
    """Plays a recording in ``window``, to which the page's events go. ``size`` is in pixels at scale 1; ``closed`` is called
    when the widget has been closed.
    """

    def __init__(
        self, recording: RecordedSource, size: Size, look: Look = Look(), closed: Callable[[], object] = lambda: None
    ):
        super().__init__()
        self._closed, self._recording = closed, recording
        playback = Playback(recording.frames, source=recording)
        self.window = OffscreenWindow(recording, playback, Display(look, size=size))
        self.css_width, self.css_height = f"{size[0]}px", f"{size[1]}px"
        self.request_draw()

    def get_frame(self) -> np.ndarray | None:
        """The picture that is due, (height, width, RGB) uint8; the widget asks for it."""
        window = self.window
        if window.controls.closed and not window.closed:
            self.close()
        if window.closed:
            return None
        window.on_timer(None)
        window.draw()
        if window.transport.playing:
            self.request_draw()  # the next one, as soon as the page can show it
        return window.read()

    def handle_event(self, event: dict[str, Any]) -> None:
        """Pass an event of the page on."""
        kind = event.get("type") or event["event_type"]  # of jupyter_rfb before 1.0, as pixel_ratio
        scale = self.window.pixel_scale
        if kind == "close":
            self._end()
            return
        if kind == "resize":
            if not (event["width"] and event["height"]):  # it is hidden
                return
            scale = event.get("ratio") or event["pixel_ratio"]
        pixels: dict[str, Any] = {key: event[key] * scale for key in ("x", "y", "width", "height") if key in event}
        self.window.handle({"x": 0, "y": 0, **event, **pixels, "type": kind, "ratio": scale})
        if self.window.due:
            self.request_draw()

    def _end(self) -> None:
        if not self.window.closed:
            self.window.close()
            self._recording.close()
            self._closed()
