"""A sequence of PNG pictures."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from nbody.viewer.movie.formats import Film


class PNG:
    """Writes pictures (h, w, RGB) uint8 as NAME.0000.png, NAME.0001.png …"""

    nv12 = False
    signature = b"\x89PNG"

    @staticmethod
    def check(film: Film) -> None:
        """Every film can be written."""

    @staticmethod
    def write(film: Film, pictures: Iterator[np.ndarray]) -> None:
        """Write all pictures. Raises OSError if one can't be written."""
        for number, picture in enumerate(pictures):
            Image.fromarray(picture).save(numbered(film, number), compress_level=1)


def numbered(film: Film, number: int) -> Path:
    """The name of picture ``number``. All have the same number of digits, four or more."""
    digits = max(4, len(str(film.pictures - 1)))
    return film.path.with_name(f"{film.path.stem}.{number:0{digits}d}.png")
