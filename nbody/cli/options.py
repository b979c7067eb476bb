"""What options take, and those that several commands have.

An error shows a number as it was typed. Whole ones may be 20480, 20_480 or 1e6.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nbody.cli.completion import RECORDINGS, SCENARIOS, files, recordings_and_scenarios, scenarios
from nbody.cli.streams import print_message
from nbody.errors import InputError
from nbody.given import number_in, shown
from nbody.scenario.quantities import is_quantity
from nbody.trajectory.writing.output_path import RECORDING

if TYPE_CHECKING:
    from nbody.viewer.web.show import Page
    from nbody.viewer.window.show import Desktop


def whole(text: str) -> int:
    """A whole number. Raises typer.BadParameter."""
    with suppress(ValueError):
        return int(text)
    number = number_in(text)
    if number is not None and number.is_integer():
        return int(number)
    raise _refused("must be a whole number", text)


def real(text: str) -> float:
    """A finite number. Raises typer.BadParameter."""
    number = number_in(text)
    if number is None:
        raise _refused("must be a number", text)
    if not math.isfinite(number):
        raise _refused("must be a finite number", text)
    return number


def quantity(text: str) -> float | str:
    """A number, or a text such as ``20 Myr``, which the scenario's units convert. Raises typer.BadParameter."""
    return text if is_quantity(text) else real(text)


def between(least: float, most: float) -> Callable[[str], float]:
    """The parser of a number from ``least`` to ``most``."""

    def parse(text: str) -> float:
        number = real(text)
        if not least <= number <= most:
            raise _refused(f"must be from {least:g} to {most:g}", text)
        return number

    return parse


def numbers(text: str) -> list[float]:
    """Numbers with commas between them. Raises typer.BadParameter."""
    return [real(each) for each in text.split(",")]


def _refused(message: str, text: str) -> typer.BadParameter:
    return typer.BadParameter(f"{message}, got {shown(text)}")


ABOUT = "The focus of elements: inner (the centre of mass of the bodies before), centre, or the id or name of a body."


def is_scenario(path: Path) -> bool:
    """True for a YAML file, and for a bare name that is no file: that of a scenario that comes with nbody."""
    bare = not path.suffix and path.parent == Path() and not path.exists()
    return path.suffix.lower() in SCENARIOS or bare


def is_recording(path: Path) -> bool:
    """True for an HDF5 file, by its suffix or its first bytes."""
    if path.suffix.lower() in RECORDINGS:
        return True
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                return file.read(len(RECORDING.signature)) == RECORDING.signature
    return False


def text_option(help: str, *names: str, **more: Any) -> Any:
    """A Typer option whose help does not show the default. ``more``: other arguments of ``typer.Option``."""
    return typer.Option(*names, help=help, show_default=False, **more)


def count_option(help: str, *names: str, **more: Any) -> Any:
    """An option that takes a whole number."""
    return text_option(help, *names, parser=whole, metavar="<int>", **more)


def real_option(help: str, *names: str, **more: Any) -> Any:
    """An option that takes a number."""
    return text_option(help, *names, parser=real, metavar="<float>", **more)


def quantity_option(help: str, *names: str, **more: Any) -> Any:
    """An option that takes a number, or a number with a unit."""
    return text_option(help, *names, parser=quantity, metavar="<float>", **more)


def argument(help: str, offer: Callable | None = None) -> Any:
    """A Typer argument; ``offer`` returns completions."""
    return typer.Argument(help=help, show_default=False, autocompletion=offer)


Quantity = Any  # None, a number, or a text such as ``20 Myr`` (Typer knows no such type)
Scenario = Annotated[
    Path, argument("The scenario: a YAML file, or the name of one that comes with nbody, such as disk.", scenarios)
]
Recording = Annotated[Path, argument("A recording, an .h5 file of 'nbody run'.", files(*RECORDINGS))]
RecordingOrScenario = Annotated[
    Path,
    argument(
        "A recording (.h5), or a scenario: a .yaml, or the name of one that comes with nbody.", recordings_and_scenarios
    ),
]
Gpus = Annotated[
    str | None,
    text_option(
        "The GPUs that compute this time: their number, all, or which ones: 0,2; by default as many as before.",
        metavar="<gpus>",
    ),
]
Size = Annotated[str, typer.Option(help="Width and height in pixels.")]
Hud = Annotated[bool, typer.Option(help="Text on the picture (in a window, the key H shows it).")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing file (else it is kept under a numbered name).")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only errors, and what --json or --verify asks for.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


@dataclass(frozen=True)
class Served:
    """Where a run is shown: in a window, or on a page for any browser."""

    web: Annotated[
        bool, typer.Option("--web", help="Serve a page for any browser instead of a window; the address is printed.")
    ] = False
    port: Annotated[int | None, count_option("The port of the page; 0 for a free one [8000].")] = None
    host: Annotated[
        str | None,
        text_option("Where the page can be reached [127.0.0.1: from this machine, or through ssh]; not encrypted."),
    ] = None
    token: Annotated[str | None, text_option("The secret word in the address; by default a random one.")] = None
    memory: Annotated[
        float | None,
        text_option(
            "Gigabytes for earlier pictures of a run, to go back to (when it is full, older ones are thinned out, and the "
            "last few stay), or for frames of a recording that are read ahead [1.07].",
            parser=between(1e-3, 1e5),
            metavar="<float>",
        ),
    ] = None

    @property
    def bytes(self) -> float:
        """:attr:`memory` in bytes."""
        from nbody.viewer.sources.history import MEMORY

        return MEMORY if self.memory is None else self.memory * 1e9

    def screen(self) -> "Desktop | Page":
        """Where the run is shown. Raises InputError."""
        given = {name: value for name, value in vars(self).items() if name not in ("web", "memory") and value is not None}
        if self.web:
            from nbody.viewer.web.show import Page

            return Page(print_message, **given)
        for option in given:
            raise InputError(f"--{option}: is for a page; add --web")
        from nbody.viewer.window.show import Desktop

        return Desktop()
