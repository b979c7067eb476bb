"""The events that a run looks for: the group ``events``, and an event as a short text."""

import ast
import re
from collections.abc import Mapping
from typing import Any, Literal

from nbody.given import number_in, shown
from nbody.scenario.bodies import Component
from nbody.scenario.values import Name

EXAMPLE = "distance(0, 1) < 0.01"

COMPARED = {"<": "below", ">": "above"}
"""The keys that a comparison stands for."""

FLAGS = {"true": True, "yes": True, "false": False, "no": False}


class EventChoice(Component):
    """An event, ``{kind: distance, bodies: [0, 1], below: 0.01}``, in short ``distance(0, 1) < 0.01``.

    Attributes:
        kind: its name. Its keys stand beside it.
        action: record it, or stop the run with the step in which it happens; in short ``distance(0, 1) < 0.01: stop``.
    """

    named_by = "kind"

    kind: Name
    action: Literal["record", "stop"] = "record"

    @classmethod
    def _of_short(cls, value: object) -> object:
        return event_of_text(value) if isinstance(value, str) else value


def events_from(values: object) -> object:
    """Convert one event, or several, to a tuple; None if there are none."""
    return None if values is None else tuple(listed(values)) or None


def listed(values: object) -> list[Any]:
    """A list of events, each a group of keys, a text, or whatever else was given; for texts with an action, as in
    ``distance(0, 1) < 0.01: stop``, the keys. Raises ValueError: a text is no event."""
    found: list[Any] = []
    for value in values if isinstance(values, list | tuple) else [values]:
        if isinstance(value, Mapping) and value and all("(" in str(key) for key in value):
            found += [event_of_text(str(text)) | {"action": action} for text, action in value.items()]
        elif isinstance(value, str | Mapping) or callable(value):
            found.append(value)
        else:
            raise ValueError(f"must be a list of events, as in '- {EXAMPLE}', got {shown(value)}")
    return found


def event_of_text(text: str) -> dict[str, Any]:
    """The keys of an event in short: ``KIND(BODY, …, KEY=VALUE, …)``, and ``< VALUE`` or ``> VALUE`` after it for the keys
    ``below`` and ``above`` (of an escape, ``radius``), and ``: stop`` at its end for an action. Values are numbers, names,
    ``true``, ``false``, or numbers with a unit: ``0.01 au``. Raises ValueError."""
    parts = re.fullmatch(r"([^<>:]*)([<>]?)=?([^<>:]*)(?::\s*(record|stop)\s*)?", text)
    call, compared, value, action = parts.groups() if parts else ("", "", "", None)
    try:
        found = ast.parse(call.strip(), mode="eval").body
        if isinstance(found, ast.Name):
            found = ast.Call(found, [], [])
        if not (isinstance(found, ast.Call) and isinstance(found.func, ast.Name)):
            raise ValueError
        keys: dict[str, Any] = {"kind": found.func.id}
        if found.args:
            keys["bodies"] = [_value(each) for each in found.args]
        keys |= {str(each.arg): _value(each.value) for each in found.keywords}
        if compared:
            key = "radius" if (found.func.id, compared) == ("escape", ">") else COMPARED[compared]
            if not value.strip():
                raise ValueError
            number = number_in(value)
            keys[key] = value.strip() if number is None else number  # a text with a unit, which the scenario converts
        keys |= {"action": action} if action else {}
    except (SyntaxError, ValueError):
        raise ValueError(f"{shown(text)} is no event; write it as in '{EXAMPLE}' or 'transit(1, axis=x)'") from None
    return keys


def _value(node: ast.expr) -> object:
    """A number, a list of numbers, a text, or true or false as in YAML; another name is a text, and so is ``-x``."""
    if isinstance(node, ast.Name):
        return FLAGS.get(node.id.lower(), node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Name):
        return f"-{node.operand.id}"
    return ast.literal_eval(node)
