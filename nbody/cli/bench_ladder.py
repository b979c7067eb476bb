"""``nbody bench --matmul``: the ladder of matrix products, measured, or one of its rungs explained."""

import json
from pathlib import Path

from nbody.bench.output import Output
from nbody.bench.reading import load
from nbody.bench.report import Report, report
from nbody.cli.bench_report import Kept, exit_code, keep, measuring, print_tables, rewritten
from nbody.cli.progress import say


def ladder(
    sizes: list[int],
    precision: list[str],
    rungs: list[str],
    explain: str | None,
    output: Path,
    as_json: bool,
    readme: Path | None,
    reports: list[Path],
) -> int:
    """What ``nbody bench --matmul`` does with its options; returns the exit code, 1 if a product was wrong."""
    from nbody.bench.ladder.tables import ladder_rows, markdown

    if explain is not None:
        return _explain(explain, as_json)
    kept = [Kept(load(path)) for path in reports] if reports else [_measured(sizes, precision, rungs, output)]
    found = [each.report for each in kept]
    rows = [row for each in found for row in ladder_rows(each)]
    for each in found:
        _show(each, as_json)
    unwritten = [each.unwritten for each in kept]
    unwritten += [rewritten(readme, found, "matmul", markdown, "the table of the ladder")]
    wrong = [f"{row['name']} {row['precision']}, n = {row['size']}: {row['note']}" for row in rows if row["wrong"]]
    return exit_code(wrong, unwritten)


def _explain(name: str, as_json: bool) -> int:
    from nbody.bench.ladder.suite import check_rung
    from nbody.linalg.explain import explain

    check_rung(name, "--explain: ")
    text = explain(name)
    print(json.dumps({"rung": name, "text": text}) if as_json else text)
    return 0


def _measured(sizes: list[int], precision: list[str], rungs: list[str], output: Path) -> Kept:
    """Measure, and write the files."""
    from nbody.bench.ladder import cublas, suite
    from nbody.bench.ladder.plot import plot_ladder

    with measuring() as notify:
        sizes, precision = sizes or [*suite.SIZES], precision or [*suite.PRECISIONS]
        suite.check(sizes, precision, rungs)
        files = Output.at(output, "matmul")
        library, reason = cublas.rival()
        if library is None:
            say(f"cuBLAS does not take part: {reason}")
        for line in suite.left_out(sizes, rungs):
            say(line)
        found = report(suite.run_suite(sizes, precision, rungs, notify))
        found["machine"] |= {"cublas": library and library.version, "no_cublas": reason}
    return keep(found, files, plot_ladder)


def _show(found: Report, as_json: bool) -> None:
    """The report on standard output."""
    if as_json:
        print(json.dumps(found))
        return
    from nbody.bench.ladder.tables import ladder_tables

    print_tables(ladder_tables(found))
