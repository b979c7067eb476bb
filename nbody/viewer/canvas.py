"""The canvas: a run, its playback, a camera, and the keys and the mouse that move them."""

import time

import numpy as np
from vispy import app, gloo

from nbody.diagnostics import relative_energy_error
from nbody.errors import InputError
from nbody.trajectory import Trajectory
from nbody.viewer.appearance import framing, speed_scale
from nbody.viewer.hud import Hud, bar_fraction
from nbody.viewer.playback import Playback
from nbody.viewer.sprites import Sprites

FOLLOW_SECONDS = 0.5
SOFTWARE_BUDGET = 100_000
"""Particles drawn without a graphics card: 20 000 ran at 24 to 29 pictures a second there, 200 000 at 3."""


class RunCanvas(app.Canvas):
    """Shows a run. ``follow`` looks for new frames now and then; ``hud`` shows text and timeline."""

    def __init__(self, run: Trajectory, *, hud: bool = True, follow: bool = False, **canvas_options) -> None:
        self.ready = False  # vispy may draw while it is still being made
        super().__init__(title=f"nbody: {run.path}", keys=None, **canvas_options)
        self.run, self.follow, self.show_hud = run, follow, hud
        self.playback = Playback(len(run))
        self.camera, self.speeds = framing(run), speed_scale(run)
        self.energies = run.observable("total_energy")
        self.sprites, self.hud = Sprites(), Hud(self)
        self._every = self._thinning()
        self._shown = -1
        self._dragging = ""
        self._last_tick = self._last_look = time.perf_counter()
        self.timer = app.Timer("auto", connect=self.on_tick)
        self.ready = True

    def _thinning(self) -> int:
        """Draw every so-manieth particle: all of them, except without a graphics card."""
        renderer = str(gloo.gl.glGetParameter(gloo.gl.GL_RENDERER)).lower()
        software = any(name in renderer for name in ("llvmpipe", "softpipe", "swrast", "software"))
        return max(1, -(-self.run.count // SOFTWARE_BUDGET)) if software else 1

    # --- Time ---

    def on_tick(self, event) -> None:
        """Let playback go on, and look for new frames."""
        now = time.perf_counter()
        changed = self.playback.tick(now - self._last_tick)
        self._last_tick = now
        if self.follow and now - self._last_look > FOLLOW_SECONDS:
            self._last_look = now
            changed |= self.look_for_frames()
        if changed:
            self.update()

    def look_for_frames(self) -> bool:
        """Take in the frames recorded since the last look. Returns True if there are any. A run that is gone is no
        longer followed; what was read of it stays on the screen."""
        before = len(self.run)
        try:
            after = self.run.refresh()
        except InputError:
            self.follow = False
            return False
        if after == before:
            return False
        self.playback.grow(after)
        self.energies = self.run.observable("total_energy")
        return True

    # --- Picture ---

    def on_draw(self, event) -> None:
        """Draw the playback's frame."""
        if not self.ready:
            return
        k = self.playback.frame
        if k != self._shown:
            position, velocity = self.run.position[k], self.run.velocity[k]
            self.sprites.load(position[:: self._every], self.speeds(velocity[:: self._every]))
            self._shown = k
        size = self.physical_size
        camera = self.camera
        self.sprites.draw(camera.matrix(*size), 1.0 if camera.flat else camera.distance, size)
        if self.show_hud:
            behind = k / max(1, self.playback.frames - 1)
            self.hud.draw(self.facts(), behind, show_keys=bool(self.timer.running))

    def facts(self) -> list[str]:
        """The lines of the HUD."""
        k, run = self.playback.frame, self.run
        error = relative_energy_error(float(self.energies[k]), float(self.energies[0]))
        drawn = f" (one in {self._every} drawn)" if self._every > 1 else ""
        return [
            f"{run.resolved.get('name', 'run')}   {run.count} particles{drawn}",
            f"t = {run.time[k]:.6g}   frame {k} / {self.playback.frames - 1}   step {run.step[k]}",
            f"energy error {error:+.2e}",
        ]

    # --- Keys and mouse ---

    def on_key_press(self, event) -> None:
        """See :data:`nbody.viewer.hud.KEYS`."""
        name = event.key.name if event.key is not None else ""
        by = 10 if "Shift" in [modifier.name for modifier in event.modifiers] else 1
        playback = self.playback
        actions = {
            "Space": playback.toggle,
            "Left": lambda: playback.step(-by),
            "Right": lambda: playback.step(by),
            "Home": lambda: playback.seek(0),
            "End": lambda: playback.seek(playback.frames - 1),
            "-": lambda: playback.faster(-1),
            "+": lambda: playback.faster(1),
            "=": lambda: playback.faster(1),
            "R": lambda: setattr(self, "camera", framing(self.run)),
            "H": lambda: setattr(self, "show_hud", not self.show_hud),
            "Q": self.close,
            "Escape": self.close,
        }
        if name in actions:
            actions[name]()
            self.update()

    def on_mouse_press(self, event) -> None:
        """Begin to scrub, to turn or to move."""
        fraction = bar_fraction(*event.pos, self.size) if self.show_hud else None
        if fraction is not None:
            self._dragging = "timeline"
            self.playback.playing = False
            self.playback.seek_fraction(fraction)
            self.update()
        else:
            self._dragging = "pan" if self.camera.flat or event.button != 1 else "orbit"

    def on_mouse_release(self, event) -> None:
        """End of the drag."""
        self._dragging = ""

    def on_mouse_move(self, event) -> None:
        """Scrub, turn or move."""
        if not self._dragging or event.last_event is None:
            return
        right, down = np.subtract(event.pos, event.last_event.pos)
        half = max(1.0, min(self.size) / 2)
        if self._dragging == "timeline":
            fraction = bar_fraction(event.pos[0], self.size[1], self.size)
            self.playback.seek_fraction(fraction or 0.0)
        elif self._dragging == "orbit":
            self.camera.orbit(60 * right / half, 60 * down / half)
        else:
            self.camera.pan(right / half, -down / half)
        self.update()

    def on_mouse_wheel(self, event) -> None:
        """Zoom."""
        self.camera.zoom(0.9 ** event.delta[1])
        self.update()
