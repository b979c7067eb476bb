"""What the names of a look stand for: colour maps, backgrounds and sizes.

A map is linear RGB from the low to the high end of a scale, (steps, 3) float32 within 0 to 1. Sprites are added, so a darker
colour would look like fewer particles. The maps of the house are arcs of hue at constant lightness and chroma (Oklab:
Ottosson 2020): equal steps along them are equal steps of perceived hue. Those of matplotlib keep their hues but are
brightened to one level.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from nbody.viewer.sources.camera import FEW
from nbody.viewer.sources.frames import Array

LIGHTNESS, CHROMA = 0.72, 0.14

_OKLAB_TO_LMS = np.array(
    [[1.0, 0.3963377774, 0.2158037573], [1.0, -0.1055613458, -0.0638541728], [1.0, -0.0894841775, -1.2914855480]]
)
_LMS_TO_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)

LEVEL = 0.75  # the largest of the three parts of each colour of a map that is not of constant lightness

OKABE_ITO = ("#e69f00", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#b0b0b0")
"""Colours that colour-blind readers can tell apart (Okabe and Ito 2008), on screen."""


def categories(count: int) -> Array:
    """``count`` colours for species; from the ninth on they repeat."""
    screen = [[int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)] for colour in OKABE_ITO]
    return _levelled(from_screen(np.array([screen[k % len(screen)] for k in range(max(count, 1))])))


def _arc(first: float, last: float, chroma: float, steps: int = 256) -> Array:
    """An arc of hue (degrees in Oklab's a-b plane)."""
    hue = np.radians(np.linspace(first, last, steps))
    oklab = np.stack([np.full(steps, LIGHTNESS), chroma * np.cos(hue), chroma * np.sin(hue)], axis=1)
    linear = (oklab @ _OKLAB_TO_LMS.T) ** 3 @ _LMS_TO_RGB.T
    return linear.clip(0.0, 1.0).astype(np.float32)


def _table(name: str, first: float, steps: int = 256) -> Array:
    """A map of matplotlib from the fraction ``first`` on."""
    from matplotlib import colormaps

    return _levelled(from_screen(colormaps[name](np.linspace(first, 1.0, steps))[:, :3]))


def _levelled(linear: Array) -> Array:
    return (LEVEL * linear / linear.max(axis=1, keepdims=True)).astype(np.float32)


def on_screen(linear: Array) -> Array:
    """Convert linear RGB in 0 to 1 to screen values, uint8 (the sRGB curve, approximated by a power of 1/2.2)."""
    return np.rint(255 * np.asarray(linear) ** (1 / 2.2)).astype(np.uint8)


def from_screen(values: Array) -> Array:
    """The inverse of :func:`on_screen`, for values in 0 to 1."""
    return np.asarray(values, np.float64) ** 2.2


ember = partial(_arc, 68.0, -130.0, CHROMA)
"""Amber, rose, violet, blue. The arc avoids green, which no star has."""

reef = partial(_arc, 135.0, 345.0, 0.115)
"""Green, cyan, blue, magenta. There is no purer cyan of this lightness on a screen."""

viridis = partial(_table, "viridis", 0.05)
cividis = partial(_table, "cividis", 0.0)
inferno = partial(_table, "inferno", 0.25)
"""Without its black end."""
plasma = partial(_table, "plasma", 0.0)


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


INK = 0.72  # the brightest part of a colour on paper; the same number stands in tonemap.frag.glsl

DARK = Background((0.016, 0.020, 0.034), (0.75, 0.79, 0.86))  # not black, so that the edge is visible on a black page
LIGHT = Background((0.93, 0.935, 0.95), (0.20, 0.22, 0.28), paper=True)
PRINT = Background((1.0, 1.0, 1.0), (0.0, 0.0, 0.0), paper=True)

SMALLEST = 0.3  # the width of the lightest body, in units of the heaviest one's: smaller discs could not be seen


def automatic(mass: Array) -> Array | None:
    """By mass up to :data:`FEW` bodies, else equal."""
    return by_mass(mass) if len(mass) <= FEW else None


def equal(mass: Array) -> Array | None:
    """None: no body differs."""
    return None


def by_mass(mass: Array) -> Array | None:
    """The radius grows with the cube root of the mass, as that of spheres of one density; the surface is equally bright."""
    width = np.cbrt(_relative(mass)).clip(SMALLEST, 1.0)
    return np.stack([width, width**2 / np.mean(width**2)], axis=1).astype(np.float32)


def by_flux(mass: Array) -> Array | None:
    """Light in proportion to the mass, from discs of one size."""
    relative = _relative(mass)
    return np.stack([np.ones(len(mass)), relative / max(relative.mean(), 1e-30)], axis=1).astype(np.float32)


def _relative(mass: Array) -> Array:
    mass = np.nan_to_num(np.abs(mass), nan=0.0, posinf=0.0)
    return mass / mass.max() if mass.max(initial=0.0) > 0 else np.ones(len(mass))
