"""``nbody bench``: a command for each suite of measurements, and two for reports that were written earlier."""

import json
import os
from collections.abc import Callable, Sequence
from glob import escape
from inspect import signature
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from nbody.bench import SUITES, tables
from nbody.cli import completion
from nbody.cli.groups import Annotation, Values, with_options
from nbody.cli.list_command import Context, ListCommand
from nbody.cli.options import AsJson, count_option, real, text_option, whole
from nbody.cli.progress import status_line
from nbody.cli.streams import print_message, result, result_json, styled
from nbody.errors import InputError, NBodyError, RunFailed

if TYPE_CHECKING:
    from nbody.bench.columns import Sheet
    from nbody.bench.compare import Comparison
    from nbody.bench.report import Report

FORCES = next(iter(SUITES))  # the suite that 'nbody bench' measures by itself
SCALING = "scaling"  # the suite that 'nbody bench --gpus' measures
WIDTH = 132  # columns that the widest table takes


def _numbers(help: str) -> Annotation:
    return Annotated[list[int] | None, text_option(help, parser=whole, metavar="<list[int]>")]


def _names(help: str, offer: Callable) -> Annotation:
    return Annotated[list[str] | None, text_option(help, autocompletion=offer)]


OPTIONS: dict[str, Annotation] = {
    "cpu": Annotated[bool, text_option("Measure the CPU's engines.", "--cpu")],
    "gpu": Annotated[bool, text_option("Measure the GPU's engines.", "--gpu")],
    "particles": _numbers("Numbers of particles, such as 1024 20480."),
    "engines": _names("Only these engines; the force suite adds the cpu engine.", completion.engines),
    "sizes": _numbers("The n of the n x n matrices."),
    "rungs": _names("Only these rungs.", completion.rungs),
    "accuracy": Annotated[
        list[float] | None, text_option("The median force errors of trees.", parser=real, metavar="<list[float]>")
    ],
    "up_to": Annotated[int | None, count_option("Trees and direct sums, from 1000 particles to this number.")],
    "gpus": Annotated[str | None, text_option("Numbers of GPUs, such as 1,2,4.", metavar="<gpus>")],
    "precision": _names("Only these of float32, mixed and float64.", completion.precisions),
}
"""What a suite may be asked for, by the name of the argument of its ``prepare``."""

Explain = _names("Explain these rungs instead of measuring.", completion.rungs)
Output = Annotated[
    Path,
    text_option(
        "The folder of the report and the picture, or the report's file (.json); output by default.", "--output", "-o"
    ),
]
Readme = Annotated[bool, text_option("Also write the tables into this checkout's README files.", "--readme")]
LATEST = Path("output/bench.json")  # the report that 'nbody bench' has written last
_reports: Values = {"autocompletion": completion.files(".json"), "show_default": False}
Reports = Annotated[list[Path] | None, typer.Argument(help=f"Reports; {LATEST} by default.", **_reports)]
Old = Annotated[Path, typer.Argument(help=f"The earlier report; {LATEST} by default.", **_reports)]
New = Annotated[Path | None, typer.Argument(help="The later one; without it, the same is measured again.", **_reports)]

MOVED = {"--matmul": "matmul", "--roofline": "roofline", "--compare": "compare", "--from": "show"}  # old options


class BenchGroup(TyperGroup):
    """``nbody bench`` without a subcommand is ``nbody bench forces``, whose options its help shows too."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Name the subcommand that is meant."""
        options = [word.partition("=")[0] for word in args]
        for word in options:
            if word in MOVED and not ctx.resilient_parsing:
                raise InputError(f"{word} is a subcommand now: nbody bench {MOVED[word]} (see 'nbody bench --help')")
        if "--sizes" in options and args[0] not in self.commands:
            raise InputError("--sizes: are of matrices (nbody bench matmul); numbers of bodies are --particles")
        if not (args and args[0] in (*self.commands, *ctx.help_option_names)) and (args or not ctx.resilient_parsing):
            args = [SCALING if "--gpus" in options else FORCES, *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Context, formatter: Any) -> None:
        """The help of the group, with the options of the force suite."""
        own, self.params = self.params, self.commands[FORCES].params
        super().format_help(ctx, formatter)
        self.params = own


bench = typer.Typer(name="bench", cls=BenchGroup)


@bench.callback()
def _bench() -> None:
    """Measure how fast, and how exact, this machine is.

    Without a subcommand every force engine that this machine has is measured.
    Each result is checked before it is timed. A table goes to standard
    output, a report (bench.json) and a picture (bench.png) to the output
    folder, where earlier ones are kept under a numbered name.

    \b
    Examples:
      nbody bench --cpu --gpu
      nbody bench --particles 1024 20480 --json > speed.json
      nbody bench matmul --sizes 1024 2048
    """


def _measuring(suite: str) -> Callable[..., int]:
    """The command of a suite: its options are the arguments of the suite's ``prepare``, and those of all suites."""
    prepare = SUITES.load(suite)
    options = {name: (OPTIONS[name], None) for name in signature(prepare).parameters if name in OPTIONS}
    options |= {"explain": (Explain, None)} if "rungs" in options else {}

    def command(requested: Values, output: Output = Path("output"), as_json: AsJson = False, readme: Readme = False) -> int:
        if explain := requested.pop("explain", None):
            return _explain(explain, as_json)
        found, failed = _measure(suite, requested, output, readme)
        return _finish(found, failed, as_json, readme)

    command.__name__, command.__doc__ = suite, prepare.__doc__
    return with_options(command, {"requested": (options, dict)})


for _suite in SUITES:
    bench.command(_suite, cls=ListCommand)(_measuring(_suite))


@bench.command(cls=ListCommand)
def compare(old: Old = LATEST, new: New = None, output: Output = Path("output"), as_json: AsJson = False) -> int:
    """Show what became slower or faster since an earlier report.

    Each row is compared with the same row of the other report; a difference
    counts where it is larger than the noise of such a measurement.

    \b
    Examples:
      nbody bench compare
      nbody bench compare output/bench.json
      nbody bench compare laptop.json h200.json
    """
    from nbody.bench.compare import again, compare
    from nbody.bench.report import load

    before, file = load(_there(old)), old.stat()
    found, failed = ([load(new)], []) if new else _measure(*again(before, str(old), print_message), output)
    # The old report has a numbered name if the new one has its place.
    numbered = old.parent.glob(f"{escape(old.stem)}.*{old.suffix}")
    name = next((each for each in numbered if os.path.samestat(each.stat(), file)), old)
    return _finish(found, failed, as_json, comparison=compare(before, found[0], str(name)))


@bench.command(cls=ListCommand)
def show(reports: Reports = None, as_json: AsJson = False, readme: Readme = False) -> int:
    """Show earlier reports instead of measuring.

    \b
    Examples:
      nbody bench show
      nbody bench show output/bench.json
      nbody bench show laptop.json h200.json --readme
    """
    from nbody.bench.report import load

    reports = reports or [_there(LATEST)]
    if as_json and len(reports) > 1:
        raise InputError("--json prints one report, and several are named; name one")
    return _finish([load(path) for path in reports], [], as_json, readme)


def _there(path: Path) -> Path:
    """The report to show; raises InputError if none is named, and there is none yet."""
    if path == LATEST and not path.exists():
        raise InputError(f"there is no {LATEST} here yet; measure one with 'nbody bench', or name a report")
    return path


def _explain(words: Sequence[str], as_json: bool) -> int:
    """Print what rungs are, and what their kernels need of a card."""
    from nbody.bench.matmul.suite import check_rung
    from nbody.linalg.explain import explain

    names = [name for word in words for name in word.split(",") if name]
    for name in names:
        check_rung(name, "--explain: ")
    found = [{"rung": name, "text": explain(name)} for name in names]
    if as_json:
        result_json(found[0] if len(found) == 1 else {"rungs": found})
    else:
        result("\n\n".join(each["text"] for each in found))
    return 0


def _measure(suite: str, requested: Values, output: Path, readme: bool = False) -> tuple[list["Report"], list[str]]:
    """Measure a suite and write its files. Returns the report, and why a file of it could not be written."""
    from nbody.bench.plot import plot
    from nbody.bench.readme import table_slots
    from nbody.bench.report import prepared, report_path, write

    work = prepared(suite, {name: value for name, value in requested.items() if value is not None}, print_message)
    path = report_path(output, "bench" if suite == FORCES else suite)
    if readme:
        table_slots([suite])  # before the measuring, not after
    if (load := os.getloadavg()[0]) > 0.5:
        print_message(
            f"other programs kept {load:.1f} cores busy in the last minute; times on the CPU are better taken alone"
        )
    try:
        with status_line() as notify:
            found = work(notify)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; nothing was written") from None
    try:
        write(found, path, plot, print_message)
    except NBodyError as error:
        return [found], [f"{error}; the figures are above"]
    return [found], []


def _finish(
    reports: Sequence["Report"],
    failed: Sequence[str],
    as_json: bool,
    readme: bool = False,
    comparison: "Comparison | None" = None,
) -> int:
    """Print the reports, write the README files if that is asked for, and return the exit code: 1 after a line on each
    row that is wrong, and on each file that could not be written."""
    from nbody.bench.readme import rewrite

    for report in reports if as_json else ():
        compared = {"comparison": comparison.plain()} if comparison else {}
        result_json(json.loads(report.json()) | compared)
    if not as_json:
        pairs = [(report, suite) for report in reports for suite in report.suites]
        sheets = [sheet for report, suite in pairs for sheet in tables(suite).sheets(report)]
        _print([*sheets, *([comparison.sheet()] if comparison else [])])
    failed = [*(f"{row.what}: {row.note}" for report in reports for row in report.rows if row.wrong), *failed]
    try:
        for path in rewrite(reports) if readme else ():
            print_message(f"the tables in {path} are now those of this report")
    except RunFailed as error:
        failed.append(str(error))
    for line in failed:
        print_message(f"error: {line}")
    return 1 if failed else 0


def _print(sheets: Sequence["Sheet"]) -> None:
    """Tables on standard output, :data:`WIDTH` columns wide at least: a narrow terminal folds lines, and cuts no number.
    (Rich itself would end a closed pipe with exit code 1.)"""
    from rich.console import Console

    terminal, text = Console(), StringIO()
    width = max(terminal.width, WIDTH)
    console = Console(
        file=text, width=width, force_terminal=terminal.is_terminal, highlight=False, markup=False, emoji=False
    )
    for sheet in sheets:
        console.print(sheet.on_terminal())
    styled(text.getvalue())
