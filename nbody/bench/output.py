"""Where a benchmark's files go: ``output/bench.json`` and ``output/bench.png`` unless told otherwise."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nbody.bench.reading import read
from nbody.bench.report import Report
from nbody.errors import InputError, RunFailed

SUFFIXES = (".json", ".png")

ENDINGS = "a file's name ends in .json or .png"

PNG = b"\x89PNG"


@dataclass(frozen=True)
class Output:
    """The two files of a benchmark. They can be made again, so earlier ones are replaced."""

    report: Path
    picture: Path

    @classmethod
    def at(cls, place: Path, stem: str = "bench") -> "Output":
        """The files in a folder, or beside each other under the name of a .json or .png file.

        Raises:
            InputError: the folder can't be made or written to, or what stands there is no report or no picture, and
                would be lost (better known before the measuring than after).
        """
        try:
            _check_name(place)
            base = place.with_suffix("") if place.suffix in SUFFIXES else place / stem
            base.parent.mkdir(parents=True, exist_ok=True)
            files = cls(*(base.with_name(base.name + suffix) for suffix in SUFFIXES))
            for path in (base.parent, *files.replaced()):
                if not os.access(path, os.W_OK) or (path != base.parent and not path.is_file()):
                    raise InputError(f"--output: {path} can't be written; name another folder")
            _check_kind(files)
        except OSError as error:
            name = error.filename or place
            raise InputError(f"--output: {name} can't be made ({error.strerror}); name another folder") from None
        return files

    def replaced(self) -> list[Path]:
        """The files that writing will replace."""
        return [path for path in (self.report, self.picture) if path.exists()]

    def write(
        self, found: Report, draw: Callable[[Report, Path], None], done: Callable[[Path], object] = lambda path: None
    ) -> None:
        """Write the report and draw its picture, by one of the functions of a ``plot`` module; ``done`` hears of each.

        Raises:
            RunFailed: the disk is full, or the folder is gone. What could not be written is as it was.
        """
        with _told(self.report, "the figures above are all there is"), draft(self.report) as path:
            path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        done(self.report)
        with _told(self.picture, f"its figures are above and in {self.report}"), draft(self.picture) as path:
            draw(found, path)
        done(self.picture)


@contextmanager
def draft(path: Path) -> Iterator[Path]:
    """A file's place beside its own, from which it takes its name once it is whole. If it never is, what stood there
    before still does, and the draft is gone."""
    part = path.with_name(path.name + ".part")
    try:
        yield part
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def _told(path: Path, left: str) -> Iterator[None]:
    """An OSError in this block is one line, which ends with what is left."""
    try:
        yield
    except OSError as error:
        raise RunFailed(f"{path} can't be written ({error.strerror or error}); {left}") from error


def _check_name(place: Path) -> None:
    """Raise InputError for a file, or a name with a file's ending, that is neither a report's nor a picture's."""
    if place.suffix in SUFFIXES or place.is_dir():
        return
    if place.exists():
        raise InputError(f"--output: {place} is a file; name a folder, or another file ({ENDINGS})")
    if place.suffix and not place.suffix[1:].isdigit():
        raise InputError(f"--output: {place}: {ENDINGS}; to have a folder of this name, make it first")


def _check_kind(files: Output) -> None:
    """Raise InputError if a file that would be replaced is somebody else's."""
    report, picture = files.report, files.picture
    if report.exists() and report.stat().st_size:
        try:
            read(report)
        except InputError:
            raise InputError(f"--output: {report} exists and is no report; name another folder or file") from None
    if picture.exists() and picture.stat().st_size:
        with picture.open("rb") as file:
            if file.read(len(PNG)) != PNG:
                raise InputError(f"--output: {picture} exists and is no picture (PNG); name another folder or file")
