"""The file formats of movies. Listing them imports no encoder."""

from dataclasses import dataclass
from pathlib import Path

from nbody.errors import InputError, did_you_mean
from nbody.registry import Entry, Registry

FORMATS = Registry(
    "movie format",
    {
        "mp4": Entry("nbody.viewer.movie.encoders:MP4", "H.264, for players, browsers and slides"),
        "gif": Entry("nbody.viewer.movie.encoders:GIF", "animated GIF: 256 colours, up to 50 pictures per second"),
        "webp": Entry("nbody.viewer.movie.encoders:WEBP", "animated WebP: all colours, much smaller than GIF"),
        "png": Entry("nbody.viewer.movie.encoders:PNG", "a sequence of pictures, NAME.0000.png and so on"),
    },
)


@dataclass(frozen=True)
class Film:
    """What an encoder has to know.

    Attributes:
        path: the file to write.
        size: (width, height) in pixels.
        fps: pictures per second.
        pictures: their number, if nothing stops them.
    """

    path: Path
    size: tuple[int, int]
    fps: float
    pictures: int


def format_of(path: Path) -> str:
    """The name of the format that the suffix of ``path`` stands for.

    Raises:
        InputError: it is not a suffix of :data:`FORMATS`.
    """
    name = path.suffix.lower().removeprefix(".")
    if name not in FORMATS:
        known = ", ".join(f".{each}" for each in FORMATS)
        raise InputError(
            f"{path}: movies are {known}; give it a name with one of these endings{did_you_mean(name, FORMATS)}"
        )
    return name
