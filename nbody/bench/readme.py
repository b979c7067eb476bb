"""Writes the tables in the README files from reports, so that no table is written by hand."""

import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from nbody import machine
from nbody.bench import tables as tables_of
from nbody.bench.report import Report
from nbody.errors import InputError, not_written
from nbody.whole_file import whole_file


def markers(name: str) -> tuple[str, str]:
    """The lines before and after a table."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def pages() -> list[Path]:
    """The README files: the front page, and those of the rooms."""
    front = [path for path in [machine.ROOT / "README.md"] if path.exists()]
    return front + sorted(machine.ROOT.glob("nbody/*/README.md"))


TableSlot = tuple[Path, "re.Pattern[str]", str, Callable[[Report], str]]
"""The file of a table, the pattern that matches it, its name, and the function that makes its Markdown."""


def table_slots(suites: Iterable[str]) -> list[TableSlot]:
    """Where these suites' tables are in the README files.

    Raises:
        InputError: no README has a place for one of them.
    """
    tables = {name: table for suite in suites for name, table in tables_of(suite).PAGES.items()}
    patterns = {name: re.compile("(?<={})\n.*?(?={})".format(*markers(name)), re.DOTALL) for name in tables}
    found = [
        (path, patterns[name], name, table)
        for path in pages()
        for name, table in tables.items()
        if patterns[name].search(path.read_text(encoding="utf-8"))
    ]
    if not found:
        requested = " or ".join(markers(name)[0] for name in tables) or "a table of this report"
        raise InputError(f"--readme: no README.md in {machine.ROOT} has a place for {requested}; measure in a checkout")
    return found


def rewrite(reports: Sequence[Report]) -> list[Path]:
    """Write the tables of the reports, one after the other, into the README files; returns the files that were written. A
    table without rows keeps its old content.

    Raises:
        InputError: no README has a place for them, or the reports have no rows for one.
        RunFailed: a file can't be written; it keeps its old content.
    """
    written: dict[Path, None] = {}
    for path, pattern, name, table in table_slots(dict.fromkeys(suite for report in reports for suite in report.suites)):
        own = [report for report in reports if any(name in tables_of(suite).PAGES for suite in report.suites)]
        tables = "\n\n".join(filter(None, map(table, own)))
        if not tables:
            continue
        try:
            with whole_file(path.resolve()) as new:
                text = path.read_text(encoding="utf-8")
                new.write_text(pattern.sub(lambda _: f"\n{tables}\n", text), encoding="utf-8")  # noqa: B023
                shutil.copymode(path, new)
        except OSError as error:
            raise not_written(path, error, "it is as it was") from None
        written[path] = None
    if not written:
        raise InputError("--readme: no table is made of what these reports measured; measure with 'nbody bench'")
    return list(written)
