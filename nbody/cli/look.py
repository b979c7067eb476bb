"""The options about the look of a picture, the same for ``nbody view`` and ``nbody movie``."""

from dataclasses import Field, fields
from typing import Annotated, Any

import typer

from nbody.cli import completion
from nbody.cli.numbers import real, whole
from nbody.cli.parameters import Command, in_place_of
from nbody.cli.streams import print_message
from nbody.viewer.picture.look import Look, option

PANEL = "The look of the picture"


def look_options(command: Command) -> Command:
    """Give a command one option per field of :class:`Look` in place of its parameter ``look``, which gets the :class:`Look`.
    The command raises InputError for a wrong option."""
    return in_place_of(
        "look", {field.name: (_annotation(field), field.default) for field in fields(Look)}, _look, command
    )


def _look(values: dict[str, Any]) -> Look:
    look = Look.of(values)
    if values["trails"] == "light":
        print_message("--trails light: has been removed; lines are drawn instead, as with --trails all")
    return look


def _annotation(field: Field) -> Any:
    """The type of a field, with its option."""
    names, default = field.metadata.get("names"), field.default
    more: dict[str, Any] = {"help": field.metadata["help"], "rich_help_panel": PANEL}
    kind: Any = type(default)
    if names:
        more |= {"help": f"{more['help']}: {names.listing()}.", "autocompletion": completion.names(names)}
    if kind is bool:
        declared = f"{option(field.name)}/--no-{field.name.replace('_', '-')}"
    else:
        declared = option(field.name)
        if kind in (int, float):
            more |= {"parser": whole if kind is int else real, "metavar": f"<{kind.__name__}>"}
    return Annotated[kind, typer.Option(declared, **more)]
