"""Backgrounds: a night sky to which bodies add light, or paper on which they are ink."""

from dataclasses import dataclass

import numpy as np

from nbody.viewer.picture.palette import on_screen

Array = np.ndarray


@dataclass(frozen=True)
class Background:
    """A background and what is drawn on it. Colours are screen values in 0 to 1.

    Attributes:
        sky: the colour where there is no body.
        ink: the colour of axes, vectors and contours.
        paper: True if bodies are ink instead of light.
    """

    sky: tuple[float, float, float]
    ink: tuple[float, float, float]
    paper: bool = False

    def shown(self, linear: Array) -> Array:
        """Linear RGB of a map as this background shows it in regions of ordinary brightness, uint8."""
        if not self.paper:
            return on_screen(linear)
        return np.rint(255 * INK * linear / np.maximum(linear.max(axis=-1, keepdims=True), 1e-9)).astype(np.uint8)

    def in_panel(self, linear: Array) -> Array:
        """The same for the pixels of a panel, whose light and dark are exchanged when it is drawn on paper."""
        shown = self.shown(linear).astype(int)
        if not self.paper:
            return shown
        return shown + 255 - shown.max(axis=-1, keepdims=True) - shown.min(axis=-1, keepdims=True)


INK = 0.72
"""The brightest part of a colour on paper; the same number stands in tonemap.frag.glsl."""

DARK = Background((0.016, 0.020, 0.034), (0.75, 0.79, 0.86))  # not black, so that the edge is visible on a black page
LIGHT = Background((0.93, 0.935, 0.95), (0.20, 0.22, 0.28), paper=True)
PRINT = Background((1.0, 1.0, 1.0), (0.0, 0.0, 0.0), paper=True)
