"""Draws the pictures of a movie and passes them to its encoder: copied from the graphics card while it draws the next ones
(pixel buffer objects), and for video in its colours.

On a processor the conversion of 1920x1080 pixels to these takes 20 ms (swscale on Zen 4), more than the encoder; and half of
the bytes need not be read.
"""

import ctypes
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
from vispy import gloo
from vispy.gloo import gl
from vispy.gloo.gl import gl2

from nbody.viewer.gl.shaders import cover, new_target, rectangle
from nbody.viewer.gl.studio import Studio
from nbody.viewer.movie.film import Writer
from nbody.viewer.sources.camera import Camera, Size
from nbody.viewer.sources.frames import Array

PIXEL_PACK_BUFFER, STREAM_READ = 0x88EB, 0x88E1  # of OpenGL 2.1; vispy has the names of OpenGL ES 2.0
DEPTH = 2  # pictures on their way: one that is copied while the next one is drawn


def make_movie(
    studio: Studio,
    moments: Array,
    camera_at: Callable[[float, float], Camera],
    writer: Writer,
    with_hud: bool = True,
    progress: Callable[[int], object] = lambda made: None,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Draw ``moments`` (counted in frames) in ``studio`` and write them.

    Args:
        camera_at: the camera of a picture, from the second of the movie and the moment.
        progress: called with the number of pictures drawn.
        stopped: asked before each picture; if True, the movie ends there.

    Raises InputError if a frame is damaged, RunFailed if the movie can't be written.
    """

    def draw() -> Iterator[int]:
        for number, at in enumerate(map(float, moments)):
            if stopped():
                return
            studio.draw(at, camera_at(number / writer.film.fps, at), with_hud)
            yield number

    for number, picture in enumerate(_read(studio, draw(), writer.nv12), 1):
        writer.add(picture)
        progress(number)


def _read(studio: Studio, drawn: Iterator[int], nv12: bool) -> Iterator[Array]:
    """Each picture that ``drawn`` draws, read while the next one is drawn: NV12 or (h, w, RGB), the top row first."""
    video = Nv12(studio.texture, studio.size) if nv12 else None
    back = Readback(video.size if video else studio.size)

    def get() -> Array:
        picture = back.get()
        return picture.reshape(len(picture), -1) if video else picture[::-1, :, :3]

    for _ in drawn:
        if video:
            video.draw()
        if len(back) == DEPTH:
            yield get()
        back.put(video.target if video else studio.target)
    while len(back):
        yield get()


class Nv12:
    """Draws ``picture`` of ``size`` (width, height), both even, into :attr:`target`, in the layout NV12.

    Attributes:
        size: (width, height) of the target: four bytes per pixel, so a row of it has the bytes of a row of the video,
            rounded up to a multiple of four. The first rows are luma, the top one first.
    """

    def __init__(self, picture: gloo.Texture2D, size: Size) -> None:
        self.size = (-(-size[0] // 4), size[1] * 3 // 2)
        _, self.target = new_target(self.size)
        self._program = rectangle("nv12.frag")
        self._program["u_picture"], self._program["u_size"] = picture, size

    def draw(self) -> None:
        with self.target:
            gloo.set_viewport(0, 0, *self.size)
            cover(self._program)


class Readback:
    """Reads frame buffers of ``size`` (width, height), RGBA."""

    def __init__(self, size: Size) -> None:
        self._size, self._bytes = size, 4 * size[0] * size[1]
        self._read = _function("glReadPixels", *[ctypes.c_int] * 4, *[ctypes.c_uint] * 2, ctypes.c_void_p)
        self._copy = _function("glGetBufferSubData", ctypes.c_uint, *[ctypes.c_ssize_t] * 2, ctypes.c_void_p)
        self._free = deque(gl.glCreateBuffer() for _ in range(DEPTH))
        reserve = _function("glBufferData", ctypes.c_uint, ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_uint)
        for buffer in self._free:
            gl.glBindBuffer(PIXEL_PACK_BUFFER, buffer)
            reserve(PIXEL_PACK_BUFFER, self._bytes, None, STREAM_READ)
        gl.glBindBuffer(PIXEL_PACK_BUFFER, 0)
        self._queue: deque[int] = deque()

    def __len__(self) -> int:
        """The number of pictures on their way."""
        return len(self._queue)

    def put(self, target: gloo.FrameBuffer) -> None:
        """Begin to read ``target``; if :data:`DEPTH` pictures are on their way, call :meth:`get` first."""
        buffer = self._free.popleft()
        with target:
            gloo.get_current_canvas().context.flush_commands()
            gl.glPixelStorei(gl.GL_PACK_ALIGNMENT, 1)
            gl.glBindBuffer(PIXEL_PACK_BUFFER, buffer)
            self._read(0, 0, *self._size, gl.GL_RGBA, gl.GL_UNSIGNED_BYTE, None)
            gl.glBindBuffer(PIXEL_PACK_BUFFER, 0)
        self._queue.append(buffer)

    def get(self) -> np.ndarray:
        """The oldest picture on its way, (height, width, RGBA) uint8, the bottom row first. Waits for it."""
        buffer = self._queue.popleft()
        picture = np.empty((self._size[1], self._size[0], 4), np.uint8)
        gl.glBindBuffer(PIXEL_PACK_BUFFER, buffer)
        self._copy(PIXEL_PACK_BUFFER, 0, self._bytes, picture.ctypes.data)
        gl.glBindBuffer(PIXEL_PACK_BUFFER, 0)
        self._free.append(buffer)
        return picture


def _function(name: str, *arguments: type) -> Callable[..., None]:
    """A function of OpenGL 2.1 (beyond OpenGL ES 2.0), without a result."""
    return gl2._get_gl_func(name, None, arguments)
