"""The colours of speeds: from amber (slow) through rose and violet to blue (fast), all of the same lightness.

Sprites are added, so a darker colour would look like fewer particles. Equal steps along the palette are equal steps of
perceived hue at constant lightness (Oklab: Ottosson 2020).
"""

import numpy as np

LIGHTNESS, CHROMA = 0.72, 0.14
SLOW_HUE, FAST_HUE = 68.0, -130.0
"""Degrees in Oklab's a-b plane. The arc between them avoids green, which no star has."""

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


def palette(steps: int = 256) -> np.ndarray:
    """Linear RGB from slow to fast, (steps, 3) float32 within 0 to 1."""
    hue = np.radians(np.linspace(SLOW_HUE, FAST_HUE, steps))
    oklab = np.stack([np.full(steps, LIGHTNESS), CHROMA * np.cos(hue), CHROMA * np.sin(hue)], axis=1)
    linear = (oklab @ _OKLAB_TO_LMS.T) ** 3 @ _LMS_TO_RGB.T
    return linear.clip(0.0, 1.0).astype(np.float32)


def on_screen(linear: np.ndarray) -> np.ndarray:
    """Convert linear RGB in 0 to 1 to screen values, uint8 (the sRGB curve, approximated by a power of 1/2.2)."""
    return np.rint(255 * np.asarray(linear) ** (1 / 2.2)).astype(np.uint8)
