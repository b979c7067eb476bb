"""``nbody bench``: how fast, and how exact, this machine computes gravity."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

Numbers = Annotated[
    list[int] | None,
    typer.Option(help="Numbers of particles, such as 1024 20480 (where none are given: 1024 4096 10240 20480, "
                 "and on a GPU 65536 262144).", show_default=False),
]  # fmt: skip
Names = list[str] | None


def bench(
    cpu: Annotated[bool, typer.Option("--cpu", help="Measure the CPU's engines.")] = False,
    gpu: Annotated[bool, typer.Option("--gpu", help="Measure the GPU's engines.")] = False,
    particles: Numbers = None,
    engines: Annotated[
        Names, typer.Option(help="Only these engines, beside the cpu engine.", show_default=False)
    ] = None,
    precision: Annotated[
        Names, typer.Option(help="Only these of float32, mixed and float64.", show_default=False)
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder of bench.json and bench.png, or a file's name.")
    ] = Path("output"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object, no table.")] = False,
    readme: Annotated[
        Path | None, typer.Option(help="Also write the table into this Markdown file, between its markers "
                                  "<!-- bench:begin --> and <!-- bench:end -->.", show_default=False)
    ] = None,
    reports: Annotated[
        list[Path] | None, typer.Option("--from", help="Show these earlier reports (bench.json) instead of measuring.",
                                        show_default=False)
    ] = None,
) -> int:  # fmt: skip
    """Measure every force engine that this machine has.

    Each result is checked against float64 sums before it is timed. Without
    --cpu and --gpu, whatever there is gets measured. The cpu engine always
    takes part: the speed-ups refer to it. A table goes to standard output,
    bench.json and a picture, bench.png, to the output folder; earlier ones
    are replaced.

    Examples:

      nbody bench

      nbody bench --cpu --particles 1024 20480 --precision float32

      nbody bench --gpu --engines gpu-global gpu-tiled --output output/tiles

      nbody bench --json > speed.json

      nbody bench --from laptop.json h200.json --readme README.md
    """
    from nbody.bench import report
    from nbody.bench.readme import rewrite
    from nbody.errors import InputError

    if reports and as_json and len(reports) > 1:
        raise InputError("--json prints one report, and --from names several; leave one of the two out")
    if reports:
        found = [report.load(path) for path in reports]
    else:
        found = [_measured(cpu, gpu, particles or [], engines or [], precision or [], output)]
    for each in found:
        _show(each, as_json)
    if readme is not None:
        rewrite(readme, found)
        _say(f"the table in {readme} is now this report's")
    wrong = [row for each in found for row in each["rows"] if row.get("wrong")]
    for row in wrong:
        _say(f"error: {row['name']} {row['precision']}, N = {row['particles']}: {row['note']}")
    return 1 if wrong else 0


def _measured(cpu: bool, gpu: bool, particles: list[int], engines: Names, precision: Names, output: Path) -> Any:
    """Measure, write the files, and return the report."""
    from nbody.bench import selection
    from nbody.bench.forces import measure
    from nbody.bench.output import Output
    from nbody.bench.report import report

    counts = selection.check_counts(particles)
    precisions = selection.check_precisions(precision or [])
    on = selection.backends(cpu, gpu)
    counts = counts or [*selection.COUNTS, *(selection.GPU_COUNTS if "gpu" in on else ())]
    taking_part = selection.contestants(engines or [], precisions, on, max(counts))
    others, absent = selection.peers(precisions, on) if not engines else ([], [])
    for line in absent:
        _say(line)
    files = Output.at(output)
    if (load := os.getloadavg()[0]) > 0.5:
        _say(f"other programs kept {load:.1f} cores busy in the last minute; times on the CPU are better taken alone")
    with _status() as notify:
        rows = measure([*taking_part, *others], counts, notify)
        notify("drawing")
        found = report(rows)
        replaced = files.replaced()
        files.write(found)
    for path in (files.report, files.picture):
        _say(f"wrote {path}" + (", in place of an earlier one" if path in replaced else ""))
    return found


def _show(found: Any, as_json: bool) -> None:
    """The report on standard output."""
    if as_json:
        print(json.dumps(found))
        return
    from rich.console import Console

    from nbody.bench.report import TABLE_WIDTH, force_table

    console = Console(highlight=False)
    console.width = max(console.width, TABLE_WIDTH)
    console.print(force_table(found))


@contextmanager
def _status() -> Iterator[Callable[[str], None]]:
    """One line on standard error that says what is being measured, where that is a terminal. (No spinner: its thread
    would compete with what is timed.)"""
    shown = sys.stderr.isatty()

    def notify(line: str) -> None:
        if shown:
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    try:
        yield notify
    finally:
        notify("")


def _say(line: str) -> None:
    print(line, file=sys.stderr)
