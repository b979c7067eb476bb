"""From a group of keys to the component that it names and its checked options."""

from typing import Any

from nbody.errors import InputError
from nbody.registry import Registry
from nbody.scenario.fields import Group, unknown_key, validated
from nbody.scenario.groups import NAMES, Component
from nbody.scenario.model import Scenario


def component(scenario: Scenario, at: str, chosen: Component, registry: Registry, name: str = "") -> tuple[Any, Group]:
    """The class of a component and its options.

    Args:
        scenario: where the group was written, for errors.
        at: the group's key, as ``engine``.
        chosen: the group.
        registry: where its component is listed.
        name: the component's name, if it is another than the written one (which may be ``auto``).

    Returns:
        The class, and an instance of its ``Options``, or of the class itself if it is a group of keys.

    Raises:
        InputError: one line about a name or an option that does not exist, or a wrong value.
    """
    key = NAMES[type(chosen)]
    kind = registry.load(name or getattr(chosen, key), scenario.where(f"{at}.{key}"))
    model: type[Group] = getattr(kind, "Options", kind)
    for option in chosen.options:
        if option not in model.model_fields:
            known = [*type(chosen).model_fields, *model.model_fields]
            message = unknown_key(option, model.model_fields or known, known)
            raise InputError(scenario.where(f"{at}.{option}") + message)
    return kind, validated(model, chosen.options, scenario.source, (at,))
