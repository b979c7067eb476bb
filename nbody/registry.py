"""Registries: each is the only list of the components of one kind. Components are imported when they are used.

Help texts, error messages, test parameters, benchmark rows and the README's tables are all made from registries, so a
new engine or scheme needs one file and one line. Entries name ``module:attribute``, so listing them imports nothing.
A name can have variants, after a colon: ``matrix:k07`` is the engine ``matrix`` with the kernel ``k07``.

Other packages add components by entry points: the group ``nbody.engines`` is merged into the registry of the kind
``engine``, and so on (see PLUGINS.md). They are looked up when a name is not nbody's own, so that they cost nothing
otherwise, and they never replace one of nbody's own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any

from nbody.errors import InputError, unknown

REGISTRIES = {
    "generators": "nbody.initial:GENERATORS",
    "engines": "nbody.forces:ENGINES",
    "integrators": "nbody.integrators:INTEGRATORS",
    "ensemble_integrators": "nbody.integrators:OF_SYSTEMS",
    "fields": "nbody.fields:FIELDS",
    "events": "nbody.events:EVENTS",
    "softenings": "nbody.law.gravity:LAWS",
    "observables": "nbody.diagnostics.observables:OBSERVABLES",
    "formats": "nbody.exchange:FORMATS",
    "plots": "nbody.analysis:PLOTS",
    "quantities": "nbody.maps:QUANTITIES",
}
"""The registries that ``nbody list`` shows, by what they contain."""


@dataclass(frozen=True)
class Entry:
    """The location of a component (``module:attribute``) and a summary in one line."""

    target: str
    summary: str
    variants: str = ""
    """The registry (``module:attribute``) of the variants that may follow the name and a colon, if there are any. The target
    is then a function of the variant's name (empty for none)."""
    experimental: bool = False
    """True if the component is used only when a user names it."""
    tags: tuple[str, ...] = ()
    """What is known of the component without importing it."""
    package: str = ""
    """The other package, with its version, that provides the component."""

    def load(self) -> Any:
        """Import the module and return the attribute. Raises InputError if that of another package fails."""
        try:
            return imported(self.target)
        except Exception as error:
            if not self.package:
                raise
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            line = f"{self.target} of the package {self.package} can't be imported ({reason}); mend or remove it"
            raise InputError(line) from error


@cache
def imported(target: str) -> Any:
    """Import ``module:attribute``."""
    module, attribute = target.split(":")
    return getattr(import_module(module), attribute)


class Registry:
    """Entries by name. Iteration gives the names of nbody's own components, in the order in which help texts list them;
    ``in`` and ``registry[name]`` know the components of other packages and the names of earlier versions too."""

    def __init__(
        self, kind: str, entries: dict[str, Entry], renamed: Mapping[str, str] | None = None,
        meant: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """``renamed``: names in files of earlier versions, which are accepted but not listed, and the present ones;
        ``meant``: what other programs call a component, and its name."""
        self.kind, self._entries, self.renamed, self.meant = kind, entries, renamed or {}, meant or {}

    @property
    def group(self) -> str:
        """The group of entry points with which other packages add components."""
        return f"nbody.{self.kind.removesuffix('y')}ies" if self.kind[-1] == "y" else f"nbody.{self.kind}s"

    @cached_property
    def plugins(self) -> dict[str, Entry]:
        """The components of other packages (found once per process, in some 10 ms)."""
        from importlib.metadata import entry_points

        found: dict[str, Entry] = {}
        for point in sorted(entry_points(group=self.group), key=lambda point: point.name):
            package = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
            if point.name not in self._entries:
                found.setdefault(point.name, Entry(point.value, f"from the package {package}", package=package))
        return found

    def __getitem__(self, name: str) -> Entry:
        name = self.renamed.get(name, name)
        return self._entries[name] if name in self._entries else self.plugins[name]

    def __contains__(self, name: object) -> bool:
        return name in self.renamed or name in self._entries or name in self.plugins

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def check(self, name: str, where: str = "") -> str:
        """Return ``name``, or its present name, if it is registered. Raises InputError, starting with ``where``
        (``file:line: ``), if not."""
        base, colon, variant = str(name).partition(":")
        if base not in self or (colon and not self[base].variants):
            raise unknown(self.kind, name, [*self, *self.plugins], where, self.mark, self.meant)
        if colon:
            imported(self[base].variants).check(variant, f"{where}{self.kind} '{name}': ")
        return self.renamed.get(str(name), str(name))

    def mark(self, name: str) -> str:
        """The mark shown after a name: `` (experimental)``, or nothing."""
        entry = self._entries.get(name.partition(":")[0])  # never a plugin's
        return " (experimental)" if entry and entry.experimental else ""

    def listing(self) -> str:
        """All names with their marks, separated by commas."""
        return ", ".join(name + self.mark(name) for name in self)

    def summaries(self) -> dict[str, str]:
        """A line about each component, those of other packages too."""
        entries = self._entries | self.plugins
        return {name: entry.summary + self.mark(name) for name, entry in entries.items()}

    def load(self, name: str, where: str = "") -> Any:
        """Import the component and return it. Raises InputError if the name is not registered."""
        if (own := self._entries.get(name)) and not own.variants:
            return own.load()
        base, _, variant = self.check(name, where).partition(":")
        entry = self[base]
        return entry.load()(variant) if entry.variants else entry.load()
