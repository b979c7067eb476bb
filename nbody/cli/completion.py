"""Shell completion: names from the registries, and the files that a command reads.

Each function takes the beginning of a word and returns its completions. Nothing here imports Numba, because the shell
runs this code on every Tab.
"""

import shlex
from collections.abc import Callable, Iterable
from glob import escape, glob

SCENARIOS = (".yaml", ".yml")
RECORDINGS = (".h5", ".hdf5", ".h5md")


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


def scenarios(incomplete: str) -> list[str]:
    """Packaged scenarios by name, and scenario files."""
    from nbody.scenario.packaged import names

    return [*_begins(names(), incomplete), *files(*SCENARIOS)(incomplete)]


def scenario_names(incomplete: str) -> list[str]:
    """Packaged scenarios by name."""
    from nbody.scenario.packaged import names

    return _begins(names(), incomplete)


def recordings_and_scenarios(incomplete: str) -> list[str]:
    """Recordings, and what :func:`scenarios` offers."""
    return [*files(*RECORDINGS)(incomplete), *scenarios(incomplete)]


def cameras(incomplete: str) -> list[str]:
    """The words of ``--camera``, and files."""
    return [*_begins(["run", "frame"], incomplete), *files(*SCENARIOS)(incomplete)]


def recordings_and_plots(incomplete: str) -> list[str]:
    """Recordings, and plots by name."""
    from nbody.analysis import PLOTS

    return [*files(*RECORDINGS)(incomplete), *_begins(PLOTS, incomplete)]


def _begins(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def engines(incomplete: str) -> list[tuple[str, str]]:
    """Engines by name, each with its summary; after a colon also the variants of an engine."""
    from nbody.forces import ENGINES
    from nbody.linalg import LADDER

    variants = [f"matrix:{rung}" for rung in LADDER] if ":" in incomplete else []
    about = {name: entry.summary + ENGINES.mark(name) for name, entry in ENGINES.items()}
    return [(name, about.get(name, "")) for name in _begins([*ENGINES, *variants], incomplete)]


def engines_or_auto(incomplete: str) -> list[tuple[str, str]]:
    """What :func:`engines` returns, and the names that stand for an engine."""
    from nbody.forces.registry import STAND_FOR

    return [*((name, STAND_FOR[name]) for name in _begins(STAND_FOR, incomplete)), *engines(incomplete)]


def integrators(incomplete: str) -> list[str]:
    """Integration schemes by name."""
    from nbody.integrators import INTEGRATORS

    return _begins(INTEGRATORS, incomplete)


def precisions(incomplete: str) -> list[str]:
    """The precisions that a scenario may have."""
    from typing import get_args

    from nbody.scenario import Scenario

    return _begins(get_args(Scenario.model_fields["precision"].annotation), incomplete)


def rungs(incomplete: str) -> list[str]:
    """Kernels of the matrix course (the ladder) and element-wise kernels."""
    from nbody.linalg import ELEMENTWISE, LADDER

    return _begins([*LADDER, *ELEMENTWISE], incomplete)
