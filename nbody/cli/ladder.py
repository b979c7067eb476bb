"""``nbody bench --matmul``: the ladder of matrix products, measured, or one of its rungs explained."""

import json
from pathlib import Path

from nbody.bench.report import Report


def ladder(
    sizes: list[int] | None,
    precision: list[str] | None,
    rungs: list[str] | None,
    explain: str | None,
    output: Path,
    as_json: bool,
    readme: Path | None,
    reports: list[Path] | None,
) -> int:
    """What ``nbody bench --matmul`` does with its options; returns the exit code, 1 if a product was wrong."""
    from nbody.bench import report
    from nbody.bench.ladder import ladder_rows, markdown
    from nbody.bench.readme import rewrite
    from nbody.cli.progress import say
    from nbody.errors import InputError

    if explain is not None:
        return _explain(explain, as_json)
    if reports and as_json and len(reports) > 1:
        raise InputError("--json prints one report, and --from names several; leave one of the two out")
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
    from nbody.bench.matmul import check_rung
    from nbody.linalg.explain import explain

    check_rung(name, "--explain: ")
    text = explain(name)
    print(json.dumps({"rung": name, "text": text}) if as_json else text)
    return 0


def _measured(sizes: list[int] | None, precision: list[str] | None, rungs: list[str] | None, output: Path) -> Report:
    """Measure, write the files, and return the report."""
    from nbody.bench import cublas, matmul
    from nbody.bench.ladder_plot import plot_ladder
    from nbody.bench.output import Output
    from nbody.bench.report import report
    from nbody.cli.progress import say, status_line
    from nbody.cli.reports import keep

    sizes, precision, rungs = sizes or [*matmul.SIZES], precision or [*matmul.PRECISIONS], rungs or []
    matmul.check(sizes, precision, rungs)
    files = Output.at(output, "matmul")
    library, reason = cublas.rival()
    if library is None:
        say(f"cuBLAS does not take part: {reason}")
    with status_line() as notify:
        found = report(matmul.run_suite(sizes, precision, rungs, notify))
        found["machine"] |= {"cublas": library and library.version, "no_cublas": reason}
        notify("drawing")
        return keep(found, files, plot_ladder)


def _show(found: Report, as_json: bool) -> None:
    """The report on standard output."""
    if as_json:
        print(json.dumps(found))
        return
    from nbody.bench.ladder import TABLE_WIDTH, tables
    from nbody.cli.reports import print_tables

    print_tables(tables(found), TABLE_WIDTH)
