"""What a group of keys says of itself: a Markdown text made from its docstring, its types and its defaults.

The same text is help on a terminal, the docstring of a generator's function, and the reference of the manual.
"""

import inspect
import re
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from pydantic import AfterValidator, BeforeValidator
from pydantic.fields import FieldInfo

from nbody.scenario.values import Group, Written, in_scale, short_name

SECTION = re.compile(r"^(?:Attributes|Args|Raises|Returns):\n((?: {4}.*)?\n)*", re.MULTILINE)
ITEM = re.compile(r"^ {4}(\w[\w, ]*): (.*\n(?:(?: {5}.*)?\n)*)", re.MULTILINE)
TABLE = re.compile(r"^((?:=+ +)+=+\n(?:.+\n)+?(?:=+ +)+=+\n(?:.+\n)+?(?:=+ +)+=+\n)", re.MULTILINE)
ROLE = re.compile(r":\w+:`[~.]*(?:\.?\w+\.)*(\w+)`")

TYPES = {float: "number", int: "whole number", bool: "true or false", str: "text", dict: "mapping"}
SIGNS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
LARGE = 2**53  # bounds from here on are those of the file, not of the meaning


class DescribedKey(NamedTuple):
    """One key of a group.

    Attributes:
        name: as written in a scenario.
        takes: its type or dimension, and its bounds, in words.
        default: ``default 1``, ``required`` or ``optional``.
        meaning: from the docstring; empty if that does not say it.
        groups: the groups of keys that its value may be.
    """

    name: str
    takes: str
    default: str
    meaning: str
    groups: tuple[type[Group], ...]

    @property
    def note(self) -> str:
        """Type and default."""
        return "; ".join(filter(None, (self.takes, self.default)))


def markdown(docstring: str | None) -> str:
    """A docstring without its lists of attributes and arguments; literals and tables become code, and references names."""
    text = SECTION.sub("", inspect.cleandoc(docstring or "") + "\n")
    return TABLE.sub(r"```text\n\1```\n", ROLE.sub(r"`\1`", text).replace("``", "`")).strip()


def keys_of_group(kind: type[Group]) -> list[DescribedKey]:
    """The keys of a group, in order."""
    meanings: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        text = inspect.cleandoc(each.__dict__.get("__doc__") or "").partition("Attributes:\n")[2]
        for names, meaning in ITEM.findall(text + "\n"):
            meanings |= dict.fromkeys(names.split(", "), markdown(" ".join(meaning.split())))
    return [
        DescribedKey(
            name, _takes(field.annotation, *field.metadata), _default(field), meanings.get(name, ""), _groups(field)
        )
        for name, field in kind.model_fields.items()
    ]


def listed(kind: type[Group]) -> str:
    """A list of the keys of a group, those with one meaning together, and then of the groups that they may be."""
    found: dict[type[Group], str] = {}
    _list(kind, found)
    return "\n\n".join(filter(None, found.values()))


def key_text(kind: type[Group] | None, names: list[str]) -> str:
    """The line of one key of a group, or of a group within it, with the keys of its value; empty if there is none."""
    for key in keys_of_group(kind) if kind else ():
        if key.name == names[0] and len(names) > 1:
            return next(filter(None, (key_text(each, names[1:]) for each in key.groups)), "")
        if key.name == names[0]:
            inner = (f"{markdown(each.__doc__)}\n\n{listed(each)}" for each in key.groups)
            return "\n\n".join([f"- {_names([key])}: {key.meaning}", *inner])
    return ""


def _list(kind: type[Group], found: dict[type[Group], str], start: str = "") -> None:
    keys = keys_of_group(kind)
    meanings = dict.fromkeys(key.meaning for key in keys)
    lines = [f"- {_names([key for key in keys if key.meaning == each])}: {each}" for each in meanings]
    found[kind] = start + "\n".join(lines)
    for key in keys:
        for group in key.groups:
            if group not in found:
                first = next(iter(group.model_fields))
                _list(group, found, f"**`{key.name}: {{{first}: …}}`** {markdown(group.__doc__)}\n\n")


def _names(keys: list[DescribedKey]) -> str:
    """Keys with their notes, or with one note if it is the same for all."""
    notes = {key.note for key in keys}
    if len(notes) == 1:
        return ", ".join(f"`{key.name}`" for key in keys) + f" ({notes.pop()})"
    return ", ".join(f"`{key.name}` ({key.note})" for key in keys)


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if field.is_required():
        return "required"
    if value is None or value in ("", {}, ()):
        return "optional"
    if isinstance(value, Group):
        value = value.model_dump(exclude_none=True)
    if isinstance(value, str | int | float | tuple | list | dict):
        text = f"{value:g}" if isinstance(value, float) else str(value)
        text = text.lower() if isinstance(value, bool) else text
        return "default " + text.translate({ord("("): "[", ord(")"): "]", ord("'"): None})
    return ""  # a group written as other keys, which have defaults of their own


def _groups(field: FieldInfo) -> tuple[type[Group], ...]:
    """The groups in a field's type, or as which it is written."""
    marks = [each.how for each in field.metadata if isinstance(each, Written)]
    return tuple(each for each in (*marks, *_leaves(field.annotation)) if _is_group(each))


def _is_group(kind: object) -> bool:
    return inspect.isclass(kind) and issubclass(kind, Group)


def _leaves(annotation: Any) -> Iterator[Any]:
    inner = () if get_origin(annotation) is Literal else get_args(annotation)
    if not inner:
        yield annotation
    for each in inner:
        yield from _leaves(each)


def _takes(annotation: Any, *marks: Any) -> str:
    """A type in words: ``length > 0``, ``list: name``, ``warn or stop``."""
    origin, inner = get_origin(annotation), get_args(annotation)
    how = next((mark.how for mark in marks if isinstance(mark, Written)), None)
    if origin is Annotated:
        return _takes(inner[0], *inner[1:], *marks)
    if _is_group(how) or _is_group(annotation):
        return "group of keys"
    if how is not None:
        return f"{how}{_bounds(marks)}"
    if origin is Literal:
        return ", ".join(map(str, inner[:-1])) + f" or {inner[-1]}" * (len(inner) > 1) or str(inner[0])
    if origin in (tuple, list):
        each = list(dict.fromkeys(_takes(one) for one in inner if one is not ...))
        return f"list{'' if ... in inner or origin is list else f' of {len(inner)}'}: {', '.join(each)}"
    if inner and origin is not dict:  # a union
        return " or ".join(dict.fromkeys(_takes(each, *marks) for each in inner if each is not type(None)))
    return f"{_named(origin or annotation, marks)}{_bounds(marks)}"


def _named(kind: Any, marks: tuple[Any, ...]) -> str:
    functions = [mark.func for mark in marks if isinstance(mark, BeforeValidator | AfterValidator)]
    for function in functions:
        if isinstance(function, partial) and function.func is in_scale:
            return function.keywords["dimension"] + f" in {function.keywords['to']}" * bool(function.keywords["to"])
    return "name" if short_name in functions else TYPES.get(kind, "")


def _bounds(marks: tuple[Any, ...]) -> str:
    flat = [each for mark in marks for each in (mark.metadata if isinstance(mark, FieldInfo) else [mark])]
    found = {name: getattr(each, name) for each in flat for name in SIGNS if hasattr(each, name)}
    if found.get("ge", 0) > 0:
        found.pop("gt", None)
    shown = [f" {sign} {found[name]:g}" for name, sign in SIGNS.items() if name in found and abs(found[name]) < LARGE]
    return " and".join(shown)
