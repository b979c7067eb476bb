"""The file of a movie: pictures are encoded in a thread, and the file gets its name when it is whole."""

import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nbody.errors import InputError, RunFailed
from nbody.trajectory.output_path import FileKind, check_output
from nbody.viewer.movie.encoders import numbered
from nbody.viewer.movie.formats import FORMATS, Film, format_of
from nbody.whole_file import if_free, keeping, whole_file

Array = np.ndarray

WAITING = 4
"""Pictures that wait for the encoder. Then the drawing waits, so that the memory is bounded."""


def checked(film: Film, overwrite: bool = False, inputs: Iterable[Path] = ()) -> Film:
    """``film`` with its path resolved, if it can be encoded and written; better known before it is drawn than after.

    Args:
        overwrite: its file may replace an older one.
        inputs: the files that it is made of.

    Raises:
        InputError: an unknown suffix, an odd size, a path that can't be written, a file that is no movie and would be
            overwritten, or a picture of a sequence that exists.
        DeviceError: the encoder is not installed; the line names the extra.
    """
    name = format_of(film.path)
    encoder = FORMATS.load(name)
    encoder.check(film)
    kind = FileKind("movie", "", "give another name", encoder.signature if overwrite else b"", "output/run.mp4")
    target = check_output(film.path, kind, inputs)
    if format_of(target) != name:
        raise InputError(f"{film.path}: leads to {target}, which ends otherwise; give another name")
    if not target.parent.is_dir():
        raise InputError(f"{film.path}: there is no folder {target.parent}; make it first")
    film = replace(film, path=target)
    for each in (numbered(film, k) for k in range(film.pictures if name == "png" else 0)):
        if os.path.lexists(each) and not overwrite:
            raise InputError(f"{each}: exists; give another name, or --overwrite")
        check_output(each, kind, inputs)
    return film


class Writer:
    """Writes a film in a thread, in a ``with`` block: at its end the file gets its name (RunFailed if it can't be written);
    after an error inside no movie is made, and of a sequence the pictures so far are kept.

    Args:
        film: as :func:`checked` returns it.
        overwrite: replace an older file; else it is kept under a numbered name when the new one is whole.
        notify: gets one line if an older file was kept.

    Attributes:
        nv12: True if :meth:`add` takes pictures as :class:`.make.Nv12` makes them, else RGB.
        pictures: the number of pictures added.
    """

    def __init__(self, film: Film, overwrite: bool = False, notify: Callable[[str], Any] = lambda line: None) -> None:
        self._film = film
        self._encoder = FORMATS.load(format_of(film.path))
        self.nv12: bool = self._encoder.nv12
        self.pictures = 0
        self._many = film.path.suffix.lower() == ".png"
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
            raise RunFailed(f"{self._film.path}: can't be written ({reason}); {self._left()}") from self._error
        if self._error is not None:
            raise self._error

    def _left(self) -> str:
        return "the pictures so far are kept" if self._many else "no movie was made or changed"

    def _work(self) -> None:
        """Encode until the block ends. After an error, drop what comes, so that :meth:`add` never waits for ever."""
        coming = self._coming()
        try:
            for number, first in enumerate(coming):
                target = numbered(self._film, number) if self._many else self._film.path
                with whole_file(target, self._place) as draft:
                    self._encoder.write(replace(self._film, path=draft), _with(first, coming))
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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        self._dropped = kind is not None
        self._queue.put(None)
        self._thread.join()
        if kind is None:
            self._raise()


def _with(first: Array, others: Iterator[Array]) -> Iterator[Array]:
    yield first
    yield from others


def movie_size(film: Film, pictures: int) -> int:
    """The bytes on disk."""
    paths: list[Path] = [film.path]
    if film.path.suffix.lower() == ".png":
        paths = [numbered(film, number) for number in range(pictures)]
    return sum(path.stat().st_size for path in paths)
