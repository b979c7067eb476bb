"""A halo around bright regions, as in a photograph: the light, blurred at a quarter of the resolution.

The glow fills the gaps between the particles of a spiral arm, so that the arm looks continuous.
"""

from vispy import gloo

from nbody.viewer.picture.shaders import source
from nbody.viewer.picture.tonemap import CORNERS

Size = tuple[int, int]

SHRINK = 4
"""The factor by which the grid of the blur is coarser than the picture. The two passes of 13 taps then run on 1/4 and 1/16
of the pixels."""


class Glow:
    """Blurs light along x, then y, into :attr:`light`."""

    def __init__(self, texture_format: str) -> None:
        self._format = texture_format
        self._program = gloo.Program(source("picture.vert"), source("glow.frag"))
        self._program["a_corner"] = CORNERS
        self._program["u_rectangle"] = (-1, -1, 1, 1)
        self._size: Size = (0, 0)

    def draw(self, light: gloo.Texture2D, size: Size, scale: float = 1.0) -> None:
        """Blur ``light``, of ``size`` (width, height)."""
        if size != self._size:
            self._make_targets(size)
        gloo.set_state(blend=False, depth_test=False, cull_face=False)
        self._pass(light, self._along_x, (2 * scale / size[0], 0.0))
        self._pass(self._along_x, self.light, (0.0, 2 * scale / size[1]))

    def _make_targets(self, size: Size) -> None:
        self._size = size
        narrow, low = -(-size[0] // SHRINK), -(-size[1] // SHRINK)
        self._along_x, self.light = (
            gloo.Texture2D((height, narrow, 4), format="rgba", internalformat=self._format, interpolation="linear")
            for height in (size[1], low)
        )
        self._targets = {texture: gloo.FrameBuffer(color=texture) for texture in (self._along_x, self.light)}

    def _pass(self, light: gloo.Texture2D, target: gloo.Texture2D, step: tuple[float, float]) -> None:
        self._program["u_light"], self._program["u_step"] = light, step
        with self._targets[target]:
            gloo.set_viewport(0, 0, target.shape[1], target.shape[0])
            self._program.draw("triangle_strip")
