"""Writes a benchmark's files: a report (JSON) and a picture (PNG) beside it."""

import os
from collections.abc import Callable
from pathlib import Path

from nbody.bench import Notify
from nbody.bench.report import Report
from nbody.errors import InputError, RunFailed
from nbody.whole_file import keep_older_file, whole_file


def report_path(output: Path, stem: str) -> Path:
    """The report's file: ``output`` if it ends in .json, else ``stem``.json in the folder ``output``, which is created.

    Raises:
        InputError: the folder can't be created or written to. (Call this before measuring.)
    """
    path = output if output.suffix == ".json" else output / f"{stem}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--output: {error.filename or output} can't be made ({error.strerror}); name another folder"
        ) from None
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"--output: {path} can't be written; name another folder")
    return path


def write(found: Report, path: Path, plot: Callable[[Report, Path], None], say: Notify) -> Path | None:
    """Write the report and draw its picture. Older files keep a numbered name; returns that of the older report, if any.

    Raises:
        RunFailed: the disk is full, or the folder is gone. A file that can't be written keeps its old content.
    """
    kept = _replace(path, lambda part: part.write_text(found.json(indent=1) + "\n", encoding="utf-8"), say)
    _replace(path.with_suffix(".png"), lambda part: plot(found, part), say)
    return kept


def _replace(path: Path, write: Callable[[Path], object], say: Notify) -> Path | None:
    try:
        with whole_file(path) as part:
            write(part)
            kept = keep_older_file(path, say)
    except OSError as error:
        raise RunFailed(f"{path} can't be written ({error.strerror or error})") from error
    say(f"wrote {path}")
    return kept
