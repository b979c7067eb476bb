"""The tables in the README files, written from reports and never by hand."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from nbody import machine
from nbody.bench import part
from nbody.bench.output import draft
from nbody.bench.report import Report
from nbody.errors import InputError, RunFailed


def markers(name: str) -> tuple[str, str]:
    """The lines between which a table stands."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def pages() -> list[Path]:
    """The README files: the front page, and those of the rooms."""
    return [
        path for path in (machine.ROOT / "README.md", *sorted(machine.ROOT.glob("nbody/*/README.md"))) if path.exists()
    ]


def places(suites: Iterable[str]) -> list[tuple[Path, str, Callable[[Report], str]]]:
    """The file, the marker and the Markdown of each table of some suites.

    Raises:
        InputError: no README has a place for one of them.
    """
    tables = {name: table for suite in suites for name, table in part(suite, "tables").PAGES.items()}
    texts = {path: path.read_text(encoding="utf-8") for path in pages()}
    found = [
        (path, name, table)
        for path, text in texts.items()
        for name, table in tables.items()
        if all(text.count(marker) == 1 for marker in markers(name))
    ]
    if not found:
        wanted = " or ".join(markers(name)[0] for name in tables) or "a table of this report"
        raise InputError(f"--readme: no README.md in {machine.ROOT} has a place for {wanted}; measure in a checkout")
    return found


def rewrite(reports: Sequence[Report]) -> list[Path]:
    """Put the tables of the reports, one after the other, into the README files; returns those that were written.

    Raises:
        InputError: no README has a place for them.
        RunFailed: a file can't be written; it is as it was.
    """
    suites = dict.fromkeys(suite for report in reports for suite in report.suites)
    found = places(suites)
    for path, name, table in found:
        begin, end = markers(name)
        text = path.read_text(encoding="utf-8")
        own = [report for report in reports if any(name in part(suite, "tables").PAGES for suite in report.suites)]
        tables = "\n\n".join(map(table, own))
        try:
            with draft(path.resolve()) as new:
                new.write_text(f"{text.split(begin)[0]}{begin}\n{tables}\n{end}{text.split(end)[1]}", encoding="utf-8")
                shutil.copymode(path, new)
        except OSError as error:
            raise RunFailed(f"{path} can't be written ({error.strerror or error}); it is as it was") from None
    return list(dict.fromkeys(path for path, _, _ in found))
