"""Draws arrays of pixels (text, the time line) over the picture."""

import numpy as np
from vispy import gloo

from nbody.viewer.picture.shaders import source
from nbody.viewer.picture.tonemap import CORNERS


class Overlay:
    """One image over the picture. An array that is given again is not copied again, so it must not have been changed."""

    def __init__(self) -> None:
        self._program = gloo.Program(source("picture.vert"), source("overlay.frag"))
        self._program["a_corner"] = CORNERS
        self._texture: gloo.Texture2D | None = None
        self._image: np.ndarray | None = None

    def draw(self, image: np.ndarray, at: tuple[int, int], size: tuple[int, int], paper: bool = False) -> None:
        """Draw ``image``, (h, w, RGBA) uint8, with its top left corner at pixel ``at`` of a picture of ``size``.

        On ``paper`` (a light background) dark becomes light and light dark; hues stay.
        """
        if self._texture is None or self._texture.shape != image.shape:
            self._texture = gloo.Texture2D(np.ascontiguousarray(image), interpolation="nearest")
            self._program["u_image"] = self._texture
        elif image is not self._image:
            self._texture.set_data(np.ascontiguousarray(image))
        self._image = image
        self._program["u_paper"] = float(paper)
        height, width = image.shape[:2]
        left, top = 2 * at[0] / size[0] - 1, 1 - 2 * at[1] / size[1]
        self._program["u_rectangle"] = (left, top - 2 * height / size[1], left + 2 * width / size[0], top)
        gloo.set_state(blend=True, blend_func=("src_alpha", "one_minus_src_alpha"), depth_test=False, cull_face=False)
        self._program.draw("triangle_strip")
