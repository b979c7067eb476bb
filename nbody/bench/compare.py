"""Two reports side by side: how much faster each row became, and which became slower by more than noise."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from nbody.bench.report import Report, machine_line, ratio
from nbody.units import duration

IDENTITY = ("suite", "name", "precision", "particles", "m", "n", "k", "threads")
"""What two rows have in common if they measure the same thing, where they have it at all."""

NOISE = {"forces cpu": 0.10, "lecture cpu": 0.25, "lecture gpu": 0.15}
"""By how much the same program's times may differ between two runs, as a part, by suite and backend, where the host's
clock counts. Between two sessions on one 16-core machine with an H200, runs of the lecture on one core differed by 22 %,
on the card by up to 12 %."""

QUIET = 0.05
"""The same for the device's own clock: 3.7 % at N = 1024, 1.5 % at 4096, 0.2 % from 20480 on, on that machine."""

SLOWER, FASTER, SAME = "slower", "faster", ""


@dataclass(frozen=True)
class Compared:
    """A row that both reports have.

    Attributes:
        ratio: speed now over speed then: more than 1 is faster.
        noise: the part by which they differ without a cause.
        verdict: ``slower`` or ``faster`` by more than noise, or empty.
    """

    suite: str
    name: str
    precision: str
    particles: int | None
    old_seconds: float
    new_seconds: float
    ratio: float
    noise: float
    verdict: str

    @classmethod
    def of(cls, old: dict[str, Any], new: dict[str, Any]) -> "Compared":
        """Two rows of the same identity, both timed."""
        floor = NOISE.get(f"{new.get('suite')} {new.get('backend')}", QUIET)
        noise = max(floor, *(row.get("spread") or 0.0 for row in (old, new)))
        speed = old["seconds"] / new["seconds"]
        verdict = SLOWER if speed < 1 - noise else FASTER if speed > 1 / (1 - noise) else SAME
        return cls(
            new.get("suite", ""), new.get("name", ""), new.get("precision", ""), new.get("particles", new.get("n")),
            old["seconds"], new["seconds"], speed, noise, verdict,
        )  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """What became of an old report.

    Attributes:
        rows: those that both have, with a time each.
        only_old, only_new: how many rows only one of them has a time for.
        elsewhere: the old report's machine, if it was another; else empty.
    """

    rows: list[Compared]
    only_old: int
    only_new: int
    elsewhere: str

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def compare(old: Report, new: Report) -> Comparison:
    """Match the rows of two reports."""
    then, now = dict(_timed(old)), dict(_timed(new))
    both = [Compared.of(then[key], row) for key, row in now.items() if key in then]
    machines = [machine_line(report["machine"]) for report in (old, new)]
    return Comparison(
        both, len(then) - len(both), len(now) - len(both), machines[0] if machines[0] != machines[1] else ""
    )


def _timed(found: Report) -> Iterator[tuple[tuple, dict[str, Any]]]:
    for row in found["rows"]:
        if isinstance(row.get("seconds"), int | float) and row["seconds"] > 0:
            yield tuple(row.get(key) for key in IDENTITY), row


def comparison_table(found: Comparison, path: str) -> Any:
    """A rich table of a comparison with the report in a file."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    slower = sum(row.verdict == SLOWER for row in found.rows)
    caption = [
        f"New/old: speeds, more than 1 is faster. {slower} of {len(found.rows)} rows became slower by more than noise."
    ]
    if found.only_old or found.only_new:
        caption.append(f"Not compared: {found.only_old} rows only in {path}, {found.only_new} only in the new report.")
    if found.elsewhere:
        caption.append(f"{path} was measured elsewhere: on {found.elsewhere}.")
    table = Table(
        title=f"Compared with {path}", caption="\n".join(caption), caption_justify="left", title_justify="left",
        box=SIMPLE_HEAD, padding=0,
    )  # fmt: skip
    for heading in ("N", "suite", "engine", "precision", "old", "new", "new/old", "noise", ""):
        left = heading in ("suite", "engine", "precision", "")
        table.add_column(heading, justify="left" if left else "right")
    for row in found.rows:
        table.add_row(
            str(row.particles), row.suite, row.name, row.precision, duration(row.old_seconds),
            duration(row.new_seconds), ratio(row.ratio), f"{100 * row.noise:.0f} %", row.verdict,
            style="red" if row.verdict == SLOWER else None,
        )  # fmt: skip
    return table
