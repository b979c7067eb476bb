"""Draws pictures of a source without a screen."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from vispy import app, gloo
from vispy.gloo import gl

from nbody.errors import DeviceError, InputError
from nbody.viewer import backends
from nbody.viewer.gl.renderer import PictureRenderer
from nbody.viewer.gl.shaders import new_target
from nbody.viewer.picture.look import Look
from nbody.viewer.sources.camera import Camera, Size
from nbody.viewer.sources.source import Source


class Studio:
    """A canvas of ``size`` (width, height) in pixels that no window shows. Call :func:`.backends.use_screenless` before this
    module is imported. ``with Studio(…) as studio:`` closes it.

    Attributes:
        texture, target: the last picture, and the frame buffer that contains it.

    Raises:
        DeviceError: no OpenGL without a screen.
        InputError: the picture is larger than OpenGL can draw here, or no frame can be read.
    """

    def __init__(self, source: Source, size: Size, look: Look = Look()) -> None:
        self.size = size
        try:
            self._canvas = app.Canvas(size=(16, 16), show=False, dpi=96)
        except (RuntimeError, IndexError) as error:  # a driver without the surface that vispy asks for
            raise backends.no_screenless(error) from error
        try:
            largest = gl.glGetParameter(gl.GL_MAX_TEXTURE_SIZE)
            if max(size) > largest:
                raise InputError(f"--size {size[0]}x{size[1]}: OpenGL draws up to {largest} pixels a side here")
            self.renderer = PictureRenderer(self._canvas, source, look=look)
            self.texture, self.target = new_target(size)
        except BaseException:
            self.close()
            raise

    def draw(self, at: float, camera: Camera | None = None, with_hud: bool = True) -> None:
        """Draw the moment ``at``, counted in frames, as ``camera`` sees it, by default the view of the run. Raises
        InputError for a damaged frame, and DeviceError if OpenGL fails."""
        self.renderer.load(at)
        with self._drawing():
            self.renderer.draw(camera or self.renderer.home, self.size)
            if with_hud:
                self.renderer.draw_caption(at, self.size)

    def read(self) -> np.ndarray:
        """The last picture, (height, width, RGB) uint8."""
        with self._drawing():
            return gloo.read_pixels((0, 0, *self.size), alpha=False)

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """Inside this block OpenGL draws the picture. Raises DeviceError if it fails, as it does without memory."""
        try:
            with self.target:
                yield
        except RuntimeError as error:  # vispy's type for errors of OpenGL
            width, height = self.size
            raise DeviceError(
                f"OpenGL can't draw a picture of {width}x{height} here ({error}); give it more memory, or choose "
                "a smaller --size"
            ) from error

    def close(self) -> None:
        """Give the OpenGL context back."""
        self._canvas.close()

    def __enter__(self) -> "Studio":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
