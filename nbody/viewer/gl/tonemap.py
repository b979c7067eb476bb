"""Maps light to screen colours: brightness on a logarithmic scale, hue unchanged; with a halo around bright regions."""

import numpy as np
from vispy import gloo

from nbody.viewer.gl.shaders import cover, new_target, rectangle
from nbody.viewer.picture.look import BACKGROUNDS, Look
from nbody.viewer.sources.camera import Size

SHRINK = 4  # the grid of the glow is coarser by this factor in both directions; the shader knows it
CONTRAST = 200.0  # the least ratio of white (drawn bright) to dark (where the logarithm starts to bend)
BRIGHT_FRACTION = 0.01  # the fraction of the lit pixels that is at least white in the frame that sets the exposure
FAINT_FRACTION, SEEN = 0.005, 0.2
"""The faintest part of a picture's light, and the brightness (white: 1) of its upper end: then a stream of one percent of
the light is seen beside a cluster of 2000 to 200 000 bodies, and a disk alone is nearly as without (looked at)."""

CONTRASTS = np.geomspace(CONTRAST, 1e6, 256)
ADAPTATION, SETTLED = 0.3, 0.02  # part of the way to new levels per measurement; how near (in the logarithm) is there
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

    def draw(self, light: gloo.Texture2D, size: Size, scale: float = 1.0, measure: bool = False) -> np.ndarray | None:
        """Blur ``light``, of ``size`` (width, height). To ``measure``, returns the shrunk light, (pixels, RGB) float32."""
        shrunk = None
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
                if measure and source is light:
                    width, height = target.shape[1::-1]
                    shrunk = gloo.read_pixels((0, 0, width, height), alpha=False, out_type=np.float32).reshape(-1, 3)
        return shrunk

    def _make_targets(self, size: Size) -> None:
        self._size, shrunk = size, (-(-size[0] // SHRINK), -(-size[1] // SHRINK))
        self._targets = dict(new_target(shrunk, self._format) for _ in range(2))
        self._along_x, self.light = self._targets


def metered(light: np.ndarray) -> float:
    """The white level of ``light`` (..., RGB): the fraction :data:`BRIGHT_FRACTION` of the pixels that have at
    least a thousandth of the brightest one's light is brighter; 1 without light."""
    most = light.max(axis=-1)
    lit = most[most > most.max() / 1000]
    return float(np.quantile(lit, 1 - BRIGHT_FRACTION)) if len(lit) else 1.0


class ToneMap:
    """Draws light into the whole current target: log(1 + light/dark) / log(1 + white/dark), compressed above white.

    Attributes:
        white: the light level that is drawn bright, unless a picture needs a higher one.
    """

    def __init__(self) -> None:
        self.white, self.settled = 1.0, True
        self._measured: np.ndarray | None = None  # the logarithms of white and contrast
        self._programs: dict[tuple[str, ...], gloo.Program] = {}

    def measure(self, light: np.ndarray) -> None:
        """Adapt to a picture with ``light``, (pixels, RGB), slowly, so that nothing flickers: the first time at once.
        ``settled`` becomes False while the levels are not yet those of this picture."""
        most = np.sort(light.max(axis=-1))
        most = most[np.searchsorted(most, 0.0, "right") :]
        if not len(most):
            return
        white = max(self.white, metered(light))
        part = np.cumsum(most, dtype=np.float64)
        faint = most[np.searchsorted(part, FAINT_FRACTION * part[-1])]
        brightness = np.log1p(CONTRASTS * faint / white) / np.log1p(CONTRASTS)
        new = np.array([np.log(white), np.interp(SEEN, brightness, np.log(CONTRASTS))])
        before = new if self._measured is None else self._measured
        self._measured = before + ADAPTATION * (new - before)
        self.settled = bool(np.abs(new - self._measured).max() < SETTLED)

    def levels(self, look: Look) -> tuple[float, float]:
        """White, and its ratio to dark."""
        if not look.auto_exposure:
            self._measured, self.settled = None, True
        white, contrast = (self.white, CONTRAST) if self._measured is None else map(float, np.exp(self._measured))
        return white / 2**look.exposure, contrast

    def draw(self, light: gloo.Texture2D, glow: gloo.Texture2D, light_range: float, look: Look, of_one: float = 0.0) -> None:
        """Draw ``light`` with its ``glow``; a texture value of 1 is a light of ``light_range``. The glow of a single body is
        ``of_one`` at its middle: contours begin above it."""
        background = BACKGROUNDS.load(look.background)
        words = ("PAPER",) * background.paper + ("CONTOURS",) * look.contours + ("SMOOTH",) * look.smooth
        program = self._programs[words] = self._programs.get(words) or rectangle("tonemap.frag", words)
        light.interpolation = "nearest"  # pixel by pixel; on a processor this is a fifth faster than "linear"
        white, contrast = self.levels(look)
        program["u_light"], program["u_glow"], program["u_range"] = light, glow, light_range
        program["u_fraction"], program["u_sky"] = (1 - GLOW, GLOW), background.sky
        program["u_dark"], program["u_bright"] = white / contrast, 1 / np.log1p(contrast)
        if look.smooth:
            program["u_pixel_of_one"] = 2 * np.pi * BLUR**2 * of_one
        if look.contours:
            program["u_ink"], program["u_step"] = background.ink, np.log(CONTOUR_RATIO)
            program["u_least"] = max(white / contrast, LEAST_BODIES * of_one)
        cover(program)
