"""The README's tables, written from reports and never by hand."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from nbody.bench.output import draft
from nbody.bench.report import Report
from nbody.errors import InputError, RunFailed
from nbody.scenario.source import open_regular


def markers(suite: str) -> tuple[str, str]:
    """The lines between which a suite's tables stand."""
    return f"<!-- {suite}:begin -->", f"<!-- {suite}:end -->"


def around(path: Path, suite: str) -> tuple[str, str]:
    """A Markdown file's text before and after the place of a suite's tables (better asked before the measuring).

    Raises:
        InputError: the file can't be read or written, or does not have each marker once, in order.
    """
    try:
        with open_regular(path, "--readme: ") as file:
            text = file.read().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: can't be read ({getattr(error, 'strerror', error)}); check the path") from None
    if not os.access(path, os.W_OK):
        raise InputError(f"--readme: {path} can't be written; check its permissions")
    begin, end = markers(suite)
    if not (text.count(begin) == text.count(end) == 1 and text.index(begin) < text.index(end)):
        raise InputError(f"{path}: the table's place must be marked by a line {begin} and, below it, a line {end}")
    return text.split(begin)[0], text.split(end)[1]


def rewrite(path: Path, reports: Sequence[Report], suite: str, markdown: Callable[[Report], str]) -> None:
    """Put the reports' tables, as ``markdown`` makes them, between the markers of a suite in a Markdown file, and leave
    the rest of it alone.

    Raises:
        InputError: the file can't be read, or does not have each marker once, in order; or what ``markdown`` raises.
        RunFailed: the file can't be written. In each case it is as it was.
    """
    begin, end = markers(suite)
    before, after = around(path, suite)
    tables = "\n\n".join(map(markdown, reports))
    try:
        with draft(path.resolve()) as part:  # behind a link, the file keeps its place
            part.write_text(f"{before}{begin}\n{tables}\n{end}{after}", encoding="utf-8")
            shutil.copymode(path, part)
    except OSError as error:
        raise RunFailed(f"{path} can't be written ({error.strerror or error}); it is as it was") from None
