"""``nbody bench``: a command for each suite of measurements, and two for reports that were written earlier."""

import os
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from nbody.bench import SUITES
from nbody.cli import completion
from nbody.cli.bench_report import explained, finish, measured
from nbody.cli.lists import ListCommand
from nbody.cli.numbers import count_option, real, text_option, whole
from nbody.cli.options import AsJson
from nbody.cli.parameters import in_place_of

FORCES = next(iter(SUITES))
"""The suite that ``nbody bench`` measures by itself."""

SCALING = "scaling"
"""The suite that ``nbody bench --gpus`` measures."""


def _numbers(help: str) -> Any:
    return Annotated[list[int] | None, text_option(help, parser=whole, metavar="<list[int]>")]


def _names(help: str, offer: Callable) -> Any:
    return Annotated[list[str] | None, text_option(help, autocompletion=offer)]


OPTIONS: dict[str, Any] = {
    "cpu": Annotated[bool, text_option("Measure the CPU's engines.", "--cpu")],
    "gpu": Annotated[bool, text_option("Measure the GPU's engines.", "--gpu")],
    "particles": _numbers("Numbers of particles, such as 1024 20480."),
    "engines": _names("Only these engines; the force suite adds the cpu engine.", completion.engines),
    "sizes": _numbers("The n of the n x n matrices."),
    "rungs": _names("Only these rungs.", completion.rungs),
    "accuracy": Annotated[
        list[float] | None, text_option("The median force errors of trees.", parser=real, metavar="<list[float]>")
    ],
    "up_to": Annotated[
        int | None,
        count_option("Trees and direct sums, from 1000 particles to this number."),
    ],
    "gpus": Annotated[str | None, text_option("Numbers of GPUs, such as 1,2,4.", metavar="<gpus>")],
    "precision": _names("Only these of float32, mixed and float64.", completion.precisions),
}
"""What a suite may be asked for, by the name of the argument of its ``prepare``."""

FLAGS = {"cpu": False, "gpu": False}
"""The defaults of those that are not None."""

Explain = _names("Explain these rungs instead of measuring.", completion.rungs)
Output = Annotated[
    Path,
    text_option(
        "The folder of the report and the picture, or the report's file (.json); output by default.", "--output", "-o"
    ),
]
Readme = Annotated[bool, text_option("Also write the tables into this checkout's README files.", "--readme")]
LATEST = Path("output/bench.json")
"""The report that ``nbody bench`` has written last."""
_reports: dict[str, Any] = {"autocompletion": completion.files(".json"), "show_default": False}
Reports = Annotated[list[Path] | None, typer.Argument(help=f"Reports; {LATEST} by default.", **_reports)]
Old = Annotated[Path, typer.Argument(help=f"The earlier report; {LATEST} by default.", **_reports)]
New = Annotated[Path | None, typer.Argument(help="The later one; without it, the same is measured again.", **_reports)]

MOVED = {"--matmul": "matmul", "--roofline": "roofline", "--compare": "compare", "--from": "show"}
"""What earlier versions had as options."""


class BenchGroup(TyperGroup):
    """``nbody bench`` without a subcommand is ``nbody bench forces``, whose options its help shows too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the subcommand that is meant."""
        from nbody.errors import InputError

        for word in args:
            if word in MOVED and not ctx.resilient_parsing:
                raise InputError(f"{word} is a subcommand now: nbody bench {MOVED[word]} (see 'nbody bench --help')")
        if not (args and args[0] in (*self.commands, *ctx.help_option_names)) and (args or not ctx.resilient_parsing):
            args = [SCALING if any(word.partition("=")[0] == "--gpus" for word in args) else FORCES, *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
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

    Examples:

      nbody bench --cpu --gpu

      nbody bench --particles 1024 20480 --json > speed.json

      nbody bench matmul --sizes 1024 2048
    """


def _measuring(suite: str) -> Callable[..., int]:
    """The command of a suite: its options are the arguments of the suite's ``prepare``, and those of all suites."""
    prepare = SUITES.load(suite)
    options = {name: (OPTIONS[name], FLAGS.get(name)) for name in signature(prepare).parameters if name in OPTIONS}
    options |= {"explain": (Explain, None)} if "rungs" in options else {}

    def command(
        requested: dict[str, Any], output: Output = Path("output"), as_json: AsJson = False, readme: Readme = False
    ) -> int:
        if explain := requested.pop("explain", None):
            return explained(explain, as_json)
        found, failed, _ = measured(suite, requested, output, readme)
        return finish(found, failed, as_json, readme)

    command.__name__, command.__doc__ = suite, prepare.__doc__
    return in_place_of("requested", options, dict, command)


for _suite in SUITES:
    bench.command(_suite, cls=ListCommand)(_measuring(_suite))


@bench.command(cls=ListCommand)
def compare(old: Old = LATEST, new: New = None, output: Output = Path("output"), as_json: AsJson = False) -> int:
    """Show what became slower or faster since an earlier report.

    Each row is compared with the same row of the other report; a difference
    counts where it is larger than the noise of such a measurement.

    Examples:

      nbody bench compare

      nbody bench compare output/bench.json

      nbody bench compare laptop.json h200.json
    """
    from nbody.bench.compare import again, compare
    from nbody.bench.report import load

    before, file = load(_there(old)), old.stat()
    found, failed, kept = ([load(new)], [], None) if new else measured(*again(before, str(old)), output)
    name = kept if kept and os.path.samestat(kept.stat(), file) else old
    return finish(found, failed, as_json, comparison=compare(before, found[0], str(name)))


@bench.command(cls=ListCommand)
def show(reports: Reports = None, as_json: AsJson = False, readme: Readme = False) -> int:
    """Show earlier reports instead of measuring.

    Examples:

      nbody bench show

      nbody bench show output/bench.json

      nbody bench show laptop.json h200.json --readme
    """
    from nbody.bench.report import load
    from nbody.errors import InputError

    reports = reports or [_there(LATEST)]
    if as_json and len(reports) > 1:
        raise InputError("--json prints one report, and several are named; name one")
    return finish([load(path) for path in reports], [], as_json, readme)


def _there(path: Path) -> Path:
    """The report to show; raises InputError if none is named, and there is none yet."""
    from nbody.errors import InputError

    if path == LATEST and not path.exists():
        raise InputError(f"there is no {LATEST} here yet; measure one with 'nbody bench', or name a report")
    return path
