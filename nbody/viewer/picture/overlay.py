"""Draws arrays of pixels (text, the time line) over the picture."""

import numpy as np
from vispy import gloo

from nbody.viewer.picture.shaders import cover, rectangle

Size = tuple[int, int]


class Overlay:
    """Images over the picture. The texture of each is kept by its name. An array that is given again is not copied again, so
    it must not have been changed."""

    def __init__(self) -> None:
        self._program = rectangle("overlay.frag")
        self._textures: dict[str, tuple[np.ndarray, gloo.Texture2D]] = {}

    def draw(self, name: str, image: np.ndarray, at: tuple[int, int], size: Size, paper: bool = False) -> None:
        """Draw ``image``, (h, w, RGBA) uint8, with its top left corner at pixel ``at`` of a picture of ``size``.

        On ``paper`` (a light background) dark becomes light and light dark; hues stay.
        """
        before, texture = self._textures.get(name, (None, None))
        if texture is None or texture.shape != image.shape:
            texture = gloo.Texture2D(np.ascontiguousarray(image), interpolation="nearest")
        elif image is not before:
            texture.set_data(np.ascontiguousarray(image))
        self._textures[name] = image, texture
        self._program["u_image"], self._program["u_paper"] = texture, float(paper)
        height, width = image.shape[:2]
        left, top = 2 * at[0] / size[0] - 1, 1 - 2 * at[1] / size[1]
        self._program["u_rectangle"] = (left, top - 2 * height / size[1], left + 2 * width / size[0], top)
        cover(self._program, blend=True)
