"""Whole numbers on the command line: 20480, 20_480 or 1e6, as in a scenario."""

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
    raise typer.BadParameter(f"must be a whole number, got {text!r}")


def count_option(help: str) -> Any:
    """A Typer option that takes a whole number, with this help text."""
    return typer.Option(help=help, show_default=False, parser=whole, metavar="<int>")
