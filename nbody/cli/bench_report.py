"""What ``nbody bench`` does with a report of either suite: its files, and its tables on the terminal."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from nbody.bench.output import Output
from nbody.bench.report import Report
from nbody.cli.progress import say
from nbody.trajectory import place

WIDTH = 132
"""Columns that the widest table takes."""


def aside(compared: Path | None, files: Output) -> Path | None:
    """Where the report to compare with is to be found later: under a numbered name if a new one will take its place."""
    if compared and files.report.exists() and files.report.samefile(compared):
        return place.keep(files.report, say)
    return compared


def keep(found: Report, files: Output, draw: Callable) -> Report:
    """The report, once its files are written."""
    replaced = files.replaced()
    files.write(found, draw)
    for path in (files.report, files.picture):
        say(f"wrote {path}" + (", in place of an earlier one" if path in replaced else ""))
    return found


def print_tables(tables: Iterable[Any]) -> None:
    """Rich tables on standard output, :data:`WIDTH` columns wide at least: a narrow terminal folds lines, and cuts no
    number."""
    from rich.console import Console

    console = Console(highlight=False)
    console.width = max(console.width, WIDTH)
    for table in tables:
        console.print(table)
