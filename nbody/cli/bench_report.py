"""What ``nbody bench`` does with any suite: measure, write the files, print the tables, and end."""

import json
import os
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbody.bench import SUITES, part
from nbody.cli.progress import status_line
from nbody.cli.streams import print_message, result, result_json, styled
from nbody.errors import RunFailed

if TYPE_CHECKING:
    from nbody.bench.compare import Comparison
    from nbody.bench.report import Report

WIDTH = 132
"""Columns that the widest table takes."""


def measured(
    suite: str, requested: dict[str, Any], output: Path, readme: bool = False
) -> tuple[list["Report"], list[str], Path | None]:
    """Measure a suite and write its files. Returns the report, why a file of it could not be written, and the numbered
    name of an earlier report."""
    from nbody.bench.output import report_path, write
    from nbody.bench.plot import plot
    from nbody.bench.readme import table_slots

    work = SUITES.load(suite)(print_message, **{name: value for name, value in requested.items() if value is not None})
    path = report_path(output, "bench" if suite == next(iter(SUITES)) else suite)
    if readme:
        table_slots([suite])  # before the measuring, not after
    if (load := os.getloadavg()[0]) > 0.5:
        print_message(
            f"other programs kept {load:.1f} cores busy in the last minute; times on the CPU are better taken alone"
        )
    try:
        with status_line() as notify:
            found = work(notify)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; nothing was written") from None
    try:
        return [found], [], write(found, path, plot, print_message)
    except RunFailed as error:
        return [found], [f"{error}; the figures are above"], None


def finish(
    reports: Sequence["Report"], failed: Sequence[str], as_json: bool, readme: bool = False,
    comparison: "Comparison | None" = None,
) -> int:  # fmt: skip
    """Print the reports, write the README files if that is asked for, and return the exit code: 1 after a line on each
    row that is wrong, and on each file that could not be written."""
    from nbody.bench.readme import rewrite

    for report in reports if as_json else ():
        compared = {"comparison": comparison.plain()} if comparison else {}
        result_json(json.loads(report.json()) | compared)
    if not as_json:
        sheets = [
            sheet for report in reports for suite in report.suites for sheet in part(suite, "tables").sheets(report)
        ]
        _print([*sheets, *([comparison.sheet()] if comparison else [])])
    failed = [*(f"{row.what}: {row.note}" for report in reports for row in report.rows if row.wrong), *failed]
    try:
        for path in rewrite(reports) if readme else ():
            print_message(f"the tables in {path} are now those of this report")
    except RunFailed as error:
        failed.append(str(error))
    for line in failed:
        print_message(f"error: {line}")
    return 1 if failed else 0


def explained(words: Sequence[str], as_json: bool) -> int:
    """Print what rungs are, and what their kernels need of a card."""
    from nbody.lessons.ladder.explain import explain
    from nbody.lessons.ladder.suite import check_rung

    names = [name for word in words for name in word.split(",") if name]
    for name in names:
        check_rung(name, "--explain: ")
    found = [{"rung": name, "text": explain(name)} for name in names]
    if as_json:
        result_json(found[0] if len(found) == 1 else {"rungs": found})
    else:
        result("\n\n".join(each["text"] for each in found))
    return 0


def _print(sheets: Sequence[Any]) -> None:
    """Tables on standard output, :data:`WIDTH` columns wide at least: a narrow terminal folds lines, and cuts no number.
    (Rich itself would end a closed pipe with exit code 1.)"""
    from rich.console import Console

    terminal = Console()
    text = StringIO()
    console = Console(
        file=text, highlight=False, markup=False, emoji=False, force_terminal=terminal.is_terminal,
        width=max(terminal.width, WIDTH),
    )  # fmt: skip
    for sheet in sheets:
        console.print(sheet.on_terminal())
    styled(text.getvalue())
