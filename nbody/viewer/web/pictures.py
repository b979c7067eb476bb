"""The pictures of a window in the formats that pages ask for: H.264 by PyAV, or JPEG by Pillow."""

import io
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
from PIL import Image
from vispy import gloo

from nbody.viewer.movie.encoders import BT709, LIMITED_RANGE, nv12_frame
from nbody.viewer.movie.make import Nv12
from nbody.viewer.window.offscreen import OffscreenWindow

QUALITY = 23
"""x264's constant rate factor. A picture of 20480 bodies at 1280x720 has 27 kB; with 18, 49 kB."""

JPEG_QUALITY = 80
CLOCK = 1000  # ticks per second of x264's time stamps


class Jpeg:
    """Each picture for itself: for browsers without WebCodecs (which need HTTPS, or localhost) and without PyAV. A picture
    of 20480 bodies at 1280x720 has 100 kB.

    Attributes:
        texture: the window's, for whose size this is made.
    """

    def __init__(self, window: OffscreenWindow) -> None:
        self._window, self.texture = window, window.texture

    def read(self) -> np.ndarray:
        """The last picture of the window; call it on the thread that draws."""
        return self._window.read()

    def encode(self, picture: np.ndarray, key: bool) -> tuple[bytes, bool]:
        """What :meth:`read` returned, encoded, and whether it needs no earlier one; with ``key`` it does not."""
        out = io.BytesIO()
        Image.fromarray(picture).save(out, "JPEG", quality=JPEG_QUALITY)
        return out.getvalue(), True


class H264(Jpeg):
    """A video without delay: x264 encodes each picture at once, as a difference to the one before unless a ``key`` is asked
    for."""

    def __init__(self, window: OffscreenWindow) -> None:
        super().__init__(window)
        import av

        self._size, self._number = window.size, 0
        self._nv12 = Nv12(window.texture, window.size)
        self._context = context = av.CodecContext.create("libx264", "w")
        context.width, context.height = window.size
        context.pix_fmt, context.time_base, context.framerate = "nv12", Fraction(1, CLOCK), Fraction(60)
        context.colorspace = context.color_primaries = context.color_trc = BT709
        context.color_range, context.gop_size = LIMITED_RANGE, 100_000
        context.options = {"preset": "superfast", "tune": "zerolatency", "crf": str(QUALITY)}

    def read(self) -> np.ndarray:
        self._nv12.draw()
        with self._nv12.target:
            picture = gloo.read_pixels((0, 0, *self._nv12.size))[::-1]
        return picture.reshape(len(picture), -1)

    def encode(self, picture: np.ndarray, key: bool) -> tuple[bytes, bool]:
        from av.video.frame import PictureType

        frame = nv12_frame(picture, self._size)
        frame.pts, frame.time_base = self._number, Fraction(1, CLOCK)
        self._number += 1
        if key:
            frame.pict_type = PictureType.I
        packets = self._context.encode(frame)
        return b"".join(map(bytes, packets)), packets[0].is_keyframe


CODECS = {"h264": H264, "jpeg": Jpeg}


def codecs() -> tuple[str, ...]:
    """The names of the formats that this installation can make, the best one first."""
    return tuple(name for name in CODECS if name != "h264" or find_spec("av"))
