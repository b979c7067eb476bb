"""How commands get their options: groups of them, made from dataclasses, a look or a scenario; and lists of values."""

from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption

from nbody.cli.completion import SCENARIOS, names
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
Context = Any  # Click's; where its class is depends on Typer's version
Options = Mapping[str, tuple[Annotation, object]]
Group = tuple[Options, Callable[[Values], object]]
"""The annotation and the default of each option, and what makes one value of theirs."""

OF_LOOK, OF_SCENARIO = {"rich_help_panel": "The look of the picture"}, {"rich_help_panel": "The scenario"}

TAKES = {
    "int": (int | None, count_option),
    "float": (float | None, real_option),
    "quantity": (Quantity, quantity_option),
    "text": (str | None, text_option),
}
"""For what an option of a scenario takes: its type, and what makes it."""

SET = Annotated[
    list[str] | None,
    text_option("Any other value, as in gravity.G=2; can be repeated.", metavar="KEY=VALUE", **OF_SCENARIO),
]

OPEN_LIST = "nbody.cli.commands.open"  # the key in a context's 'meta' for the list option that may still get values


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


def is_scenario(path: Path) -> bool:
    """True for a YAML file, and for a bare name that is no file: that of a scenario that comes with nbody."""
    bare = not path.suffix and path.parent == Path() and not path.exists()
    return path.suffix.lower() in SCENARIOS or bare


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
        made = {
            name: make({option: values.pop(option) for option in options}) for name, (options, make) in groups.items()
        }
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
    return Annotated[kind, make(option.help.replace("{names}", listing), f"--{name}", *option.also, **more)]


class ListCommand(TyperCommand):
    """A command whose list options take every word up to the next option: ``--particles 1024 4096`` as well as ``--particles
    1024 --particles 4096``. (Click's own options take one word each.) While the command lacks an argument, the first word
    that can't be another value is that argument: ``run --set gravity.G=2 disk``."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Repeat a list option's name before each of its values, then parse as usual."""
        options = {name: each for each in self.params if isinstance(each, TyperOption) for name in each.opts}
        arguments = (each.nargs for each in self.params if isinstance(each, TyperArgument))
        lacking = sum(len(args) if number < 0 else number for number in arguments)
        words: list[str] = []
        option, name, values = None, "", 0  # the option whose value may come next, and the number of its values so far
        for word in args:
            if word.startswith("-") and not _is_number(word):
                option, name, values = options.get(word), word, 0
            elif option is None or option.is_flag or (values and not _goes_on(option, word, lacking > 0)):
                option, lacking = None, lacking - 1
            else:
                values += 1
                if values > 1:
                    words.append(name)
            words.append(word)
        ctx.meta[OPEN_LIST] = name if option is not None and option.multiple else ""
        try:
            return super().parse_args(ctx, words)
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:  # Click gives no context to the error of an option without its value
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def shell_complete(self, ctx: Context, incomplete: str) -> list:
        """Completions: further values of the last list option, or options as usual."""
        for each in self.params:
            if ctx.meta.get(OPEN_LIST) in each.opts and not incomplete.startswith("-"):
                return each.shell_complete(ctx, incomplete)
        return super().shell_complete(ctx, incomplete)


def _goes_on(option: TyperOption, word: str, lacking: bool) -> bool:
    """True if a word is one more value of an option. If an argument is ``lacking``, it has the form that the help shows."""
    shown = option.metavar or ""
    if not option.multiple or not lacking:
        return option.multiple
    return "=" in word if "=" in shown else not shown.startswith("<list") or word[:1].isdigit() or _is_number(word)


def _is_number(word: str) -> bool:
    """True if the word is a number: ``-5`` is a (wrong) value, not an option."""
    try:
        float(word)
    except ValueError:
        return False
    return True
