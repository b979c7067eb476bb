"""Writes a benchmark's files: a report (JSON) and a picture (PNG) beside it."""

from collections.abc import Callable
from pathlib import Path

from nbody.bench import Notify
from nbody.bench.report import Report
from nbody.output_file import FileKind, as_input_error, checked_path, new_file

REPORT = FileKind("report", "--output: ", "name another folder", b"", "bench.json")


def report_path(output: Path, stem: str) -> Path:
    """The report's file: ``output`` if it ends in .json, else ``stem``.json in the folder ``output``, which is created.

    Raises:
        InputError: the folder can't be created or written to. (Call this before measuring.)
    """
    path = output if output.suffix == ".json" else output / f"{stem}.json"
    with as_input_error(path.parent, REPORT):
        path.parent.mkdir(parents=True, exist_ok=True)
    checked_path(path, REPORT)
    return path


def write(found: Report, path: Path, plot: Callable[[Report, Path], None], notify: Notify) -> None:
    """Write the report and draw its picture. Older files keep a numbered name.

    Raises:
        RunFailed: the disk is full. A file that can't be written keeps its old content.
        InputError: the folder is gone.
    """
    writers: dict[str, Callable[[Path], object]] = {
        path.suffix: lambda part: part.write_text(found.json(indent=1) + "\n", encoding="utf-8"),
        ".png": lambda part: plot(found, part),
    }
    for suffix, writer in writers.items():
        file = path.with_suffix(suffix)
        with new_file(file, REPORT, False, notify) as part:
            writer(part)
        notify(f"wrote {file}")
