"""Maps light to screen colours: brightness on a logarithmic scale, hue unchanged; with a halo around bright regions."""

import numpy as np
from vispy import gloo

from nbody.viewer.gl.shaders import cover, rectangle
from nbody.viewer.picture.look import BACKGROUNDS, Look
from nbody.viewer.sources.camera import Size

SHRINK = 4  # the grid of the glow is coarser by this factor in both directions; the shader knows it
CONTRAST = 200.0  # the ratio of white (drawn bright) to dark (where the logarithm starts to bend)
BRIGHT_FRACTION = 0.01  # the fraction of the lit pixels that is at least white in the frame that sets the exposure
GLOW = 0.35  # the fraction of the light that goes into the glow
LEAST_BODIES = 3.0  # the light, in that of single bodies, from which contours are drawn: no rings around bodies
BLUR = 1.25 * SHRINK  # the width of the glow's Gaussian in pixels; the shader knows it
CONTOUR_RATIO = 4.0  # the ratio of the surface densities of two neighbouring contours


class Glow:
    """A halo as in a photograph: shrinks light, then blurs it along x and y, into :attr:`light`. It fills the gaps between
    the particles of a spiral arm, so that the arm looks continuous."""

    def __init__(self, texture_format: str) -> None:
        self._format = texture_format
        self._program = rectangle("glow.frag")
        self._size: Size = (0, 0)

    def draw(self, light: gloo.Texture2D, size: Size, scale: float = 1.0) -> None:
        """Blur ``light``, of ``size`` (width, height)."""
        if size != self._size:
            self._make_targets(size)
        x, y = SHRINK * scale / size[0], SHRINK * scale / size[1]
        light.interpolation = "linear"
        self._program["u_pixel"] = 1 / size[0], 1 / size[1]
        for source, target, step in (
            (light, self.light, (0.0, 0.0)), (self.light, self._along_x, (x, 0.0)), (self._along_x, self.light, (0.0, y))
        ):  # fmt: skip
            self._program["u_light"], self._program["u_step"] = source, step
            self._program["u_shrink"] = float(source is light)
            with self._targets[target]:
                gloo.set_viewport(0, 0, target.shape[1], target.shape[0])
                cover(self._program)

    def _make_targets(self, size: Size) -> None:
        self._size = size
        shape = (-(-size[1] // SHRINK), -(-size[0] // SHRINK), 4)
        self._along_x, self.light = (
            gloo.Texture2D(shape, format="rgba", internalformat=self._format, interpolation="linear") for _ in range(2)
        )
        self._targets = {texture: gloo.FrameBuffer(color=texture) for texture in (self._along_x, self.light)}


def metered(light: np.ndarray) -> float:
    """The white level of ``light`` (height, width, RGB): the fraction :data:`BRIGHT_FRACTION` of the pixels that have at
    least a thousandth of the brightest one's light is brighter; 1 without light."""
    most = light.max(axis=2)
    lit = most[most > most.max() / 1000]
    return float(np.quantile(lit, 1 - BRIGHT_FRACTION)) if len(lit) else 1.0


class ToneMap:
    """Draws light into the whole current target: log(1 + light/dark) / log(1 + white/dark), compressed above white.

    Attributes:
        white: the light level that is drawn bright; dark is ``white`` / :data:`CONTRAST`.
    """

    def __init__(self) -> None:
        self.white = 1.0
        self._programs: dict[tuple[str, ...], gloo.Program] = {}

    def draw(
        self, light: gloo.Texture2D, glow: gloo.Texture2D, light_range: float, look: Look, of_one: float = 0.0
    ) -> None:
        """Draw ``light`` with its ``glow``; a texture value of 1 is a light of ``light_range``. The glow of a single body is
        ``of_one`` at its middle: contours begin above it."""
        background = BACKGROUNDS.load(look.background)
        words = ("PAPER",) * background.paper + ("CONTOURS",) * look.contours
        program = self._programs[words] = self._programs.get(words) or rectangle("tonemap.frag", words)
        light.interpolation = "nearest"  # pixel by pixel; on a processor this is a fifth faster than "linear"
        white = self.white / 2**look.exposure
        program["u_light"], program["u_glow"], program["u_range"] = light, glow, light_range
        program["u_fraction"], program["u_sky"] = (1 - GLOW, GLOW), background.sky
        program["u_dark"], program["u_bright"] = white / CONTRAST, 1 / np.log1p(CONTRAST)
        if look.contours:
            program["u_ink"], program["u_step"] = background.ink, np.log(CONTOUR_RATIO)
            program["u_least"] = max(white / CONTRAST, LEAST_BODIES * of_one)
        cover(program)
