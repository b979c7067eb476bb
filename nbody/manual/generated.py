"""The generated parts of the manual, in Markdown: ``{{ generators }}`` in a page is replaced by :func:`text`."""

import inspect
import re
from typing import Any

import nbody
from nbody.cli import program
from nbody.cli.components import component, group, registry
from nbody.registry import REGISTRIES
from nbody.scenario.described import markdown
from nbody.scenario.model import Scenario
from nbody.trajectory.structure import layout

PART = re.compile(r"^\{\{ (\w+) \}\}$", re.MULTILINE)


def filled(page: str) -> str:
    """A page with its generated parts."""
    return PART.sub(lambda found: text(found[1]), page)


def text(name: str) -> str:
    """The part of a name: of :data:`~nbody.registry.REGISTRIES`, or ``scenario``, ``commands``, ``python``, ``layout``."""
    if name in REGISTRIES:
        return "\n\n".join(f"## `{each}`\n\n{component(name, each)}" for each in registry(name))
    if name == "scenario":
        return "\n\n".join(f"## `{key}`\n\n{group(key)}" for key in Scenario.model_fields)
    return {"commands": _commands, "python": _python, "layout": _layout}[name]()


def _commands() -> str:
    from typer.main import get_command

    top: Any = get_command(program())
    pairs = [(name, each) for name, each in top.commands.items()]
    pairs += [(f"{name} {inner}", each) for name, one in pairs for inner, each in getattr(one, "commands", {}).items()]
    return "\n\n".join(_command(name, each) for name, each in sorted(pairs))


def _command(name: str, command: Any) -> str:
    """A command's help: its text, with the examples as code, and its arguments and options."""
    about, _, examples = inspect.cleandoc(command.help or "").replace("\b\n", "").partition("Examples:\n")
    parts = [f"## `nbody {name}`", about.strip()]
    if examples:
        parts.append(f"```sh\n{inspect.cleandoc(examples)}\n```")
    options = [each for each in command.params if not getattr(each, "hidden", False)]
    words = [each.opts if each.param_type_name == "option" else [each.metavar or each.name] for each in options]
    lines = [f"- {', '.join(f'`{w}`' for w in own)}: {each.help}" for own, each in zip(words, options, strict=True)]
    return "\n\n".join([*parts, "\n".join(lines)])


def _python() -> str:
    """What autodoc makes of the names of the package."""
    parts = []
    for name in sorted(nbody.__all__, key=str.lower):
        kind = "class" if inspect.isclass(getattr(nbody, name)) else "function"
        members = "\n   :members:\n   :exclude-members: elsewhere, model_post_init" if kind == "class" else ""
        parts.append(f"## `{name}`\n\n```{{eval-rst}}\n.. auto{kind}:: nbody.{name}{members}\n```")
    return "\n\n".join(parts)


def _layout() -> str:
    """The names in a recording, with what stands beside them in :mod:`~nbody.trajectory.structure.layout`."""
    found = re.findall(r"^([A-Z_]+) = .*  # (.*)$", inspect.getsource(layout), re.MULTILINE)
    named = ((name, getattr(layout, name), re.sub(r"\b[A-Z]{3,}\b", _value, meaning)) for name, meaning in found)
    lines = [f"- `{value if isinstance(value, str) else ', '.join(value)}`: {meaning}" for _, value, meaning in named]
    columns = ", ".join(f"`{name}`" for name, _ in layout.EVENT_DTYPE)
    return "\n\n".join([markdown(layout.__doc__), "\n".join(lines), f"The columns of `{layout.EVENTS}`: {columns}."])


def _value(found: re.Match[str]) -> str:
    value = getattr(layout, found[0], found[0])
    return f"`{value}`" if isinstance(value, str) and value != found[0] else found[0]
