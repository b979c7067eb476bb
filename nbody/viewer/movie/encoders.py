"""The encoders: H.264 in an MP4 file (by PyAV: the libraries of FFmpeg in one wheel); GIF, WebP and PNG (by Pillow)."""

import logging
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from PIL import Image

from nbody import install
from nbody.errors import DeviceError, InputError, RunFailed
from nbody.viewer.movie.film import Film

QUALITY, PRESET = 18, "superfast"
"""x264's constant rate factor (18 looks like the original; smaller is better) and effort. The next step, veryfast, takes
11.6 instead of 7.6 ms per picture of 960x600 pixels for files that are 16 % smaller (20480 bodies, Zen 4)."""

THREADS = "FRAME"  # several pictures at once. PyAV's default, slices, ends where a picture has too few rows
BT709 = LIMITED_RANGE = 1  # FFmpeg's numbers for the colours that make.Nv12 makes
FASTEST_GIF = 50  # pictures per second: its times are hundredths of a second, and browsers show 0.01 s as 0.1 s


class Encoder:
    """Writes pictures (h, w, RGB) uint8, the top row first; or, with ``nv12``, in that layout: (h · 3/2, w) uint8, rows may
    be longer. ``signature`` is what its files begin with."""

    nv12 = False
    signature: bytes

    @staticmethod
    def check(film: Film) -> None:
        """Raise an error if this film can't be encoded: InputError, or DeviceError if the encoder is not installed."""

    @staticmethod
    def write(film: Film, pictures: Iterator[np.ndarray]) -> None:
        """Encode all pictures. Raises OSError if the file can't be written, RunFailed if the encoder fails."""
        raise NotImplementedError


class MP4(Encoder):
    """H.264."""

    nv12 = True
    signature = b"\x00\x00\x00"

    @staticmethod
    def check(film: Film) -> None:
        width, height = film.size
        if width % 2 or height % 2:
            even = f"{width + width % 2}x{height + height % 2}"
            raise InputError(f"--size {width}x{height}: H.264 needs even sides; use {even}")
        try:
            import av  # noqa: F401
        except ImportError as error:
            instead = "or make a .webp or .gif, which need nothing else"
            raise DeviceError(
                f"{film.path}: .mp4 needs PyAV ({error}): {install.install_extra('movie')}; {instead}"
            ) from error

    @staticmethod
    def write(film: Film, pictures: Iterator[np.ndarray]) -> None:
        import av

        logging.getLogger("libav").setLevel(logging.CRITICAL)  # errors are raised
        try:
            with av.open(str(film.path), "w", format="mp4", options={"movflags": "faststart"}) as container:
                rate = Fraction(film.fps).limit_denominator(1001)
                stream = container.add_stream("libx264", rate=rate, options={"crf": str(QUALITY), "preset": PRESET})
                stream.width, stream.height, stream.pix_fmt = *film.size, "yuv420p"
                context = stream.codec_context
                context.thread_type = THREADS
                context.colorspace = context.color_primaries = context.color_trc = BT709
                context.color_range = LIMITED_RANGE
                for number, picture in enumerate(pictures):
                    frame = nv12_frame(picture, film.size)
                    frame.pts, frame.time_base = number, 1 / rate
                    container.mux(stream.encode(frame))
                container.mux(stream.encode())
        except av.FFmpegError as error:
            if isinstance(error, OSError) and error.errno:
                raise
            raise RunFailed(f"{film.path}: the encoder failed ({error})") from error


def nv12_frame(picture: np.ndarray, size: tuple[int, int]):
    """A frame of PyAV from NV12, (h · 3/2, w) uint8."""
    from av import VideoFrame

    width, height = size
    frame = VideoFrame(width, height, "nv12")
    for plane, rows in zip(frame.planes, (picture[:height], picture[height:]), strict=True):
        lines = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        lines[:, :width] = rows[:, :width]
    return frame


class GIF(Encoder):
    """Animated; each picture has its own 256 colours."""

    signature = b"GIF8"

    @staticmethod
    def check(film: Film) -> None:
        if film.fps > FASTEST_GIF:
            raise InputError(f"--fps {film.fps:g}: a GIF shows up to {FASTEST_GIF} pictures per second; or make a .webp")

    @staticmethod
    def write(film: Film, pictures: Iterator[np.ndarray]) -> None:
        images = (
            Image.fromarray(picture).quantize(method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
            for picture in pictures
        )
        _save(film, images, 10, format="GIF", optimize=False, disposal=1)


class WEBP(Encoder):
    """Animated."""

    signature = b"RIFF"

    @staticmethod
    def write(film: Film, pictures: Iterator[np.ndarray]) -> None:
        _save(film, map(Image.fromarray, pictures), 1, format="WEBP", quality=80, method=2)


def _save(film: Film, images: Iterator[Image.Image], grain: int, **options) -> None:
    """Save images that endlessly repeat, with times in units of ``grain`` milliseconds."""
    ends = np.rint(np.arange(film.pictures + 1) * 1000 / film.fps / grain).astype(int) * grain
    durations = np.diff(ends).tolist()  # right on average
    next(images).save(film.path, save_all=True, append_images=images, duration=durations, loop=0, **options)


class PNG(Encoder):
    """One picture; the writer calls it for each of NAME.0000.png, NAME.0001.png …"""

    signature = b"\x89PNG"

    @staticmethod
    def write(film: Film, pictures: Iterator[np.ndarray]) -> None:
        Image.fromarray(next(pictures)).save(film.path, format="PNG", compress_level=1)
