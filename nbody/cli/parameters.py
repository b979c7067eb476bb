"""Commands whose options are made from a table."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any


def in_place_of(
    name: str,
    options: Mapping[str, tuple[Any, Any]],
    collect: Callable[[dict[str, Any]], Any],
    command: Callable[..., int],
) -> Callable[..., int]:
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
