"""A sequence of PNG pictures."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from nbody.viewer.movie.formats import Film


class PNG:
    """Writes one picture (h, w, RGB) uint8; the writer calls it for each of NAME.0000.png, NAME.0001.png …"""

    nv12 = False
    signature = b"\x89PNG"

    @staticmethod
    def check(film: Film) -> None:
        """Every film can be written."""

    @staticmethod
    def write(film: Film, pictures: Iterator[np.ndarray]) -> None:
        """Write the next picture. Raises OSError if it can't be written."""
        Image.fromarray(next(pictures)).save(film.path, format="PNG", compress_level=1)


def numbered(film: Film, number: int) -> Path:
    """The name of picture ``number``. All have the same number of digits, four or more."""
    digits = max(4, len(str(film.pictures - 1)))
    return film.path.with_name(f"{film.path.stem}.{number:0{digits}d}.png")
