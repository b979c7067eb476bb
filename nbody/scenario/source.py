"""Where the values of a scenario were written: the file and line of each key, or the option that replaced it."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from nbody.errors import InputError, did_you_mean, printable

Keys = tuple[str, ...]
"""The way to a value: ``("integrator", "dt")``, written ``integrator.dt``."""


@dataclass(frozen=True)
class Source:
    """A scenario as it was given.

    Attributes:
        name: the file as the user named it; empty for values that come from Python.
        folder: what a relative path in the scenario starts from.
        text: the YAML as written.
        values: the values as written, before defaults, options included.
        lines: the line (from 1) of each key.
        options: the command line's option for each value that an option replaced.
    """

    name: str = ""
    folder: Path = Path(".")
    text: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[Keys, int] = field(default_factory=dict)
    options: Mapping[Keys, str] = field(default_factory=dict)

    def line(self, keys: Keys) -> int:
        """The line of a key, or of the nearest group around it; 0 when it was never written."""
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys, 0)

    def order(self, keys: Keys) -> tuple:
        """Sorts mistakes as a reader would meet them: in the file from the top, then what it lacks, then options."""
        line = self.line(keys)
        return keys in self.options, line == 0, line

    def where(self, keys: Keys) -> str:
        """``disk.yaml:7: integrator.dt: ``, or ``--dt: `` for a value that an option gave."""
        for written, option in self.options.items():
            # An option gave this value, a group that holds it, or a key below a group that nobody wrote.
            if keys[: len(written)] == written or (keys and keys not in self.lines and keys == written[: len(keys)]):
                return f"{option}: "
        line = self.line(keys)
        place = f"{self.name}:{line}" if self.name and line else self.name
        path = ".".join(part if part.isprintable() and len(part) <= 60 else ascii(part)[:60] for part in keys)
        return "".join(f"{part}: " for part in (place, path) if part)

    def with_option(self, keys: Keys, option: str, value: object, removed: Keys | None = None) -> "Source":
        """A source in which ``option`` of the command line has replaced one value, and ``removed`` another that it
        excludes. A component that is written as its name alone (``engine: cpu``) becomes a group of keys if need be."""
        values = dict(self.values)
        group = values
        for key in keys[:-1]:
            below = group.get(key)
            group[key] = (
                dict(below) if isinstance(below, Mapping) else {"name": below} if isinstance(below, str) else {}
            )
            group = group[key]
        if removed:
            group.pop(removed[-1], None)
        group[keys[-1]] = value
        return replace(self, values=values, options={**self.options, keys: option})


def open_regular(path: Path, where: str = "") -> BinaryIO:
    """An ordinary file, opened to read its bytes. (Opening a pipe would wait for ever, a device has no end.)

    Raises:
        InputError: it is missing, a directory, a pipe or device, or can't be read; ``where`` begins the line.
    """
    start = f"{where}{printable(path)}: "
    try:
        kind = os.stat(path).st_mode
        if stat.S_ISDIR(kind):
            raise InputError(f"{start}this is a directory; name a file in it")
        if not stat.S_ISREG(kind):
            raise InputError(f"{start}this is a pipe or a device; name an ordinary file")
        return open(path, "rb")
    except FileNotFoundError:
        raise InputError(f"{start}there is no such file{_nearest(path)}; check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{start}can't be read ({reason}); check the path and its permissions") from None


def _nearest(path: Path) -> str:
    """A hint at the file of the same folder whose name is nearest."""
    try:
        names = [each.name for each in path.parent.iterdir() if each.suffix == path.suffix]
    except OSError:
        return ""
    return did_you_mean(path.name, names)
