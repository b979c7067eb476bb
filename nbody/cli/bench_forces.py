"""``nbody bench``: forces, measured, or held against what the card allows at most."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from nbody.bench.output import Output
from nbody.bench.reading import load
from nbody.bench.report import Report, report
from nbody.cli.bench_report import Kept, exit_code, keep, measuring, print_tables, rewritten
from nbody.cli.progress import say
from nbody.errors import InputError

SUITES = {
    "forces": "forces",
    "roofline": "forces beside the card's bounds (--roofline)",
    "lecture": "the lecture's table (--roofline)",
    "matmul": "matrix products (--matmul)",
}
"""What a suite measures, in a few words, by the name in its rows."""


@dataclass(frozen=True)
class Wanted:
    """What is to be measured: the options of ``nbody bench``. What names none means all."""

    cpu: bool
    gpu: bool
    roofline: bool
    particles: list[int]
    engines: list[str]
    precision: list[str]

    @property
    def suite(self) -> str:
        """The suite of the rows that are measured."""
        return "roofline" if self.roofline else "forces"


def forces(
    wanted: Wanted, output: Path, as_json: bool, readme: Path | None, compare: Path | None, reports: list[Path]
) -> int:
    """What ``nbody bench`` does with its options; returns the exit code, 1 if a force was wrong."""
    from nbody.bench.forces.tables import markdown

    if compare and len(reports) > 1:
        raise InputError("--compare compares one report, and --from names several; leave one of the two out")
    old = load(compare) if compare else None  # before a new one takes its place
    if reports:
        kept = [Kept(load(path), compared=compare) for path in reports]
    if old:
        suites = {row["suite"] for row in kept[0].report["rows"]} if reports else {wanted.suite}
        _check_comparable(old, compare, suites)
    if old and not wanted.particles:
        counts = sorted({row["particles"] for row in old["rows"] if row["suite"] == wanted.suite} - {0})
        wanted = replace(wanted, particles=counts)
    if not reports:
        kept = [(_roofline if wanted.roofline else _measured)(wanted, output, compare)]
    found = [each.report for each in kept]
    for each in kept:
        _show(each.report, as_json, old, str(each.compared))
    unwritten = [each.unwritten for each in kept] + [rewritten(readme, found, "bench", markdown, "the table")]
    wrong = [row for each in found for row in each["rows"] if row.get("wrong")]
    lines = [
        f"{row['name']} {row['precision']}, N = {row.get('particles') or row.get('size')}: {row.get('note', '')}"
        for row in wrong
    ]
    return exit_code(lines, unwritten)


def _check_comparable(old: Report, path: Path | None, suites: set[str]) -> None:
    """Raise InputError if nothing in an old report measures what one of these suites does."""
    there = {row["suite"] for row in old["rows"]}
    if not there & suites:
        has, wants = (" and ".join(sorted(map(SUITES.__getitem__, each))) or "no rows" for each in (there, suites))
        raise InputError(f"--compare: {path} has {has}, and nothing to compare {wants} with; name another report")


def _measured(wanted: Wanted, output: Path, compared: Path | None) -> Kept:
    """Measure, and write the files."""
    from nbody.bench.forces import selection
    from nbody.bench.forces.plot import plot_forces
    from nbody.bench.forces.suite import measure

    with measuring() as notify:
        counts, precisions = selection.check_counts(wanted.particles), selection.check_precisions(wanted.precision)
        on = selection.backends(wanted.cpu, wanted.gpu)
        counts = counts or [*selection.COUNTS, *(selection.GPU_COUNTS if "gpu" in on else ())]
        taking_part = selection.contestants(wanted.engines, precisions, on, max(counts))
        others, absent = selection.peers(precisions, on) if not wanted.engines else ([], [])
        for line in absent:
            say(line)
        files = Output.at(output)
        _warn_of_load()
        found = report(measure([*taking_part, *others], counts, notify))
    return keep(found, files, plot_forces, compared)


def _roofline(wanted: Wanted, output: Path, compared: Path | None) -> Kept:
    """The same for the roofline and the lecture's table."""
    from nbody.bench.card import require_gpu
    from nbody.bench.forces import selection
    from nbody.bench.roofline import suite
    from nbody.bench.roofline.plot import plot_roofline

    if wanted.cpu:
        raise InputError("--roofline holds the GPU's engines against their bounds; leave --cpu out")
    with measuring() as notify:
        counts, precisions = selection.check_counts(wanted.particles), selection.check_precisions(wanted.precision)
        require_gpu("--roofline")
        counts = counts or list(suite.COUNTS)
        taking_part = selection.contestants(wanted.engines, precisions, ("gpu",), max(counts))
        others, absent = selection.gpu_peers(precisions) if not wanted.engines else ([], [])
        if absent:
            say(f"not beside them: {', '.join(absent)}")
        files = Output.at(output, "roofline")
        _warn_of_load()
        found = suite.run_suite(taking_part, others, counts, notify) | {"absent": absent}
    return keep(found, files, plot_roofline, compared)


def _warn_of_load() -> None:

    if (load := os.getloadavg()[0]) > 0.5:
        say(f"other programs kept {load:.1f} cores busy in the last minute; times on the CPU are better taken alone")


def _show(found: Report, as_json: bool, old: Report | None, path: str) -> None:
    """The report on standard output, and what became of an old one."""
    from nbody.bench.compare import compare, comparison_table
    from nbody.bench.tables import tables

    compared = compare(old, found) if old else None
    if as_json:
        print(json.dumps(found | {"comparison": compared.plain() | {"with": path}} if compared else found))
        return
    print_tables([*tables(found), *([comparison_table(compared, path)] if compared else [])])
