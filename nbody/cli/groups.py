"""How commands get groups of options, made from dataclasses, a look or a scenario.

A command with a parameter per group, such as ::

    @grouped
    def show(run: Path, picture: Screenshot = Screenshot()) -> int: ...

becomes for Typer ``show(*, run: Path, screenshot: Path | None = None, frame: int | None = None)``: its help lists an option
per field of ``Screenshot``, and the command gets them as one ``Screenshot``.
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from nbody.cli.completion import names
from nbody.cli.options import Quantity, count_option, quantity_option, real, real_option, text_option, whole
from nbody.cli.streams import print_message
from nbody.errors import InputError
from nbody.registry import imported
from nbody.scenario.options import OPTIONS, Option
from nbody.viewer.picture.look import Look, option

if TYPE_CHECKING:
    from nbody.scenario import Scenario

Command = Callable[..., int]
Values = dict[str, Any]  # of options, by name
Annotation = Any  # what typing.Annotated makes
Options = Mapping[str, tuple[Annotation, object]]
Group = tuple[Options, Callable[[Values], object]]
"""The annotation and the default of each option, and what makes one value of theirs."""

OF_LOOK, OF_SCENARIO = {"rich_help_panel": "The look of the picture"}, {"rich_help_panel": "The scenario"}

TAKES = {
    "int": (int | None, count_option),
    "float": (float | None, real_option),
    "quantity": (Quantity, quantity_option),
    "text": (str | None, text_option),
    "texts": (list[str] | None, text_option),
}
"""For what an option of a scenario takes: its type, and what makes it."""

SET = Annotated[
    list[str] | None,
    text_option("Any other value, as in gravity.G=2; can be repeated.", metavar="KEY=VALUE", **OF_SCENARIO),
]


class Replaced(Values):
    """The values of a scenario that the user gave by options."""

    def load(self, path: Path) -> "Scenario":
        """Load the scenario at ``path`` and replace the values that the user gave."""
        from nbody.scenario import Scenario

        values = dict(self)
        return Scenario.load(path, values.pop("set", ()), **values)

    def refuse(self, recording: Path) -> None:
        """Raise an InputError if there is any: a recording has been made."""
        for name in self:
            raise InputError(f"--{name}: belongs to a scenario, and {recording} is a recording; leave it out")


def grouped(command: Command) -> Command:
    """A decorator that puts several options in place of each parameter whose type is a group: a :class:`Look`, a
    :class:`Replaced`, or a dataclass with a field per option, annotated as the parameters of a command are."""
    kinds = {each.name: each.annotation for each in signature(command, eval_str=True).parameters.values()}
    groups = {name: _group(kind) for name, kind in kinds.items() if kind is Replaced or is_dataclass(kind)}
    return with_options(command, groups)


def with_options(command: Command, groups: Mapping[str, Group]) -> Command:
    """A command for Typer with the options of a group in place of each of these parameters of ``command``."""

    @wraps(command)
    def wrapper(**values: object) -> int:
        made = {name: make({option: values.pop(option) for option in options}) for name, (options, make) in groups.items()}
        return command(**values, **made)

    parameters: list[Parameter] = []
    for each in signature(command, eval_str=True).parameters.values():
        options = groups[each.name][0] if each.name in groups else {each.name: (each.annotation, each.default)}
        parameters += [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in options.items()
        ]
    shown = signature(command).replace(parameters=parameters)
    wrapper.__signature__ = shown  # type: ignore[attr-defined]
    wrapper.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapper


def _group(kind: Annotation) -> Group:
    if kind is Look:
        return {field.name: (_of_look(field), field.default) for field in fields(Look)}, _look
    if kind is Replaced:
        options = {name: (_of_scenario(name, option), None) for name, option in OPTIONS.items() if option.help}
        return options | {"set": (SET, None)}, lambda values: Replaced(
            {name: value for name, value in values.items() if value not in (None, [])}
        )
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: (hints[field.name], field.default) for field in fields(kind)}, lambda values: kind(**values)


def _look(values: Values) -> Look:
    look = Look.of(values)
    if values["trails"] == "light":
        print_message("--trails light: has been removed; lines are drawn instead, as with --trails all")
    return look


def _of_look(field: Field) -> Annotation:
    """The option of a field of the look."""
    listed, kind, declared = field.metadata.get("names"), type(field.default), option(field.name)
    more: Values = {"help": field.metadata["help"], **OF_LOOK}
    if listed:
        more |= {"help": f"{more['help']}: {listed.listing()}.", "autocompletion": names(listed)}
    if kind is bool:
        declared += f"/--no-{field.name.replace('_', '-')}"
    elif kind in (int, float):
        more |= {"parser": whole if kind is int else real, "metavar": f"<{kind.__name__}>"}
    return Annotated[kind, typer.Option(declared, **more)]


def _of_scenario(name: str, option: Option) -> Annotation:
    """An option that replaces a value of a scenario, with its spellings, its help and its completion."""
    kind, make = TAKES[option.takes]
    more: Values = {**OF_SCENARIO, "metavar": option.metavar} if option.metavar else {**OF_SCENARIO}
    more |= {"autocompletion": names(*option.names)} if option.names else {}
    listing = imported(option.names[-1]).listing() if "{names}" in option.help else ""
    return Annotated[
        kind, make(option.help.replace("{names}", listing), f"--{name.replace('_', '-')}", *option.also, **more)
    ]
