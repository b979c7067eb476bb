"""``nbody bench --matmul``: the ladder of matrix products, measured, or one of its rungs explained."""

import json
from pathlib import Path

from nbody.bench.report import Report


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
    from nbody.bench import report
    from nbody.bench.ladder.tables import ladder_rows, markdown
    from nbody.bench.readme import rewrite
    from nbody.cli.progress import say

    if explain is not None:
        return _explain(explain, as_json)
    found = [report.load(path) for path in reports] if reports else [_measured(sizes, precision, rungs, output)]
    rows = [row for each in found for row in ladder_rows(each)]
    for each in found:
        _show(each, as_json)
    if readme is not None:
        rewrite(readme, found, "matmul", markdown)
        say(f"the table of the ladder in {readme} is now this report's")
    wrong = [row for row in rows if row["wrong"]]
    for row in wrong:
        say(f"error: {row['name']} {row['precision']}, n = {row['size']}: {row['note']}")
    return 1 if wrong else 0


def _explain(name: str, as_json: bool) -> int:
    from nbody.bench.ladder.suite import check_rung
    from nbody.linalg.explain import explain

    check_rung(name, "--explain: ")
    text = explain(name)
    print(json.dumps({"rung": name, "text": text}) if as_json else text)
    return 0


def _measured(sizes: list[int], precision: list[str], rungs: list[str], output: Path) -> Report:
    """Measure, write the files, and return the report."""
    from nbody.bench.ladder import cublas, suite
    from nbody.bench.ladder.plot import plot_ladder
    from nbody.bench.output import Output
    from nbody.bench.report import report
    from nbody.cli.bench_report import keep
    from nbody.cli.progress import say, status_line

    sizes, precision = sizes or [*suite.SIZES], precision or [*suite.PRECISIONS]
    suite.check(sizes, precision, rungs)
    files = Output.at(output, "matmul")
    library, reason = cublas.rival()
    if library is None:
        say(f"cuBLAS does not take part: {reason}")
    with status_line() as notify:
        found = report(suite.run_suite(sizes, precision, rungs, notify))
        found["machine"] |= {"cublas": library and library.version, "no_cublas": reason}
        notify("drawing")
        return keep(found, files, plot_ladder)


def _show(found: Report, as_json: bool) -> None:
    """The report on standard output."""
    if as_json:
        print(json.dumps(found))
        return
    from nbody.bench.ladder.tables import ladder_tables
    from nbody.cli.bench_report import print_tables

    print_tables(ladder_tables(found))
