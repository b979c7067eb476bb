"""Replaces values of a scenario: by options of the command line, ``--set``, and keywords of Python."""

import itertools
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import BaseModel

from nbody.errors import InputError, unknown
from nbody.given import number_in, shown
from nbody.law import LAWS
from nbody.scenario.events import event_of_text, listed
from nbody.scenario.groups import IntegratorKeys, Record
from nbody.scenario.options import OPTIONS
from nbody.scenario.quantities import is_quantity
from nbody.scenario.source import Keys, ScenarioText
from nbody.scenario.values import meant_among
from nbody.scenario.yaml_reader import read_assignment

Assignment = tuple[Keys, str, object]
"""The keys of a value, the option or the keyword that gives it, and the value."""


EXCLUDES: dict[Keys, Keys] = {
    (key, one): (key, other)
    for key, group in (("integrator", IntegratorKeys), ("record", Record))
    for one, other in itertools.chain(*map(itertools.permutations, group.exclusive))
}
"""Pairs of keys that exclude each other: an option that sets the first removes the second."""


def overridden(source: ScenarioText, assignments: Sequence[str], by: str, options: Mapping[str, object]) -> ScenarioText:
    """The source with options in place of its values; see :meth:`nbody.scenario.Scenario.override`."""
    initial = source.values.get("initial")
    bodies = initial if isinstance(initial, Mapping) else {}
    origin = shown(bodies["file"]) if "file" in bodies else "arrays" if bodies.get("source") == "arrays" else ""
    given: list[Assignment] = []
    for option, value in options.items():
        if option not in OPTIONS:
            raise unknown("option", option, OPTIONS)
        keys = OPTIONS[option].keys
        if value is None:
            continue
        if keys[0] == "initial" and origin:
            raise InputError(f"--{option}: the bodies come from {origin}; leave this option out")
        given.append((keys, f"--{option.replace('_', '-')}", plain_python(value)))
    read = [read_assignment(each, by) for each in assignments]
    given = sorted(given, key=_depth) + [(keys, f"{by} {'.'.join(keys)}", value) for keys, value in read]
    return _assigned(source, given)


def with_keywords(source: ScenarioText, values: Mapping[str, object], top: Collection[str]) -> ScenarioText:
    """The source with keyword arguments of Python in place of its values. ``top``: the keys of a scenario."""
    return _assigned(source, sorted(_of_keywords(plain_python(values), top), key=_depth))


def _assigned(source: ScenarioText, values: Iterable[Assignment]) -> ScenarioText:
    """The source with these values in place of its own, one after the other."""
    given = dict[Keys, str]()
    for keys, name, value in values:
        excluded = None if value is None else EXCLUDES.get(keys)  # null removes a key, and sets none
        if excluded in given:
            first, second = (
                ".".join(each) if by == each[0] else by for each, by in ((keys, name), (excluded, given[excluded]))
            )
            raise InputError(f"{first}: cannot be combined with {second}; leave one of the two out")
        source = _without_foreign_options(source, keys, value, given)
        if name.removeprefix("--") == "softening":
            source = _softened(source, name, value)
        elif action := ACTIONS.get(name.removeprefix("--")):
            source = _with_events(source, name, value, action)
        else:
            source = source.with_option(keys, name, value, excluded)
        if value is not None:
            given[keys] = name
    return source


def _depth(value: Assignment) -> int:
    """In this order none replaces another one: ``engine`` before ``engine.accuracy``."""
    return len(value[0])


ACTIONS = {"event": "record", "stop-when": "stop", "stop_when": "stop"}
"""The options that add events, and what happens at these."""


def _with_events(source: ScenarioText, option: str, value: object, action: str) -> ScenarioText:
    """The source with further events. Raises InputError: a text is none."""
    replaced_by = dict(source.replaced_by)
    try:
        found = listed(source.values.get("events") or [])
        for text in value if isinstance(value, list | tuple) else [value]:
            replaced_by["events", str(len(found))] = option
            found.append(event_of_text(str(text)) | {"action": action})
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None
    return replace(source, values={**source.values, "events": found}, replaced_by=replaced_by)


def _softened(source: ScenarioText, option: str, value: object) -> ScenarioText:
    """The source with a softening in short (``plummer:0.01``); a softening without a length drops the one written."""
    found = softening_keys(value, option)
    law = str(found["softening"])
    removed = None if law in LAWS and LAWS.load(law).has_length else ("gravity", "length")
    source = source.with_option(("gravity", "softening"), option, law, removed)
    return source.with_option(("gravity", "length"), option, found["length"]) if "length" in found else source


def _without_foreign_options(source: ScenarioText, keys: Keys, value: object, given: Container[Keys]) -> ScenarioText:
    """Drop the options of a scheme that is replaced by another one, but those ``given`` with it. (An engine replaces its
    whole group.)"""
    group = source.values.get(keys[0])
    if keys != ("integrator", "scheme") or not isinstance(group, Mapping) or group.get(keys[1]) == value:
        return source
    kept = {key: value for key, value in group.items() if key in IntegratorKeys.model_fields or (keys[0], key) in given}
    return replace(source, values={**source.values, keys[0]: kept})


def plain_python(value: object) -> Any:
    """``value`` in Python's types: NumPy scalars and arrays, groups of keys, and units and quantities of Astropy or AMUSE
    inside it are converted; ``300 * u.Msun`` becomes the text ``300.0 solMass``."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if (unit := getattr(value, "unit", None)) is not None:
        plain, symbol = plain_python(getattr(value, "value", getattr(value, "number", value))), str(unit)
        symbol = symbol.replace("Sun", "sun")  # AMUSE's MSun
        return _with_unit(plain, symbol) if symbol else plain
    if hasattr(value, "decompose") and hasattr(value, "physical_type"):
        return str(value)
    if isinstance(value, Mapping):
        return {key: plain_python(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_python(each) for each in value]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _with_unit(value: Any, symbol: str) -> Any:
    return [_with_unit(each, symbol) for each in value] if isinstance(value, list) else f"{value!r} {symbol}"


def _of_keywords(values: Mapping[str, object], top: Collection[str]) -> Iterator[Assignment]:
    """What the keywords ``values`` set. ``top``: the keys of a scenario. Raises InputError: there is no such keyword."""
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, Mapping) and name in top:
            for key, each in value.items():
                yield (name, str(key)), name, each
        elif name in OPTIONS:
            yield OPTIONS[name].keys, name, value
        elif name in top and name != "initial":
            yield (name,), name, value
        else:
            known = [*OPTIONS, *(key for key in top if key not in ("initial", *OPTIONS))]
            raise unknown("keyword", name, known, meant=meant_among(known))


def softening_keys(value: object, option: str = "softening") -> dict[str, object]:
    """``softening`` and ``length`` of a softening in short: ``0.01`` and ``"0.01"`` (Plummer's), ``"plummer:0.01"``,
    ``("plummer", 0.01)``, or a name alone. The length may be one per species, ``{"stars": 0.01, "halo": 0.1}``, or a list of
    one per body. Raises InputError: the length is not a number; the line begins with ``option``."""
    if isinstance(value, Mapping):
        return dict(value) if "softening" in value else {"softening": "plummer", "length": value}
    name: Any = value
    length: Any = None
    if isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str):
        name, length = value
    if isinstance(name, str) and length is None:
        name, colon, after = name.partition(":")
        length = after if colon else None
        if not colon and (number_in(name) is not None or is_quantity(name)):
            name, length = "plummer", name
    elif not isinstance(name, str):
        name, length = "plummer", name
    if isinstance(length, str):
        number = number_in(length)
        if number is None and not is_quantity(length):
            raise InputError(f"{option}: '{length}' is not a length; write it as in 'plummer:0.01'")
        length = length if number is None else number
    return {"softening": name} if length is None else {"softening": name, "length": length}
