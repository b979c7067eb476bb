"""A registry: the one list of what exists of a kind, loaded only when it is used.

Help texts, error messages, test parameters, benchmark rows and the README's tables are all made from registries, so a
new engine or scheme is one file and one line. Entries name ``module:attribute``, so that listing them imports nothing.
A name may have variants, after a colon: ``matrix:k07`` is the engine ``matrix`` with the rung ``k07``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from nbody.errors import unknown


@dataclass(frozen=True)
class Entry:
    """Where one thing lives (``module:attribute``) and what it is, in one line."""

    target: str
    summary: str
    variants: str = ""
    """The registry (``module:attribute``) of the words that may follow the name and a colon, where there are any: the
    target is then a function of such a word, or of none."""
    experimental: bool = False
    """True for what a user gets only by naming it."""

    def load(self) -> Any:
        """Import the module and return the attribute."""
        return _imported(self.target)


def _imported(target: str) -> Any:
    module, attribute = target.split(":")
    return getattr(import_module(module), attribute)


class Registry(Mapping[str, Entry]):
    """Names to entries, in the order a reader should meet them."""

    def __init__(self, kind: str, entries: dict[str, Entry]) -> None:
        self.kind = kind
        self._entries = entries

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def check(self, name: str, where: str = "") -> str:
        """``name`` if it is registered; else an error with the nearest name, after ``where`` (``file:line: ``)."""
        base, colon, variant = str(name).partition(":")
        if base not in self._entries or (colon and not self._entries[base].variants):
            raise unknown(self.kind, name, self._entries, where, self.mark)
        if colon:
            _imported(self._entries[base].variants).check(variant, f"{where}{self.kind} '{name}': ")
        return str(name)

    def mark(self, name: str) -> str:
        """What to show behind a name: `` (experimental)``, or nothing."""
        entry = self._entries.get(name.partition(":")[0])
        return " (experimental)" if entry and entry.experimental else ""

    def listing(self) -> str:
        """All names, marked, for a sentence."""
        return ", ".join(name + self.mark(name) for name in self)

    def load(self, name: str, where: str = "") -> Any:
        """The thing itself, imported now."""
        base, _, variant = self.check(name, where).partition(":")
        entry = self._entries[base]
        return entry.load()(variant) if entry.variants else entry.load()
