"""Numbers on the command line, which an error shows as they were typed. Whole ones may be 20480, 20_480 or 1e6."""

import math
from collections.abc import Callable
from typing import Any

import typer


def whole(text: str) -> int:
    """Convert a text to a whole number.

    Raises:
        typer.BadParameter: it is not a whole number.
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
        if number.is_integer():
            return int(number)
    except ValueError:
        pass
    raise _refused("must be a whole number", text)


def real(text: str) -> float:
    """A finite number.

    Raises:
        typer.BadParameter: it is none.
    """
    try:
        number = float(text)
    except ValueError:
        raise _refused("must be a number", text) from None
    if not math.isfinite(number):
        raise _refused("must be a finite number", text)
    return number


def quantity(text: str) -> float | str:
    """A number, or a text such as ``20 Myr``, which the scenario's units convert.

    Raises:
        typer.BadParameter: it is neither.
    """
    from nbody.scenario.units import is_quantity

    return text if is_quantity(text) else real(text)


def between(least: float, most: float) -> Callable[[str], float]:
    """The parser of a number from ``least`` to ``most``."""

    def parse(text: str) -> float:
        number = real(text)
        if not least <= number <= most:
            raise _refused(f"must be from {least:g} to {most:g}", text)
        return number

    return parse


def _refused(message: str, text: str) -> typer.BadParameter:
    from nbody.given import shown

    return typer.BadParameter(f"{message}, got {shown(text)}")


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
