"""``nbody bench``: forces, measured, or held against what the card allows at most."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from nbody.bench.report import Report


@dataclass(frozen=True)
class Wanted:
    """What is to be measured: the options of ``nbody bench``. What names none means all."""

    cpu: bool
    gpu: bool
    roofline: bool
    particles: list[int]
    engines: list[str]
    precision: list[str]


def forces(
    wanted: Wanted, output: Path, as_json: bool, readme: Path | None, compare: Path | None, reports: list[Path]
) -> int:
    """What ``nbody bench`` does with its options; returns the exit code, 1 if a force was wrong."""
    from nbody.bench import report
    from nbody.bench.forces.tables import markdown
    from nbody.bench.readme import rewrite
    from nbody.cli.progress import say
    from nbody.errors import InputError

    if compare and len(reports) > 1:
        raise InputError("--compare compares one report, and --from names several; leave one of the two out")
    old = report.load(compare) if compare else None  # before a new one takes its place
    if old and not wanted.particles:
        counts = sorted({n for row in old["rows"] if type(n := row.get("particles")) is int and n > 0})
        wanted = replace(wanted, particles=counts)
    if reports:
        found = [report.load(path) for path in reports]
    else:
        new, compare = (_roofline if wanted.roofline else _measured)(wanted, output, compare)
        found = [new]
    for each in found:
        _show(each, as_json, old, str(compare))
    if readme is not None:
        rewrite(readme, found, "bench", markdown)
        say(f"the table in {readme} is now this report's")
    wrong = [row for each in found for row in each["rows"] if row.get("wrong")]
    for row in wrong:
        say(f"error: {row['name']} {row['precision']}, N = {row['particles']}: {row['note']}")
    return 1 if wrong else 0


def _measured(wanted: Wanted, output: Path, compared: Path | None) -> tuple[Report, Path | None]:
    """Measure, write the files, and return the report, and where the one that it is compared with is now."""
    from nbody.bench.forces import selection
    from nbody.bench.forces.plot import plot_forces
    from nbody.bench.forces.suite import measure
    from nbody.bench.output import Output
    from nbody.bench.report import report
    from nbody.cli.bench_report import aside, keep
    from nbody.cli.progress import say, status_line

    counts, precisions = selection.check_counts(wanted.particles), selection.check_precisions(wanted.precision)
    on = selection.backends(wanted.cpu, wanted.gpu)
    counts = counts or [*selection.COUNTS, *(selection.GPU_COUNTS if "gpu" in on else ())]
    taking_part = selection.contestants(wanted.engines, precisions, on, max(counts))
    others, absent = selection.peers(precisions, on) if not wanted.engines else ([], [])
    for line in absent:
        say(line)
    files = Output.at(output)
    compared = aside(compared, files)
    _warn_of_load()
    with status_line() as notify:
        rows = measure([*taking_part, *others], counts, notify)
        notify("drawing")
        return keep(report(rows), files, plot_forces), compared


def _roofline(wanted: Wanted, output: Path, compared: Path | None) -> tuple[Report, Path | None]:
    """The same for the roofline and the lecture's table."""
    from nbody.bench.card import require_gpu
    from nbody.bench.forces import selection
    from nbody.bench.output import Output
    from nbody.bench.roofline import suite
    from nbody.bench.roofline.plot import plot_roofline
    from nbody.cli.bench_report import aside, keep
    from nbody.cli.progress import say, status_line
    from nbody.errors import InputError

    if wanted.cpu:
        raise InputError("--roofline holds the GPU's engines against their bounds; leave --cpu out")
    counts, precisions = selection.check_counts(wanted.particles), selection.check_precisions(wanted.precision)
    require_gpu("--roofline")
    counts = counts or list(suite.COUNTS)
    taking_part = selection.contestants(wanted.engines, precisions, ("gpu",), max(counts))
    others, absent = selection.gpu_peers(precisions) if not wanted.engines else ([], [])
    if absent:
        say(f"not beside them: {', '.join(absent)}")
    files = Output.at(output, "roofline")
    compared = aside(compared, files)
    _warn_of_load()
    with status_line() as notify:
        found = suite.run_suite(taking_part, others, counts, notify) | {"absent": absent}
        notify("drawing")
        return keep(found, files, plot_roofline), compared


def _warn_of_load() -> None:
    from nbody.cli.progress import say

    if (load := os.getloadavg()[0]) > 0.5:
        say(f"other programs kept {load:.1f} cores busy in the last minute; times on the CPU are better taken alone")


def _show(found: Report, as_json: bool, old: Report | None, path: str) -> None:
    """The report on standard output, and what became of an old one."""
    from nbody.bench.compare import compare, comparison_table
    from nbody.bench.tables import tables
    from nbody.cli.bench_report import print_tables

    compared = compare(old, found) if old else None
    if as_json:
        print(json.dumps(found | {"comparison": compared.plain() | {"with": path}} if compared else found))
        return
    print_tables([*tables(found), *([comparison_table(compared, path)] if compared else [])])
