"""Light as colours of a screen: its amount through a logarithm, its hue kept."""

import numpy as np
from vispy import gloo

from nbody.viewer.shaders import source

CORNERS = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], np.float32)
"""Of a rectangle, as a triangle strip."""

CONTRAST = 200.0
"""From where the logarithm bends to what is drawn bright."""

BRIGHT_SHARE = 0.01
"""Of the lit pixels of the metered frame, this share is drawn bright, or brighter."""

GLOW = 0.35
"""Share of the light that glows around its place."""


def metered(light: np.ndarray) -> float:
    """The light to draw bright: all but :data:`BRIGHT_SHARE` of what is lit in ``light`` (height, width, RGB) is less.

    Dark is what is under a thousandth of the brightest. Nothing lit gives 1.
    """
    most = light.max(axis=2)
    lit = most[most > most.max() / 1000]
    return float(np.quantile(lit, 1 - BRIGHT_SHARE)) if len(lit) else 1.0


class ToneMap:
    """Draws light over the whole of the current target: log(1 + light/dark) / log(1 + white/dark), with a shoulder.

    Attributes:
        white: the light that is drawn bright; dark is ``white`` / :data:`CONTRAST`.
    """

    def __init__(self) -> None:
        self.white = 1.0
        self._program = gloo.Program(source("picture.vert"), source("tonemap.frag"))
        self._program["a_corner"] = CORNERS
        self._program["u_rectangle"] = (-1, -1, 1, 1)
        self._program["u_share"] = GLOW

    def draw(self, light: gloo.Texture2D, glow: gloo.Texture2D, light_range: float) -> None:
        """Draw ``light`` with its ``glow``; a value of 1 in them stands for ``light_range``."""
        program = self._program
        program["u_light"], program["u_glow"], program["u_range"] = light, glow, light_range
        program["u_white"], program["u_dark"] = self.white, self.white / CONTRAST
        gloo.set_state(blend=False, depth_test=False, cull_face=False)
        program.draw("triangle_strip")
