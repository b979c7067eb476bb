"""Converts a picture to the colours of video, on the graphics card.

On a processor the conversion of 1920x1080 pixels takes 20 ms (swscale on Zen 4), more than the encoder;
and half of the bytes need not be read.
"""

from vispy import gloo

from nbody.viewer.picture.shaders import source
from nbody.viewer.picture.tonemap import CORNERS

Size = tuple[int, int]


class Nv12:
    """Draws ``picture`` of ``size`` (width, height), both even, into :attr:`target`, in the layout NV12.

    Attributes:
        size: (width, height) of the target: four bytes per pixel, so a row of it has the bytes of a row of the video,
            rounded up to a multiple of four. The first rows are luma, the top one first.
    """

    def __init__(self, picture: gloo.Texture2D, size: Size) -> None:
        self.size = (-(-size[0] // 4), size[1] * 3 // 2)
        texture = gloo.Texture2D((self.size[1], self.size[0], 4), format="rgba", internalformat="rgba8")
        self.target = gloo.FrameBuffer(color=texture)
        self._program = gloo.Program(source("picture.vert"), source("nv12.frag"))
        self._program["a_corner"], self._program["u_rectangle"] = CORNERS, (-1, -1, 1, 1)
        self._program["u_picture"], self._program["u_size"] = picture, size

    def draw(self) -> None:
        """Convert the picture."""
        with self.target:
            gloo.set_viewport(0, 0, *self.size)
            gloo.set_state(blend=False, depth_test=False, cull_face=False)
            self._program.draw("triangle_strip")
