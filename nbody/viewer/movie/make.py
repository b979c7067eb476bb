"""Draws the pictures of a movie and passes them to its encoder."""

from collections.abc import Callable, Iterator

import numpy as np

from nbody.viewer.movie.nv12 import Nv12
from nbody.viewer.movie.readback import Readback
from nbody.viewer.movie.writing import Writer
from nbody.viewer.picture.camera import Camera
from nbody.viewer.picture.studio import Studio

Array = np.ndarray


def make_movie(
    studio: Studio,
    moments: Array,
    camera_at: Callable[[int, float], Camera],
    writer: Writer,
    with_hud: bool = True,
    progress: Callable[[int], object] = lambda made: None,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Draw ``moments`` (counted in frames) and write them.

    Args:
        studio: draws the pictures; the writer's film has its size.
        camera_at: the camera of a picture, from its number and its moment.
        writer: receives the pictures.
        with_hud: draw the caption.
        progress: called with the number of pictures drawn.
        stopped: asked before each picture; if True, the movie ends there.

    Raises:
        InputError: a frame is damaged.
        RunFailed: the movie can't be written.
    """

    def draw() -> Iterator[int]:
        for number, at in enumerate(map(float, moments)):
            if stopped():
                return
            studio.draw(at, camera_at(number, at), with_hud)
            yield number

    for number, picture in enumerate(_read(studio, draw(), writer.nv12), 1):
        writer.add(picture)
        progress(number)


def _read(studio: Studio, drawn: Iterator[int], nv12: bool) -> Iterator[Array]:
    """Each picture that ``drawn`` draws, read while the next one is drawn: NV12 or (h, w, RGB), the top row first."""
    video = Nv12(studio.texture, studio.size) if nv12 else None
    back = Readback(video.size if video else studio.size, 4)

    def get() -> Array:
        picture = back.get()
        return picture.reshape(len(picture), -1) if video else picture[::-1, :, :3]

    for _ in drawn:
        if video:
            video.draw()
        if back.full:
            yield get()
        back.put(video.target if video else studio.target)
    while len(back):
        yield get()
