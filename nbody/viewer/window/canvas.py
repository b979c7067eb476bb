"""The window's canvas: draws the moment that is due and passes events on.

Import this module only after :func:`nbody.viewer.backends.use_window`: vispy takes its backend from then on.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

from vispy import app, gloo

from nbody.errors import NBodyError
from nbody.run.signals import StopRequest
from nbody.viewer.display.hud import Timeline
from nbody.viewer.gl.renderer import PictureRenderer
from nbody.viewer.picture.aim import CENTRES, Display
from nbody.viewer.screenshot import save_picture
from nbody.viewer.sources.source import Source
from nbody.viewer.window.clock import Playback
from nbody.viewer.window.controls import BODY, Controls, Pixel
from nbody.viewer.window.panels import Panels

TICK = 1 / 60  # seconds between updates of the clock
REACH = 14.0  # the greatest distance of the mouse from the body that a click chooses, in pixels at scale 1
NOTICE_SECONDS = 4.0  # how long a notice is shown


class Window(app.Canvas):
    """Shows the moment of ``source`` that the clock ``transport`` chooses, at first as ``view`` says; without
    ``on_screen`` a page shows it (:mod:`.offscreen`).

    Attributes:
        alert: a line shown below the caption; empty if there is no problem.
        notice: a line shown for some seconds above the key help.
        folder: where keys save pictures and views.
        stop: becomes requested by Ctrl-C, SIGTERM or a lost terminal, which closes the window.
        failure: the error that closed the window; None if there was none.
    """

    def __init__(self, source: Source, transport: Playback, view: Display = Display(), on_screen: bool = True) -> None:
        camera, follow = view.aim.moving(source, following=False)(0.0, transport.at), view.aim.follow(source)
        # With show=True vispy would draw before this constructor has returned.
        super().__init__(title=f"{source.name} · nbody", size=view.size, show=False, dpi=96, vsync=on_screen)
        self.source, self.transport = source, transport
        self.controls = Controls(camera, transport, view.look)
        self.controls.show_hud = view.hud
        if follow:
            self.controls.chosen, self.controls.follow = follow.body, BODY if follow.body is not None else follow.target
            if follow.body is None:
                self.controls.centres = tuple({**dict.fromkeys(CENTRES), follow.target: None})
        self.panels = Panels(source, self.controls)
        self.renderer: PictureRenderer | None = None  # Qt has no OpenGL context before the window is on the screen
        self.alert = self.notice = ""
        self.folder = Path()
        self._notice_until = 0.0
        self.failure: BaseException | None = None
        self.stop = StopRequest()
        self._tick_at = perf_counter()
        self._timer = app.Timer(TICK, connect=self.on_timer, start=True)

    # --- Drawing ---

    def on_draw(self, event) -> None:
        """Draw the picture. An error closes the window, because every later frame would fail in the same way."""
        try:
            self._draw(self.transport.at, self.physical_size, self.pixel_scale)
        except Exception as error:
            self.failure = error
            self._timer.stop()
            # Close it later: Qt crashes when a window is closed while it is drawn.
            self._closing = app.Timer(0.0, connect=lambda event: self.close(), iterations=1, start=True)

    def _draw(self, at: float, size: tuple[int, int], scale: float) -> None:
        self.renderer = self.renderer or PictureRenderer(self, self.source, self.controls.look, exact=False)
        self.renderer.look = self.controls.look
        try:
            self.renderer.load(at)
        except NBodyError as error:  # this frame is damaged; others may be intact
            if self.alert != str(error):  # without this check it would be redrawn forever
                self.transport.playing, self.alert = False, str(error)
                self.update()
        if self.renderer.problem:  # the next colours that can be shown
            self.controls.change_look("color")
            self._notice(f"{self.renderer.problem}; {self.controls.notice}")
            self.controls.notice = ""
        self.panels.followed = self.controls.aim(self.source, self.renderer.moment)
        self.renderer.draw(self.controls.camera, size, scale)
        self.transport.drawn()
        moment, show_hud = self.renderer.moment, self.controls.show_hud
        self.panels.fit(size, scale)
        self.panels.draw_marker(moment)
        if show_hud and not self.controls.show_keys:
            renderer, alert = self.renderer, self.alert
            self.panels.draw_facts(at, moment, lambda: renderer.draw_caption(at, size, scale, alert))
        if "picture" in self.controls.requests:
            self.controls.requests.remove("picture")
            pixels = gloo.read_pixels((0, 0, *size), alpha=False)
            caption = self.source.caption(at)
            number = caption.frame if caption.frames else caption.step
            self._save(f"{number:05d}.png", lambda path: save_picture(pixels, path))
        if show_hud or self.controls.show_keys:
            self.panels.draw_controls(self.notice)

    # --- Time ---

    def on_timer(self, event) -> None:
        """Advance the clock. Close the window if the user has asked for it, or after Ctrl-C.

        Not while a key is handled: closing handles the keys that follow, and vispy refuses a key within a key.
        """
        if self.controls.closed or self.stop.requested or self.failure:
            self._timer.stop()
            self.close()
            return
        now = perf_counter()
        seconds, self._tick_at = now - self._tick_at, now
        try:
            changed = self.transport.advance(seconds)
        except BaseException as error:  # there is nothing more to show
            self.failure = error
            return
        changed |= self.panels.tick(seconds) | self.controls.tick(seconds)
        changed |= self.renderer is not None and self.renderer.has_newer
        if self.transport.message:
            self.alert, self.transport.message, changed = self.transport.message, "", True
        if self.notice and now > self._notice_until:
            self.notice, changed = "", True
        if changed:
            self.update()

    def _notice(self, notice: str) -> None:
        self.notice, self._notice_until = notice, perf_counter() + NOTICE_SECONDS
        self.update()

    # --- Events ---

    def on_key_press(self, event) -> None:
        if event.key is not None:
            self.key(event.key.name, "Shift" in event.modifiers)

    def on_mouse_press(self, event) -> None:
        self._press(self._pixel(event.pos), event.button, "Shift" in event.modifiers)

    def on_mouse_move(self, event) -> None:
        if event.is_dragging and event.last_event is not None:
            self._move(self._pixel(event.pos), self._pixel(event.last_event.pos))

    def on_mouse_release(self, event) -> None:
        self._release(self._pixel(event.pos))

    def on_mouse_wheel(self, event) -> None:
        self._wheel(event.delta[1], self._pixel(event.pos))

    def key(self, name: str, shift: bool) -> None:
        """A key, by its name in vispy, has been pressed."""
        if self.controls.key(name, shift):
            self._after_event()

    def _press(self, at: Pixel, button: int, shift: bool) -> None:
        self.controls.press(at, button, shift, self._timeline())
        self._after_event()

    def _move(self, at: Pixel, before: Pixel) -> None:
        if self.controls.move(at, before, self._timeline(), self.physical_size):
            self._after_event()

    def _release(self, at: Pixel) -> None:
        if self.controls.release(self.pixel_scale) and self.renderer is not None:
            position, reach = self.renderer.moment.positions(), REACH * self.pixel_scale
            row = self.controls.camera.nearest(position, at, self.physical_size, reach)
            self.controls.choose(None if row is None else self.source.shown.body(row))
            self._after_event()

    def _wheel(self, notches: float, at: Pixel) -> None:
        self.controls.wheel(notches, at, self.physical_size)
        self._after_event()

    def on_close(self, event) -> None:
        self.panels.diagrams.close()

    def _pixel(self, position) -> Pixel:
        return position[0] * self.pixel_scale, position[1] * self.pixel_scale

    def _timeline(self) -> Timeline:
        self.panels.fit(self.physical_size, self.pixel_scale)
        return self.panels.timeline

    def _after_event(self) -> None:
        self.alert = ""  # the user has seen it
        if self.controls.notice:
            self._notice(self.controls.notice)
            self.controls.notice = ""
        for request in [each for each in self.controls.requests if each != "picture"]:
            self.controls.requests.remove(request)
            if request == "fullscreen":
                self.fullscreen: bool = not self.fullscreen
            elif request == "view":
                from nbody.viewer.picture.camera_file import save_camera

                write = partial(save_camera, self.controls.camera, self.source.length_unit)
                self._save("camera.yaml", write, "; use it with --camera {}")
        if not self.controls.closed:
            self.update()

    def _save(self, ending: str, write: Callable[[Path], None], more: str = "") -> None:
        name = re.sub(r"[^\w-]+", "-", self.source.name).strip("-") or "nbody"
        path = self.folder / f"{name}-{ending}"
        try:
            write(path)
            self._notice(f"saved {path.name}{more.format(path.name)}")
        except NBodyError as error:
            self.alert = str(error)
            self.update()
