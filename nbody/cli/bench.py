"""``nbody bench``: how fast, and how exact, this machine computes gravity."""

import json
import os
import sys
from collections.abc import Callable
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
    roofline: Annotated[
        bool, typer.Option("--roofline", help="Hold the GPU's engines against the card's bounds and against torch, JAX "
                                              "and CuPy, where these are installed.")
    ] = False,
    matmul: Annotated[
        bool, typer.Option("--matmul", help="Measure the ladder of matrix products instead, beside cuBLAS.")
    ] = False,
    sizes: Annotated[
        list[int] | None, typer.Option(help="With --matmul: the n of its n x n matrices (512 1024 2048 4096).",
                                       show_default=False)
    ] = None,
    rungs: Annotated[Names, typer.Option(help="With --matmul: only these rungs.", show_default=False)] = None,
    explain: Annotated[
        str | None, typer.Option(help="With --matmul: say what a rung does, what its kernel takes of the card, and "
                                      "what limits it; measures nothing.", show_default=False)
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder of bench.json and bench.png (with --roofline: "
                                                  "roofline.json and .png, with --matmul: matmul.json and .png), or a "
                                                  "file's name.")
    ] = Path("output"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object, no table.")] = False,
    readme: Annotated[
        Path | None, typer.Option(help="Also write the table into this Markdown file, between its markers "
                                  "<!-- bench:begin --> and <!-- bench:end --> (with --matmul: matmul:begin, "
                                  "matmul:end).", show_default=False)
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(help="Also show how much faster each row is than in this earlier report, and which "
                                       "became slower by more than noise.", show_default=False)
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

    With --roofline each GPU engine stands beside what the card allows at
    most, by the issue slots counted in its own machine code, with its
    registers, occupancy, clock and power, its part of a whole step, and the
    lecture's table with the figures of its Tesla K40c.

    With --matmul the ladder of matrix products is measured instead, beside
    cuBLAS where its library is found; its files are matmul.json and
    matmul.png.

    Examples:

      nbody bench

      nbody bench --cpu --particles 1024 20480 --precision float32

      nbody bench --gpu --engines gpu-global gpu-tiled --output output/tiles

      nbody bench --gpu --roofline --compare output/roofline.json

      nbody bench --matmul --sizes 1024 2048 --rungs k02 k06 k17

      nbody bench --matmul --explain k06

      nbody bench --json > speed.json

      nbody bench --from laptop.json h200.json --readme README.md
    """
    from nbody.bench import report
    from nbody.bench.readme import rewrite
    from nbody.errors import InputError

    ladder_only = {"--sizes": sizes, "--rungs": rungs, "--explain": explain}
    forces_only: dict[str, Any] = {"--cpu": cpu, "--gpu": gpu, "--particles": particles, "--engines": engines}
    forces_only |= {"--roofline": roofline, "--compare": compare}
    for option, given in (forces_only if matmul else ladder_only).items():
        if given:
            raise InputError(f"{option} goes {'without' if matmul else 'with'} --matmul")
    if matmul:
        from nbody.cli.ladder import ladder

        return ladder(sizes, precision, rungs, explain, output, as_json, readme, reports)
    if reports and as_json and len(reports) > 1:
        raise InputError("--json prints one report, and --from names several; leave one of the two out")
    if compare and len(reports or []) > 1:
        raise InputError("--compare compares one report, and --from names several; leave one of the two out")
    old = report.load(compare) if compare else None  # before a new one takes its place
    if reports:
        found = [report.load(path) for path in reports]
    elif roofline:
        found = [_roofline(cpu, particles or [], engines or [], precision or [], output)]
    else:
        found = [_measured(cpu, gpu, particles or [], engines or [], precision or [], output)]
    for each in found:
        _show(each, as_json, old, str(compare))
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
    from nbody.bench.plot import plot_forces
    from nbody.bench.report import report
    from nbody.cli.progress import status_line

    counts = selection.check_counts(particles)
    precisions = selection.check_precisions(precision or [])
    on = selection.backends(cpu, gpu)
    counts = counts or [*selection.COUNTS, *(selection.GPU_COUNTS if "gpu" in on else ())]
    taking_part = selection.contestants(engines or [], precisions, on, max(counts))
    others, absent = selection.peers(precisions, on) if not engines else ([], [])
    for line in absent:
        _say(line)
    files = Output.at(output)
    _warn_of_load()
    with status_line() as notify:
        rows = measure([*taking_part, *others], counts, notify)
        notify("drawing")
        return _kept(report(rows), files, plot_forces)


def _roofline(cpu: bool, particles: list[int], engines: Names, precision: Names, output: Path) -> Any:
    """Measure the roofline and the lecture's table, write the files, and return the report."""
    from nbody.bench import roofline, selection
    from nbody.bench.output import Output
    from nbody.bench.roofline_plot import plot_roofline
    from nbody.cli.progress import status_line
    from nbody.errors import InputError

    if cpu:
        raise InputError("--roofline holds the GPU's engines against their bounds; leave --cpu out")
    counts, precisions = selection.check_counts(particles), selection.check_precisions(precision or [])
    selection.require_gpu("--roofline")
    counts = counts or list(roofline.COUNTS)
    taking_part = selection.contestants(engines or [], precisions, ("gpu",), max(counts))
    others, absent = selection.gpu_peers(precisions) if not engines else ([], [])
    if absent:
        _say(f"not beside them: {', '.join(absent)}")
    files = Output.at(output, "roofline")
    _warn_of_load()
    with status_line() as notify:
        found = roofline.run_suite(taking_part, others, counts, notify) | {"absent": absent}
        notify("drawing")
        return _kept(found, files, plot_roofline)


def _warn_of_load() -> None:
    if (load := os.getloadavg()[0]) > 0.5:
        _say(f"other programs kept {load:.1f} cores busy in the last minute; times on the CPU are better taken alone")


def _kept(found: Any, files: Any, draw: Callable) -> Any:
    """The report, once its files are written."""
    replaced = files.replaced()
    files.write(found, draw)
    for path in (files.report, files.picture):
        _say(f"wrote {path}" + (", in place of an earlier one" if path in replaced else ""))
    return found


def _show(found: Any, as_json: bool, old: Any, path: str) -> None:
    """The report on standard output, and what became of an old one."""
    from rich.console import Console

    from nbody.bench.compare import compare, comparison_table
    from nbody.bench.tables import TABLE_WIDTH, tables

    compared = compare(old, found) if old else None
    if as_json:
        print(json.dumps(found | {"comparison": compared.plain() | {"with": path}} if compared else found))
        return
    console = Console(highlight=False)
    console.width = max(console.width, TABLE_WIDTH)
    for table in tables(found):
        console.print(table)
    if compared:
        console.print(comparison_table(compared, path))


def _say(line: str) -> None:
    print(line, file=sys.stderr)
