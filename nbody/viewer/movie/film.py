"""A movie: which moments of a run its pictures show, and its file, which is encoded in a thread and gets its name when it is
whole. Nothing here imports an encoder before it is used."""

import os
import queue
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from nbody.errors import InputError, RunFailed, did_you_mean
from nbody.output_file import FileKind, checked_path
from nbody.registry import Entry, Registry
from nbody.viewer.sources.frames import Array
from nbody.whole_file import Notify, if_free, keeping, whole_file

MOST = 1_000_000  # the most pictures of a movie: nine hours at 30 per second
WAITING = 4  # pictures that wait for the encoder. Then the drawing waits, so that the memory is bounded

_ENCODERS = "nbody.viewer.movie.encoders"
MOVIE_FORMATS = Registry(
    "movie_format",
    {
        "mp4": Entry(f"{_ENCODERS}:MP4", "H.264, for players, browsers and slides"),
        "gif": Entry(f"{_ENCODERS}:GIF", "animated GIF: 256 colours, up to 50 pictures per second"),
        "webp": Entry(f"{_ENCODERS}:WEBP", "animated WebP: all colours, much smaller than GIF"),
        "png": Entry(f"{_ENCODERS}:PNG", "a sequence of pictures, NAME.0000.png and so on"),
    },
)


@dataclass(frozen=True)
class Film:
    """The file to write, (width, height) in pixels, pictures per second, and their number if nothing stops them."""

    path: Path
    size: tuple[int, int]
    fps: float
    pictures: int

    @property
    def format(self) -> str:
        """The name of the format that the suffix of the path stands for. Raises InputError if there is none."""
        name = self.path.suffix.lower().removeprefix(".")
        if name not in MOVIE_FORMATS:
            known = ", ".join(f".{each}" for each in MOVIE_FORMATS)
            hint = did_you_mean(name, MOVIE_FORMATS)
            raise InputError(f"{self.path}: movies are {known}; give it a name with one of these endings{hint}")
        return name

    def file(self, number: int) -> Path:
        """The file of picture ``number``: of a sequence NAME.0000.png and so on, all with the same number of digits."""
        if self.format != "png":
            return self.path
        digits = max(4, len(str(self.pictures - 1)))
        return self.path.with_name(f"{self.path.stem}.{number:0{digits}d}.png")


def moments(
    time: Array, first: int, last: int, fps: float, seconds: float | None = None, speed: float | None = None
) -> Array:
    """The moments to draw, counted in frames, (pictures,) float64.

    By default each frame from ``first`` to ``last`` (in either order) is one picture. With the length of the movie,
    ``seconds``, or its ``speed`` in units of the run's time per second, the pictures are evenly spaced in the time of the
    run, (T,), between its frames too.

    Raises:
        InputError: a number out of range, too many pictures, or one frame would be the whole movie.
    """
    for option, value in (("--seconds", seconds), ("--speed", speed)):
        if value is not None and value <= 0:
            raise InputError(f"{option} {value:g}: must be greater than 0")
    if seconds is not None and speed is not None:
        raise InputError("--speed: cannot be combined with --seconds; give one of them")
    if speed is not None:
        if first == last:
            raise InputError(f"--speed {speed:g}: there is one frame to show; give --seconds instead")
        seconds = abs(float(time[last] - time[first])) / speed
    if seconds is None:
        if first == last:
            raise InputError(
                "there is one frame to show, which makes no movie; save it with 'nbody view … --screenshot', or give "
                "--seconds and a moving camera (--spin, --camera)"
            )
        return np.arange(first, last + 1.0) if first < last else np.arange(first, last - 1.0, -1.0)
    if seconds * fps > MOST:
        raise InputError(f"this movie would have {seconds * fps:g} pictures, more than {MOST}; make it shorter (--seconds)")
    count = max(1, round(seconds * fps))
    frames = np.arange(min(first, last), max(first, last) + 1)
    times, falls = time[frames], -1 if time[frames[-1]] < time[frames[0]] else 1
    if times[-1] != times[0] and (falls * np.diff(times) >= 0).all():
        at = np.interp(falls * np.linspace(time[first], time[last], count), falls * times, frames)
    else:  # a file without times, or a run that goes back and forth
        at = np.linspace(first, last, count)
    return np.round(at, 9)  # a frame, where rounding left nearly one


def checked(film: Film, overwrite: bool = False, inputs: Iterable[Path] = ()) -> Film:
    """``film`` with its path resolved, if it can be encoded, and written without a loss of the files ``inputs``, which it is
    made of; with ``overwrite`` it may replace an older movie. Raises InputError if not, and DeviceError if the encoder is
    not installed.
    """
    encoder = MOVIE_FORMATS.load(film.format)
    encoder.check(film)
    kind = FileKind("movie", "", "give another name", encoder.signature if overwrite else b"", "output/run.mp4")
    target = replace(film, path=checked_path(film.path, kind, inputs))
    if target.format != film.format:
        raise InputError(f"{film.path}: leads to {target.path}, which ends otherwise; give another name")
    if not target.path.parent.is_dir():
        raise InputError(f"{film.path}: there is no folder {target.path.parent}; make it first")
    for each in map(target.file, range(film.pictures if film.format == "png" else 0)):
        if os.path.lexists(each) and not overwrite:
            raise InputError(f"{each}: exists; give another name, or --overwrite")
        checked_path(each, kind, inputs)
    return target


class Writer:
    """Writes a :func:`checked` film in a thread, in a ``with`` block: at its end the file gets its name (RunFailed if it
    can't be written); after an error inside no movie is made, and of a sequence the pictures so far are kept. An older file
    is kept under a numbered name, about which ``notify`` gets a line, unless ``overwrite``.

    Attributes:
        film: what is written.
        nv12: True if :meth:`add` takes pictures as :class:`.make.Nv12` makes them, else RGB.
        pictures: the number of pictures added.
    """

    def __init__(self, film: Film, overwrite: bool = False, notify: Notify = lambda line: None) -> None:
        self.film = film
        self._encoder = MOVIE_FORMATS.load(film.format)
        self.nv12: bool = self._encoder.nv12
        self.pictures = 0
        self._many = film.format == "png"
        self._place = os.replace if overwrite else if_free if self._many else keeping(notify)
        self._queue: queue.Queue[Array | None] = queue.Queue(WAITING)
        self._dropped = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="encoder", daemon=True)
        self._thread.start()

    def add(self, picture: Array) -> None:
        """Encode one more picture; waits while the encoder is busy. Raises RunFailed."""
        self._queue.put(picture)
        self._raise()
        self.pictures += 1

    def _raise(self) -> None:
        if isinstance(self._error, OSError):
            reason = self._error.strerror or str(self._error)
            left = "the pictures so far are kept" if self._many else "no movie was made or changed"
            raise RunFailed(f"{self.film.path}: can't be written ({reason}); {left}") from self._error
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        """Encode until the block ends. After an error, drop what comes, so that :meth:`add` never waits for ever."""
        coming = self._coming()
        try:
            for number, first in enumerate(coming):
                with whole_file(self.film.file(number), self._place) as draft:
                    self._encoder.write(replace(self.film, path=draft), chain([first], coming))
                    if self._dropped and not self._many:
                        raise InterruptedError
        except BaseException as error:
            self._error = error
            for _ in coming:
                pass

    def _coming(self) -> Iterator[Array]:
        while (picture := self._queue.get()) is not None:
            yield picture

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._dropped = kind is not None
        self._queue.put(None)
        self._thread.join()
        if kind is None:
            self._raise()
