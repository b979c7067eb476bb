"""The source of a scenario's values: the file and line of each key, or the option that replaced it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nbody.errors import InputError, shortened
from nbody.scenario import packaged
from nbody.scenario.quantities import Scale, magnitude

Keys = tuple[str, ...]
"""The path of a value: ``("integrator", "dt")``, written ``integrator.dt``."""

SHORT = ""
"""The key of a value in the place of a group (``engine: cpu``) when an option adds others to it; see
:class:`~nbody.scenario.values.Group`."""


@dataclass(frozen=True)
class ScenarioText:
    """A scenario as the user wrote it.

    Attributes:
        name: the file as the user named it; empty for values that come from Python.
        folder: the folder from which relative paths in the scenario start.
        text: the YAML as written.
        values: the values as written, including options, without defaults.
        lines: the line of each key, counted from 1.
        replaced_by: for each value that an option of the command line replaced, that option.
        scale: the units, which convert quantities; None if the scenario has none.
        bodies: those that a Python program gave as arrays, in its process.
    """

    name: str = ""
    folder: Path = Path(".")
    text: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[Keys, int] = field(default_factory=dict)
    replaced_by: Mapping[Keys, str] = field(default_factory=dict)
    scale: Scale | None = None
    bodies: Any = field(default=None, compare=False, repr=False)

    def line(self, keys: Keys) -> int:
        """The line of a key, or of the innermost group around it that was written; 0 if there is none."""
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys, 0)

    def order(self, keys: Keys) -> tuple:
        """A sort key for errors: first those in the file from top to bottom, then missing keys, then options."""
        line = self.line(keys)
        return keys in self.replaced_by, line == 0, line

    def farthest(self, at: Keys) -> tuple[Keys, object]:
        """The keys and the value of the number or quantity below ``at`` that differs most from 1, by orders of magnitude;
        no keys if none differs by more than ten."""
        found: list[tuple[float, Keys, object]] = [(10.0, (), None)]

        def visit(value: object, keys: Keys) -> None:
            if isinstance(value, Mapping):
                for key, each in value.items():
                    visit(each, (*keys, str(key)))
            elif isinstance(value, list | tuple):
                for k, each in enumerate(value):
                    visit(each, (*keys, str(k)))
            elif keys[: len(at)] == at and (number := magnitude(value)):
                found.append((abs(math.log10(number)), keys, value))

        visit(self.values, ())
        return max(found, key=lambda each: each[0])[1:]

    def where(self, keys: Keys, *others: Keys) -> str:
        """The beginning of an error: ``mine.yaml:7: integrator.dt: ``, or ``--dt: `` for a value from an option.

        ``others``: keys whose values this one does not fit. If options have replaced these, or values in the same part of a
        scenario that comes with nbody, they are named instead of the file: ``--integrator: engine: ``.
        """
        if option := self._option(keys):
            if option == keys[0] and keys[1:] and keys[1].isdecimal():  # a keyword of Python that is a list
                option = ".".join(keys)
            return f"{option}: "
        options = [option for each in others if (option := self._option(each))]
        if not options and self.name and self.folder in packaged.FOLDERS:
            options = [option for written, option in self.replaced_by.items() if written[:1] == keys[:1]]
        line = self.line(keys)
        file = f"{self.name}:{line}" if self.name and line else self.name
        location = ", ".join(dict.fromkeys(options)) or file
        path = ".".join(part if part.isprintable() and len(part) <= 60 else ascii(part)[:60] for part in keys if part)
        return "".join(f"{part}: " for part in (location, path) if part)

    def _option(self, keys: Keys) -> str:
        """The option that replaced a value or a group that contains it, or that set a key in a group that was not written;
        empty if there is none."""
        around = [(*keys, SHORT), *(keys[:end] for end in range(len(keys), 0, -1))]
        found = [self.replaced_by[each] for each in around if each in self.replaced_by]
        if keys and keys not in self.lines:
            found += [option for written, option in self.replaced_by.items() if written[: len(keys)] == keys]
        return next(iter(found), "")

    def with_option(self, keys: Keys, option: str, value: object, removed: Keys | None = None) -> "ScenarioText":
        """A copy in which an option of the command line has replaced one value and removed another (``removed``) that it
        excludes."""
        values: Any = dict(self.values)
        group, replaced_by = values, {**self.replaced_by, keys: option}
        for depth, key in enumerate(keys[:-1], 1):
            index = index_in(group, key, option)
            below = _copy(group[index] if isinstance(group, list) else group.get(key))
            if isinstance(below, dict) and SHORT in below:  # there may be no such group: then the option is wrong
                replaced_by[*keys[:depth], SHORT] = option
            group[index] = below
            group = below
        if removed:
            group.pop(removed[-1], None)
        group[index_in(group, keys[-1], option)] = value
        return replace(self, values=values, replaced_by=replaced_by)


def _copy(value: Any) -> dict | list:
    """A copy of a list or a group of keys; else a group in the place of the value."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    return {} if value is None else {SHORT: value}


def index_in(group: Any, key: str, option: str) -> Any:
    """The index of a list that a key such as ``0`` or an item's name names; the key itself in a group of keys."""
    if not isinstance(group, list):
        return key
    for index, item in enumerate(group):
        if isinstance(item, Mapping) and item.get("name") == key:
            return index
    if not key.isdecimal() or len(key) > len(str(len(group))) or int(key) >= len(group):
        raise InputError(f"{option}: the list has {len(group)} items, counted from 0; there is no '{shortened(key, 60)}'")
    return int(key)
