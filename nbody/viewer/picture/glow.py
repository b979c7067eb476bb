"""A halo around bright regions, as in a photograph: the light, blurred at a quarter of the resolution.

The glow fills the gaps between the particles of a spiral arm, so that the arm looks continuous.
"""

from vispy import gloo

from nbody.viewer.picture.shaders import source
from nbody.viewer.picture.tonemap import CORNERS

Size = tuple[int, int]

SHRINK = 4
"""The factor by which the grid of the glow is coarser than the picture, in both directions; the shader knows it."""


class Glow:
    """Shrinks light, then blurs it along x and y, into :attr:`light`."""

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
        x, y = SHRINK * scale / size[0], SHRINK * scale / size[1]
        light.interpolation = "linear"
        self._program["u_pixel"] = 1 / size[0], 1 / size[1]
        self._pass(light, self.light, (0.0, 0.0), shrink=True)
        self._pass(self.light, self._along_x, (x, 0.0))
        self._pass(self._along_x, self.light, (0.0, y))

    def _make_targets(self, size: Size) -> None:
        self._size = size
        shape = (-(-size[1] // SHRINK), -(-size[0] // SHRINK), 4)
        self._along_x, self.light = (
            gloo.Texture2D(shape, format="rgba", internalformat=self._format, interpolation="linear") for _ in range(2)
        )
        self._targets = {texture: gloo.FrameBuffer(color=texture) for texture in (self._along_x, self.light)}

    def _pass(
        self, light: gloo.Texture2D, target: gloo.Texture2D, step: tuple[float, float], shrink: bool = False
    ) -> None:
        self._program["u_light"], self._program["u_step"], self._program["u_shrink"] = light, step, float(shrink)
        with self._targets[target]:
            gloo.set_viewport(0, 0, target.shape[1], target.shape[0])
            self._program.draw("triangle_strip")
