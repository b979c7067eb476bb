"""Compares two reports: the speed-up of each row, and which rows became slower by more than noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from nbody.bench import SUITES, Notify
from nbody.bench.columns import Sheet, TableColumn, columns, per_cent, three
from nbody.bench.report import Report
from nbody.bench.row import Row
from nbody.errors import InputError
from nbody.number_format import duration

IDENTITY = (
    "suite", "name", "precision", "particles", "m", "n", "k", "threads", "problem", "backend", "setting", "gpus",
)  # fmt: skip
"""What is equal (where it exists) in two rows that measure the same thing."""

DEVICE, HOST = 0.05, 0.10
"""The relative noise of times by the device's and by the host's clock. (Between two sessions on one machine with an H200:
3.7 % at N = 1024, 1.5 % at 4096, 0.2 % from 20480 on.)"""

OF_RUNS = {"cpu": 0.25, "gpu": 0.15}
"""The noise of whole runs: on that machine 22 % on one core, 12 % on the card."""


class Compared(NamedTuple):
    """A row that both reports have. ``ratio`` is the new speed over the old one, and ``noise`` the relative difference that
    chance explains. ``verdict`` is ``slower`` or ``faster`` if the speeds differ by more than the noise, else empty."""

    suite: Annotated[str, TableColumn("suite", left=True)]
    name: Annotated[str, TableColumn("name", left=True)]
    precision: Annotated[str, TableColumn("precision", left=True)]
    particles: Annotated[int | None, TableColumn("N")]
    old_seconds: Annotated[float, TableColumn("old", duration)]
    new_seconds: Annotated[float, TableColumn("new", duration)]
    ratio: Annotated[float, TableColumn("new/old", three)]
    noise: Annotated[float, TableColumn("noise", per_cent)]
    verdict: Annotated[str, TableColumn("", left=True)]

    @property
    def slower(self) -> bool:
        return self.verdict == "slower"


def compared(old: Row, new: Row) -> Compared:
    """Compare two rows with the same identity, which both have a time."""
    assert old.seconds and new.seconds
    usual = DEVICE if new.clock == "device" else OF_RUNS.get(new.backend, HOST) if new.whole_run else HOST
    noise = max(usual, old.spread or 0.0, new.spread or 0.0)
    speed = old.seconds / new.seconds
    verdict = "slower" if speed < 1 - noise else "faster" if speed > 1 / (1 - noise) else ""
    count = getattr(new, "n", new.particles)
    return Compared(new.suite, new.name, new.precision, count, old.seconds, new.seconds, speed, noise, verdict)


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison: the common rows, the number of timed rows that only one report has, and the old report's
    machine if it differs. ``path`` is the old report's file."""

    rows: Sequence[Compared]
    only_old: int
    only_new: int
    elsewhere: str
    path: str

    def plain(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        known = vars(self) | {"rows": [row._asdict() for row in self.rows]}
        return known | {"with": known.pop("path")}

    def sheet(self) -> Sheet:
        """The table for the terminal."""
        slower = sum(row.slower for row in self.rows)
        about = f"New/old: speeds, more than 1 is faster. {slower} of {len(self.rows)} rows became slower by more than "
        about += "noise."
        if self.only_old or self.only_new:
            about += f"\nNot compared: {self.only_old} rows only in {self.path}, {self.only_new} only in the new report."
        if self.elsewhere:
            about += f"\n{self.path} was measured elsewhere: on {self.elsewhere}."
        return Sheet(f"Compared with {self.path}", about, COLUMNS, self.rows, red="slower")


COLUMNS = columns(Compared, "particles suite name precision old_seconds new_seconds ratio noise verdict")


def compare(old: Report, new: Report, path: str) -> Comparison:
    """Compare an older report, read from ``path``, with a new one. Raises InputError if they have no suite in
    common."""
    if not set(old.suites) & set(new.suites):
        has, wants = (" and ".join(report.suites) or "no rows" for report in (old, new))
        raise InputError(f"nothing to compare: {path} has {has}, the other report {wants}")
    then, now = (
        {tuple(getattr(row, key, None) for key in IDENTITY): row for row in report.rows if row.seconds}
        for report in (old, new)
    )
    both = [compared(then[key], row) for key, row in now.items() if key in then]
    elsewhere = old.device if old.device != new.device else ""
    return Comparison(both, len(then) - len(both), len(now) - len(both), elsewhere, path)


def again(old: Report, path: str, notify: Notify) -> tuple[str, dict[str, Any]]:
    """The suite of an older report, and the options that measure the same again; of an earlier version's, which has no
    options, none. Raises InputError if there is nothing to measure."""
    if old.suite:
        return SUITES.check(old.suite, f"{path}: "), old.options
    if not old.suites:
        raise InputError(f"{path} has no rows, and nothing to compare with; name another report")
    notify(f"{path}: an earlier version wrote it, without its options; '{old.suites[0]}' is measured with the usual ones")
    return old.suites[0], {}
