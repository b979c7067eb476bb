"""The window that plays a recording."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from nbody.errors import NBodyError
from nbody.run.signals import StopRequest, stop_on_signals
from nbody.viewer import backends, hud
from nbody.viewer.controls import Controls
from nbody.viewer.playback import Playback
from nbody.viewer.recording import Recording

SIZE = (1280, 720)

BUDGET = 50_000
"""The most particles that are drawn where a processor does the work of a graphics card."""

TICK = 1 / 60
"""Seconds between looks at the clock."""

LOOK = 0.5
"""Seconds between looks for new frames, while following."""


def show(recording: Recording, playback: Playback, opened: Callable[[Any], object] = lambda window: None) -> None:
    """Open the window and play until it is closed. ``opened`` gets the window once it is on the screen.

    Raises:
        DeviceError: no window can be opened here.
        KeyboardInterrupt: Ctrl-C (or SIGTERM, or a lost terminal) closed it.
    """
    backends.use_window()
    from vispy import app

    window = window_class()(recording, playback)
    window.show()
    opened(window)
    with stop_on_signals() as window.stop:  # Qt drops an exception of a handler
        app.run()
    if isinstance(window.failure, RuntimeError):  # what vispy raises for what OpenGL refuses
        raise backends.no_window(window.failure) from window.failure
    if window.failure:
        raise window.failure
    if window.stop.requested:
        raise KeyboardInterrupt


def window_class() -> type:
    """The class of the window: made once vispy has its backend, which importing it earlier would choose."""
    from vispy import app

    from nbody.viewer.renderer import Renderer

    class Window(app.Canvas):
        """Shows the frame that the playback says, from where the camera is.

        Attributes:
            alert: what the display says beside the caption; empty if all is well.
            failure: why nothing can be drawn, which closes the window.
        """

        def __init__(self, recording: Recording, playback: Playback) -> None:
            # With show=True vispy would draw from here, before there is anything to draw.
            super().__init__(title=f"{recording.name} · nbody", size=SIZE, show=False, dpi=96, vsync=True)
            self.recording, self.playback = recording, playback
            self.controls = Controls(recording.home(), playback)
            self.renderer: Renderer | None = None  # Qt has no OpenGL before the window is on the screen
            self.alert = ""
            self.failure: BaseException | None = None
            self.stop = StopRequest()
            self._tick_at = self._look_at = perf_counter()
            self._timer = app.Timer(TICK, connect=self.on_timer, start=True)

        def on_draw(self, event) -> None:
            """Draw everything. What goes wrong here would go wrong at every frame: it closes the window."""
            try:
                self._draw(self.playback.frame, self.physical_size, self.pixel_scale)
            except Exception as error:
                self.failure = error
                self._timer.stop()
                # Not at once: Qt dies when a window is closed while it is drawn.
                self._closing = app.Timer(0.0, connect=lambda event: self.close(), iterations=1, start=True)

        def _draw(self, frame: int, size: tuple[int, int], scale: float) -> None:
            self.renderer = self.renderer or Renderer(self, self.recording, BUDGET)
            try:
                self.renderer.load(frame)
            except NBodyError as error:  # a damaged frame; others may be whole
                self._stop(error)
            self.renderer.draw(self.controls.camera, size, scale)
            if self.controls.show_hud:
                self.renderer.draw_caption(frame, size, scale, self.alert)
                self.renderer.draw_controls(self.controls.key_help, frame, self.playback.frames, size, scale)

        def on_timer(self, event) -> None:
            """Let time pass, and look for new frames; close after Ctrl-C."""
            if self.stop.requested:
                self._timer.stop()
                self.close()
                return
            now, before = perf_counter(), self.playback.frame
            self.playback.advance(now - self._tick_at)
            self._tick_at = now
            if self.playback.follow and now - self._look_at >= LOOK:
                self._look_at = now
                self._look_for_more()
            if self.playback.frame != before:
                self.update()

        def _look_for_more(self) -> None:
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
            if self.alert != str(error):  # else a frame that can't be drawn would be drawn for ever
                self.playback.playing = False
                self.alert = str(error)
                self.update()

        def on_key_press(self, event) -> None:
            """A key."""
            if event.key is not None and self.controls.key(event.key.name, "Shift" in event.modifiers):
                self._after_event()

        def on_mouse_press(self, event) -> None:
            """A mouse button."""
            shift = "Shift" in event.modifiers
            self.controls.press(self._pixel(event.pos), event.button, shift, self._timeline())
            self._after_event()

        def on_mouse_move(self, event) -> None:
            """The mouse."""
            if event.is_dragging and event.last_event is not None:
                at, before = self._pixel(event.pos), self._pixel(event.last_event.pos)
                if self.controls.move(at, before, self._timeline(), self.physical_size):
                    self._after_event()

        def on_mouse_release(self, event) -> None:
            """A mouse button."""
            self.controls.release()

        def on_mouse_wheel(self, event) -> None:
            """The wheel."""
            self.controls.wheel(event.delta[1], self._pixel(event.pos), self.physical_size)
            self._after_event()

        def _pixel(self, position) -> tuple[float, float]:
            return position[0] * self.pixel_scale, position[1] * self.pixel_scale

        def _timeline(self) -> hud.Timeline:
            return hud.Timeline(self.physical_size, self.pixel_scale)

        def _after_event(self) -> None:
            self.alert = ""  # it has been read
            if self.controls.closed:
                self.close()
            else:
                self.update()

    return Window
