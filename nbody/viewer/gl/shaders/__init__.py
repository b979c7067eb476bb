"""The shaders, in GLSL 1.20, which every OpenGL since 2.1 compiles; and images of text over a picture."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from vispy import gloo

CORNERS = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], np.float32)  # the corners of a rectangle, as a triangle strip


def source(name: str, defined: Iterable[str] = ()) -> str:
    """The text of ``<name>.glsl``, with the words ``defined`` for its ``#ifdef`` lines. It is ASCII, because vispy passes
    its length in characters instead of bytes."""
    text = Path(__file__).with_name(f"{name}.glsl").read_text(encoding="ascii")
    return "".join(f"#define {word}\n" for word in defined) + text


def rectangle(fragment: str, defined: Iterable[str] = ()) -> gloo.Program:
    """A program that covers the target, or the part ``u_rectangle`` of it (left, bottom, right, top, from -1 to 1)."""
    program = gloo.Program(source("picture.vert"), source(fragment, defined))
    program["a_corner"], program["u_rectangle"] = CORNERS, (-1, -1, 1, 1)
    return program


def new_target(size: tuple[int, int], stored: str = "rgba8") -> tuple[gloo.Texture2D, gloo.FrameBuffer]:
    """A texture of ``size`` (width, height), RGBA, ``stored`` in OpenGL's format of this name; and what draws into it."""
    shape = (size[1], size[0], 4)
    texture = gloo.Texture2D(shape, format="rgba", internalformat=stored, interpolation="linear")
    return texture, gloo.FrameBuffer(color=texture)


def cover(program: gloo.Program, blend: bool = False) -> None:
    """Draw a program that :func:`rectangle` made; with ``blend``, over what is there."""
    gloo.set_state(blend=blend, blend_func=("src_alpha", "one_minus_src_alpha"), depth_test=False, cull_face=False)
    program.draw("triangle_strip")


class Overlay:
    """Images over the picture. The texture of each is kept by its name. An array that is given again is not copied again, so
    it must not have been changed."""

    def __init__(self) -> None:
        self._program = rectangle("overlay.frag")
        self._textures: dict[str, tuple[np.ndarray, gloo.Texture2D]] = {}

    def draw(self, name: str, image: np.ndarray, at: tuple[int, int], size: tuple[int, int], paper: bool = False) -> None:
        """Draw ``image``, (h, w, RGBA) uint8, with its top left corner at pixel ``at`` of a picture of ``size``. On
        ``paper`` (a light background) dark becomes light and light dark; hues stay."""
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
