"""Animated GIF and WebP, by Pillow."""

from collections.abc import Iterator

import numpy as np
from PIL import Image

from nbody.errors import InputError
from nbody.viewer.movie.formats import Film

FASTEST_GIF = 50
"""Pictures per second: the times of a GIF are hundredths of a second, and browsers show 0.01 s as 0.1 s."""


class GIF:
    """Writes pictures (h, w, RGB) uint8. Each has its own 256 colours."""

    nv12 = False
    signature = b"GIF8"

    @staticmethod
    def check(film: Film) -> None:
        """Raise InputError if there are too many pictures per second."""
        if film.fps > FASTEST_GIF:
            raise InputError(
                f"--fps {film.fps:g}: a GIF shows up to {FASTEST_GIF} pictures per second; or make a .webp"
            )

    @staticmethod
    def write(film: Film, pictures: Iterator[np.ndarray]) -> None:
        """Encode all pictures. Raises OSError if the file can't be written."""
        images = (
            Image.fromarray(picture).quantize(method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
            for picture in pictures
        )
        _save(film, images, 10, format="GIF", optimize=False, disposal=1)


class WEBP:
    """Writes pictures (h, w, RGB) uint8."""

    nv12 = False
    signature = b"RIFF"

    @staticmethod
    def check(film: Film) -> None:
        """Every film can be encoded."""

    @staticmethod
    def write(film: Film, pictures: Iterator[np.ndarray]) -> None:
        """Encode all pictures. Raises OSError if the file can't be written."""
        images = (Image.fromarray(picture) for picture in pictures)
        _save(film, images, 1, format="WEBP", quality=80, method=2)


def _save(film: Film, images: Iterator[Image.Image], grain: int, **options) -> None:
    """Save images that endlessly repeat, with times in units of ``grain`` milliseconds."""
    ends = np.rint(np.arange(film.pictures + 1) * 1000 / film.fps / grain).astype(int) * grain
    durations = np.diff(ends).tolist()  # right on average
    first = next(images)
    first.save(film.path, save_all=True, append_images=images, duration=durations, loop=0, **options)
