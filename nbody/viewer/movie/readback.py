"""Copies pictures from the graphics card while it draws the next ones (pixel buffer objects)."""

import ctypes
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from vispy import gloo
from vispy.gloo import gl
from vispy.gloo.gl import gl2

PIXEL_PACK_BUFFER, STREAM_READ = 0x88EB, 0x88E1
"""Values of OpenGL 2.1 that vispy, which offers OpenGL ES 2.0, does not name."""

DEPTH = 2
"""Pictures on their way: one that is copied while the next one is drawn."""


def _function(name: str, *arguments: Any) -> Callable[..., None]:
    """A function of OpenGL 2.1 (beyond OpenGL ES 2.0), without a result."""
    return gl2._get_gl_func(name, None, arguments)


class Readback:
    """Reads frame buffers of ``size`` (width, height) with ``channels`` bytes per pixel: 3 or 4."""

    def __init__(self, size: tuple[int, int], channels: int) -> None:
        self._size, self._channels = size, channels
        self._bytes = size[0] * size[1] * channels
        self._read = _function("glReadPixels", *[ctypes.c_int] * 4, *[ctypes.c_uint] * 2, ctypes.c_void_p)
        self._copy = _function("glGetBufferSubData", ctypes.c_uint, *[ctypes.c_ssize_t] * 2, ctypes.c_void_p)
        self._free = deque(gl.glCreateBuffer() for _ in range(DEPTH))
        self._reserve = _function("glBufferData", ctypes.c_uint, ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_uint)
        for buffer in self._free:
            gl.glBindBuffer(PIXEL_PACK_BUFFER, buffer)
            self._reserve(PIXEL_PACK_BUFFER, self._bytes, None, STREAM_READ)
        gl.glBindBuffer(PIXEL_PACK_BUFFER, 0)
        self._queue: deque[int] = deque()

    def __len__(self) -> int:
        """The number of pictures on their way."""
        return len(self._queue)

    @property
    def full(self) -> bool:
        """True if :meth:`get` has to be called before the next :meth:`put`."""
        return not self._free

    def put(self, target: gloo.FrameBuffer) -> None:
        """Begin to read ``target``."""
        buffer = self._free.popleft()
        with target:
            gloo.get_current_canvas().context.flush_commands()
            gl.glPixelStorei(gl.GL_PACK_ALIGNMENT, 1)
            gl.glBindBuffer(PIXEL_PACK_BUFFER, buffer)
            layout = gl.GL_RGBA if self._channels == 4 else gl.GL_RGB
            self._read(0, 0, *self._size, layout, gl.GL_UNSIGNED_BYTE, None)
            gl.glBindBuffer(PIXEL_PACK_BUFFER, 0)
        self._queue.append(buffer)

    def get(self) -> np.ndarray:
        """The oldest picture on its way, (height, width, channels) uint8, the bottom row first. Waits for it."""
        buffer = self._queue.popleft()
        picture = np.empty((self._size[1], self._size[0], self._channels), np.uint8)
        gl.glBindBuffer(PIXEL_PACK_BUFFER, buffer)
        self._copy(PIXEL_PACK_BUFFER, 0, self._bytes, picture.ctypes.data)
        gl.glBindBuffer(PIXEL_PACK_BUFFER, 0)
        self._free.append(buffer)
        return picture
