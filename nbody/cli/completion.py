"""Shell completion: names from the registries, and the files that a command reads.

Each function takes the beginning of a word and returns its completions. Nothing here imports Numba, because the shell
runs this code on every Tab.
"""

import shlex
from collections.abc import Callable, Mapping
from glob import escape, glob
from typing import Any

from nbody.registry import Registry, imported
from nbody.scenario.packaged import SUFFIXES as SCENARIOS
from nbody.trajectory.writing.output_path import SUFFIXES as RECORDINGS


def files(*suffixes: str) -> Callable[[str], list[str]]:
    """A completion function for files with these suffixes, in the given folder and one level below.

    (Typer's scripts append a space to a completion, so completing a folder would be a dead end. If nothing is returned,
    the shell completes file names itself.)
    """

    def offer(incomplete: str) -> list[str]:
        here = escape(incomplete)
        found = (path for below in ("*", "*/*") for suffix in suffixes for path in sorted(glob(here + below + suffix)))
        return [path for path in found if shlex.quote(path) == path]

    return offer


def words(*known: str) -> Callable[[str], list[str]]:
    """A completion function for these words."""
    return lambda incomplete: [word for word in known if word.startswith(incomplete)]


def either(*offers: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """What each of several completion functions offers."""
    return lambda incomplete: [each for offer in offers for each in offer(incomplete)]


def scenario_names(incomplete: str) -> list[str]:
    """Packaged scenarios by name."""
    from nbody.scenario.packaged import names

    return words(*names())(incomplete)


def _plots(incomplete: str) -> list[str]:
    from nbody.analysis import PLOTS

    return words(*PLOTS)(incomplete)


def names(*sources: str | Registry) -> Callable[[str], list[tuple[str, str]]]:
    """A completion function for names, each with a line about it.

    Args:
        sources: registries, mappings of names to lines, or names alone; each may be a text ``module:attribute``.
    """

    def offer(incomplete: str) -> list[tuple[str, str]]:
        rows: dict[str, str] = {}
        for source in sources:
            rows |= _rows(imported(source) if isinstance(source, str) else source, ":" in incomplete)
        return [(name, about) for name, about in rows.items() if name.startswith(incomplete)]

    return offer


def _rows(names: Any, with_variants: bool) -> dict[str, str]:
    if not isinstance(names, Registry):
        return dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, "")
    variants = {name: imported(names[name].variants) for name in names if names[name].variants and with_variants}
    return names.summaries() | {f"{name}:{each}": "" for name, found in variants.items() for each in found}


scenarios = either(scenario_names, files(*SCENARIOS))
recordings_and_scenarios = either(files(*RECORDINGS), scenarios)
recordings_and_plots = either(files(*RECORDINGS), _plots)
cameras = either(words("run", "frame"), files(*SCENARIOS))
engines = names("nbody.forces:ENGINES")
precisions = names("nbody.scenario.options:PRECISIONS")
rungs = names("nbody.linalg:LADDER", "nbody.linalg:ELEMENTWISE")
