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

    def panel(self, image: Array) -> Array:
        """A panel (h, w, RGBA) of bright text on a dark ground, for this background."""
        if not self.paper:
            return image
        image = image.copy()
        image[..., :3] = 255 - image[..., :3]
        return image

    def shown(self, linear: Array) -> Array:
        """Linear RGB of a map as this background shows it in regions of ordinary brightness, uint8."""
        if not self.paper:
            return on_screen(linear)
        hue = linear / np.maximum(linear.max(axis=-1, keepdims=True), 1e-9)
        return np.rint(255 * INK * hue).astype(np.uint8)


INK = 0.72
"""The brightest part of a colour on paper; the same number stands in tonemap.frag.glsl."""

DARK = Background((0.016, 0.020, 0.034), (0.75, 0.79, 0.86))  # not black, so that the edge is visible on a black page
LIGHT = Background((0.93, 0.935, 0.95), (0.20, 0.22, 0.28), paper=True)
PRINT = Background((1.0, 1.0, 1.0), (0.0, 0.0, 0.0), paper=True)
