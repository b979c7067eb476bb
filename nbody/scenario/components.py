"""Finds the component that a group of keys names, and checks its options."""

from typing import Any

from nbody.errors import InputError
from nbody.registry import Registry
from nbody.scenario.fields import Group, unknown_key, validated
from nbody.scenario.groups import PLACED, Component, Generated
from nbody.scenario.model import Scenario


def component(scenario: Scenario, at: str, chosen: Component, registry: Registry, name: str = "") -> tuple[Any, Group]:
    """The class of a component and its options.

    Args:
        scenario: the scenario, whose lines errors name.
        at: the group's key, as ``engine`` or ``fields.0``.
        chosen: the group.
        registry: the registry that lists the component.
        name: the component's name, if it differs from the written one (which may be ``auto``).

    Returns:
        The class, and an instance of its ``Options``; the latter is an instance of the class itself if that is a group.

    Raises:
        InputError: one line about an unknown name or option, or a wrong value.
    """
    key = chosen.named_by
    name = name or getattr(chosen, key)
    kind = registry.load(name, "" if name in registry else scenario.where(f"{at}.{key}"))
    model: type[Group] = getattr(kind, "Options", kind)
    for option in chosen.options:
        if option not in model.model_fields:
            known = [*type(chosen).model_fields, *model.model_fields]
            placed = type(chosen) is Generated and option in PLACED
            message = PLACED[option] if placed else unknown_key(option, known, known)
            raise InputError(scenario.where(f"{at}.{option}", f"{at}.{key}") + message)
    return kind, validated(model, chosen.options, scenario.source, tuple(at.split(".")))
