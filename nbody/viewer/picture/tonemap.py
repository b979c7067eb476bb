"""Maps light to screen colours: brightness on a logarithmic scale, hue unchanged."""

import numpy as np
from vispy import gloo

from nbody.viewer.picture.choices import BACKGROUNDS
from nbody.viewer.picture.look import Look
from nbody.viewer.picture.shaders import source

CORNERS = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], np.float32)
"""The corners of a rectangle, as a triangle strip."""

CONTRAST = 200.0
"""The ratio of white (drawn bright) to dark (where the logarithm starts to bend)."""

BRIGHT_SHARE = 0.01
"""The share of the lit pixels that is at least white in the frame that sets the exposure."""

GLOW = 0.35
"""The share of the light that goes into the glow."""

CONTOUR_RATIO = 4.0
"""The ratio of the surface densities of two neighbouring contours."""


def metered(light: np.ndarray) -> float:
    """The white level of ``light`` (height, width, RGB): the share :data:`BRIGHT_SHARE` of its lit pixels is brighter.

    A pixel is lit if it has at least a thousandth of the brightest pixel's light. If none is lit, the level is 1.
    """
    most = light.max(axis=2)
    lit = most[most > most.max() / 1000]
    return float(np.quantile(lit, 1 - BRIGHT_SHARE)) if len(lit) else 1.0


class ToneMap:
    """Draws light into the whole current target: log(1 + light/dark) / log(1 + white/dark), compressed above white.

    Attributes:
        white: the light level that is drawn bright; dark is ``white`` / :data:`CONTRAST`.
    """

    def __init__(self) -> None:
        self.white = 1.0
        self._programs: dict[tuple[str, ...], gloo.Program] = {}

    def draw(self, light: gloo.Texture2D, glow: gloo.Texture2D, light_range: float, look: Look) -> None:
        """Draw ``light`` with its ``glow``; a texture value of 1 is a light of ``light_range``."""
        background = BACKGROUNDS.load(look.background)
        words = {"PAPER": background.paper, "CONTOURS": look.contours}
        program = self._compiled(tuple(word for word, needed in words.items() if needed))
        light.interpolation = "nearest"  # pixel by pixel; on a processor this is a fifth faster than "linear"
        white = self.white / 2**look.exposure
        program["u_light"], program["u_glow"], program["u_range"] = light, glow, light_range
        program["u_share"], program["u_sky"] = (1 - GLOW, GLOW), background.sky
        program["u_dark"], program["u_bright"] = white / CONTRAST, 1 / np.log1p(CONTRAST)
        if look.contours:
            program["u_ink"], program["u_step"] = background.ink, np.log(CONTOUR_RATIO)
        gloo.set_state(blend=False, depth_test=False, cull_face=False)
        program.draw("triangle_strip")

    def _compiled(self, words: tuple[str, ...]) -> gloo.Program:
        if words not in self._programs:
            program = gloo.Program(source("picture.vert"), source("tonemap.frag", words))
            program["a_corner"], program["u_rectangle"] = CORNERS, (-1, -1, 1, 1)
            self._programs[words] = program
        return self._programs[words]
