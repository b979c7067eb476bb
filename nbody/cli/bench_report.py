"""What ``nbody bench`` does with a report of any suite: its files, its tables on the terminal, and how it ends."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from nbody.bench.output import Output
from nbody.bench.readme import rewrite
from nbody.bench.report import Report
from nbody.cli.progress import say, status_line
from nbody.errors import RunFailed
from nbody.trajectory.output_path import keep_older_file

WIDTH = 132
"""Columns that the widest table takes."""


class Kept(NamedTuple):
    """A report, why a file of it could not be written (empty if none failed), and where the report is now that it is
    compared with."""

    report: Report
    unwritten: str = ""
    compared: Path | None = None


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM in this block is Ctrl-C: drafts are removed, and a line says what was written."""
    if threading.current_thread() is not threading.main_thread():  # there Python forbids handlers
        yield
        return
    earlier = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


@contextmanager
def measuring() -> Iterator[Callable[[str], None]]:
    """The status line of all that comes before a file is written; an interrupt in this block says so."""
    try:
        with status_line() as notify:
            yield notify
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; nothing was written") from None


def keep(found: Report, files: Output, draw: Callable, compared: Path | None = None) -> Kept:
    """Write a report's files, and say so. What can't be written is for :func:`exit_code` to tell, below the table: all
    was measured. If the report ``compared`` stands where this one goes, it gets a numbered name first."""
    replaced, written = files.replaced(), list[Path]()
    unwritten = ""
    try:
        if compared and files.report in replaced and files.report.samefile(compared):
            compared = keep_older_file(files.report, say)
            replaced.remove(files.report)
        with status_line() as notify:
            notify("drawing")
            files.write(found, draw, written.append)
    except RunFailed as error:
        unwritten = str(error)
    except OSError as error:
        unwritten = f"{files.report} can't be kept ({error.strerror or error}); the figures above are all there is"
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {written[0] if written else 'nothing'} was written") from None
    for path in written:
        say(f"wrote {path}" + (", in place of an earlier one" if path in replaced else ""))
    return Kept(found, unwritten, compared)


def rewritten(readme: Path | None, found: Sequence[Report], suite: str, markdown: Callable, what: str) -> str:
    """Write a suite's tables into the README, if there is one, and say so; why that could not be done, or nothing."""
    if readme is None:
        return ""
    try:
        rewrite(readme, found, suite, markdown)
    except RunFailed as error:
        return str(error)
    say(f"{what} in {readme} is now this report's")
    return ""


def exit_code(wrong: Sequence[str], unwritten: Sequence[str]) -> int:
    """1 after a line on each row that is wrong, and on each file that could not be written; 0 where there is neither."""
    lines = [*wrong, *filter(None, unwritten)]
    for line in lines:
        say(f"error: {line}")
    return 1 if lines else 0


def print_tables(tables: Iterable[Any]) -> None:
    """Rich tables on standard output, :data:`WIDTH` columns wide at least: a narrow terminal folds lines, and cuts no
    number."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)  # a "[" in a processor's name is a "["
    console.width = max(console.width, WIDTH)
    for table in tables:
        console.print(table)
