"""The window's canvas: draws the frame that is due and passes events on.

Import this module only after :func:`nbody.viewer.backends.use_window`: vispy takes its backend from then on.
"""

from time import perf_counter

from vispy import app

from nbody.errors import NBodyError
from nbody.run.signals import StopRequest
from nbody.viewer.display import hud
from nbody.viewer.picture.renderer import Renderer
from nbody.viewer.sources.recording import Recording
from nbody.viewer.window.controls import Controls
from nbody.viewer.window.playback import Playback

SIZE = (1280, 720)
"""Width and height of a new window, in pixels at scale 1."""

BUDGET = 50_000
"""The most particles that are drawn where OpenGL runs on the processor (no graphics card)."""

TICK = 1 / 60
"""Seconds between updates of the playback."""

REFRESH = 0.5
"""Seconds between checks for new frames, with ``--follow``."""


class Window(app.Canvas):
    """Shows the current frame of the playback, seen by the camera.

    Args:
        recording: what to draw.
        playback: the clock, which chooses the frame.

    Attributes:
        alert: a line shown below the caption; empty if there is no problem.
        stop: becomes requested by Ctrl-C, SIGTERM or a lost terminal, which closes the window.
        failure: the error that closed the window because nothing could be drawn; None if there was none.
    """

    def __init__(self, recording: Recording, playback: Playback) -> None:
        # With show=True vispy would draw before this constructor has returned.
        super().__init__(title=f"{recording.name} · nbody", size=SIZE, show=False, dpi=96, vsync=True)
        self.recording, self.playback = recording, playback
        self.controls = Controls(recording.home(), playback)
        self.renderer: Renderer | None = None  # Qt has no OpenGL context before the window is on the screen
        self.alert = ""
        self.failure: BaseException | None = None
        self.stop = StopRequest()
        self._tick_at = self._refresh_at = perf_counter()
        self._timer = app.Timer(TICK, connect=self.on_timer, start=True)

    def on_draw(self, event) -> None:
        """Draw the picture. An error closes the window, because every later frame would fail in the same way."""
        try:
            self._draw(self.playback.at, self.physical_size, self.pixel_scale)
        except Exception as error:
            self.failure = error
            self._timer.stop()
            # Close it later: Qt crashes when a window is closed while it is drawn.
            self._closing = app.Timer(0.0, connect=lambda event: self.close(), iterations=1, start=True)

    def _draw(self, at: float, size: tuple[int, int], scale: float) -> None:
        self.renderer = self.renderer or Renderer(self, self.recording, BUDGET)
        try:
            self.renderer.load(at)
        except NBodyError as error:  # this frame is damaged; others may be intact
            self._stop(error)
        self.renderer.draw(self.controls.camera, size, scale)
        if self.controls.show_hud:
            self.renderer.draw_caption(at, size, scale, self.alert)
            self.renderer.draw_controls(self.controls.key_help, int(at), self.playback.frames, size, scale)

    def on_timer(self, event) -> None:
        """Advance the playback; with ``--follow`` also check for new frames. Close the window after Ctrl-C."""
        if self.stop.requested:
            self._timer.stop()
            self.close()
            return
        now, before = perf_counter(), self.playback.at
        self.playback.advance(now - self._tick_at)
        self._tick_at = now
        if self.playback.follow and now - self._refresh_at >= REFRESH:
            self._refresh_at = now
            self._refresh()
        if self.playback.at != before:
            self.update()

    def _refresh(self) -> None:
        try:
            self.recording.run.refresh()
            frames = self.recording.update()
        except NBodyError as error:
            self.playback.follow = False
            self._stop(error)
            return
        if frames != self.playback.frames:
            self.playback.grow(frames)
            self.update()

    def _stop(self, error: NBodyError) -> None:
        if self.alert != str(error):  # without this check the damaged frame would be redrawn forever
            self.playback.playing = False
            self.alert = str(error)
            self.update()

    def on_key_press(self, event) -> None:
        """Pass a key on."""
        if event.key is not None and self.controls.key(event.key.name, "Shift" in event.modifiers):
            self._after_event()

    def on_mouse_press(self, event) -> None:
        """Pass a pressed mouse button on."""
        shift = "Shift" in event.modifiers
        self.controls.press(self._pixel(event.pos), event.button, shift, self._timeline())
        self._after_event()

    def on_mouse_move(self, event) -> None:
        """Pass a drag on."""
        if event.is_dragging and event.last_event is not None:
            at, before = self._pixel(event.pos), self._pixel(event.last_event.pos)
            if self.controls.move(at, before, self._timeline(), self.physical_size):
                self._after_event()

    def on_mouse_release(self, event) -> None:
        """Pass a released mouse button on."""
        self.controls.release()

    def on_mouse_wheel(self, event) -> None:
        """Pass a turn of the wheel on."""
        self.controls.wheel(event.delta[1], self._pixel(event.pos), self.physical_size)
        self._after_event()

    def _pixel(self, position) -> tuple[float, float]:
        return position[0] * self.pixel_scale, position[1] * self.pixel_scale

    def _timeline(self) -> hud.Timeline:
        return hud.Timeline(self.physical_size, self.pixel_scale)

    def _after_event(self) -> None:
        self.alert = ""  # the user has seen it
        if self.controls.closed:
            self.close()
        else:
            self.update()
