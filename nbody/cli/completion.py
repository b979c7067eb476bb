"""What the shell offers after Tab: the names of the registries, and the files that a command reads.

Each function takes the word begun so far and returns the words it may become. Nothing here imports Numba: a shell that
waits half a second for Tab is one without completion.
"""

import shlex
from collections.abc import Callable, Iterable
from glob import escape, glob

SCENARIOS = (".yaml", ".yml")
RECORDINGS = (".h5", ".hdf5", ".h5md")


def files(*suffixes: str) -> Callable[[str], list[str]]:
    """Files of these kinds here and one folder down. (Typer's scripts put a blank behind what is offered, so a folder
    would be a dead end; where nothing is offered, the shell goes on with all files.)"""

    def offer(incomplete: str) -> list[str]:
        here = escape(incomplete)
        found = (path for below in ("*", "*/*") for suffix in suffixes for path in sorted(glob(here + below + suffix)))
        return [path for path in found if shlex.quote(path) == path]

    return offer


def _begins(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def engines(incomplete: str) -> list[tuple[str, str]]:
    """Engines by name, each with what it is, and the variants of one that has some, once its colon is there."""
    from nbody.forces import ENGINES
    from nbody.linalg import LADDER

    variants = [f"matrix:{rung}" for rung in LADDER] if ":" in incomplete else []
    about = {name: entry.summary + ENGINES.mark(name) for name, entry in ENGINES.items()}
    return [(name, about.get(name, "")) for name in _begins([*ENGINES, *variants], incomplete)]


def engines_or_auto(incomplete: str) -> list[tuple[str, str]]:
    """The same, and ``auto``."""
    auto = [(name, "the fastest on this machine") for name in _begins(["auto"], incomplete)]
    return [*auto, *engines(incomplete)]


def integrators(incomplete: str) -> list[str]:
    """Schemes by name."""
    from nbody.integrators import INTEGRATORS

    return _begins(INTEGRATORS, incomplete)


def precisions(incomplete: str) -> list[str]:
    """The precisions that a scenario may have."""
    from typing import get_args

    from nbody.scenario import Scenario

    return _begins(get_args(Scenario.model_fields["precision"].annotation), incomplete)


def rungs(incomplete: str) -> list[str]:
    """Rungs of the ladder and element-wise kernels."""
    from nbody.linalg import ELEMENTWISE, LADDER

    return _begins([*LADDER, *ELEMENTWISE], incomplete)
