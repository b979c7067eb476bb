"""The options about the look of a picture, the same for ``nbody view`` and ``nbody movie``."""

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from nbody.cli import completion
from nbody.cli.numbers import real, whole
from nbody.cli.streams import tell
from nbody.viewer.picture.look import Look, option

PANEL = "The look of the picture"


def look_options(command: Callable[..., int]) -> Callable[..., int]:
    """Replace the parameter ``look`` of a command by one option per field of :class:`Look`.

    The command is called with the :class:`Look` that the options give. Raises InputError for a wrong option.
    """

    @wraps(command)
    def wrapper(**values: Any) -> int:
        look = Look.of(values)
        if values["trails"] == "light":
            tell("--trails light: has been removed; lines are drawn instead, as with --trails all")
        names = {each.name for each in fields(Look)}
        return command(**{name: value for name, value in values.items() if name not in names}, look=look)

    own = [each for each in signature(command, eval_str=True).parameters.values() if each.name != "look"]
    shown = signature(command).replace(parameters=[*own, *map(_parameter, fields(Look))])
    wrapper.__signature__ = shown  # type: ignore[attr-defined]
    wrapper.__annotations__ = {name: each.annotation for name, each in shown.parameters.items()}
    return wrapper


def _parameter(field: Field) -> Parameter:
    """The option of a field."""
    names, default = field.metadata.get("names"), field.default
    assert default is not MISSING
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
    annotation = Annotated[kind, typer.Option(declared, **more)]
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
