"""Commands whose options are made from a table, or from the fields of a dataclass."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints

Command = Callable[..., int]


def in_place_of(
    name: str,
    options: Mapping[str, tuple[Any, Any]],
    collect: Callable[[dict[str, Any]], Any],
    command: Command,
) -> Command:
    """A command for Typer with several options in place of one parameter of ``command``.

    Args:
        name: the parameter, which gets ``collect(values of the options)``.
        options: the annotation and the default of each.
    """

    @wraps(command)
    def wrapper(**values: Any) -> int:
        found = collect({option: values.pop(option) for option in options})
        return command(**values, **{name: found})

    parameters: list[Parameter] = []
    for each in signature(command, eval_str=True).parameters.values():
        if each.name != name:
            parameters.append(each.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        parameters += [
            Parameter(option, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for option, (annotation, default) in options.items()
        ]
    shown = signature(command).replace(parameters=parameters)
    wrapper.__signature__ = shown  # type: ignore[attr-defined]
    wrapper.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapper


def grouped(*names: str) -> Callable[[Command], Command]:
    """A decorator that puts one option per field in place of each of these parameters, whose types are dataclasses. As in a
    command, the annotation of a field is the declaration of its option."""

    def decorate(command: Command) -> Command:
        for name in names:
            kind: Any = signature(command, eval_str=True).parameters[name].annotation
            hints = get_type_hints(kind, include_extras=True)
            options = {field.name: (hints[field.name], field.default) for field in fields(kind)}
            command = in_place_of(name, options, lambda values, kind=kind: kind(**values), command)  # type: ignore[misc]
        return command

    return decorate
