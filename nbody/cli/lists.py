"""``nbody list``, ``nbody scenarios`` and ``nbody new``: what exists, and a copy of a scenario to change."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from nbody.cli.completion import scenario_names, words
from nbody.cli.options import AsJson, Quantity, argument, numbers, text_option
from nbody.cli.streams import pages, print_message, result, result_json, rows
from nbody.errors import did_you_mean, printable, unknown
from nbody.registry import REGISTRIES, imported

KINDS = ("scenarios", *REGISTRIES)
ALSO = {"schemes": "integrators"}  # other names of kinds


def list_names(
    kind: Annotated[
        str | None,
        argument(f"What to list: {', '.join(KINDS)}, or the name of one; by default everything.", words(*KINDS)),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """List what a scenario or an option can name, with one line each; of one name, its parameters, units and defaults.

    \b
    Examples:
      nbody list
      nbody list engines
      nbody list king
      nbody list --json
    """
    kind = ALSO.get(str(kind), kind)
    if kind is not None and kind not in KINDS:
        result_json(_texts(kind, as_json)) if as_json else pages(_texts(kind, as_json))
        return 0
    found = {each: _rows(each) for each in (KINDS if kind is None else (kind,))}
    if as_json:
        result_json(found)
        return 0
    for each, lines in found.items():
        result(f"{each}:")
        rows(lines, "  ")
    return 0


def _texts(name: str, as_json: bool) -> dict[str, str]:
    """What there is to know of the components of a name. Raises InputError."""
    from nbody.cli.components import found, page

    if did_you_mean(name, KINDS) and not any(name in imported(each) for each in REGISTRIES.values()):
        raise unknown("kind", name, KINDS)
    return found(name) if as_json else page(name)


def _rows(kind: str) -> dict[str, str]:
    """The names of a kind, and a line about each."""
    from nbody.scenario import packaged

    if kind == "scenarios":
        return {name: packaged.summary(name) for name in packaged.names()}
    from nbody.cli.components import summaries

    return summaries(kind)


def scenarios(as_json: AsJson = False) -> int:
    """List the scenarios that come with nbody, each with a line about it.

    \b
    Examples:
      nbody scenarios
    """
    show: Callable[[dict[str, str]], None] = result_json if as_json else rows
    show(_rows("scenarios"))
    return 0


def new(
    name: Annotated[
        str, argument("A scenario that comes with nbody ('nbody scenarios' lists them), or a map.", scenario_names)
    ],
    target: Annotated[Path | None, argument("The new file (.yaml), or a folder; by default NAME.yaml here.")] = None,
    point: Annotated[
        Quantity,
        text_option("Of a map: the values of its axes; the nearest system is written.", parser=numbers, metavar="X,Y"),
    ] = None,
) -> int:
    """Copy a scenario with its comments, to change it; or write that of a map's system. No file is overwritten.

    \b
    Examples:
      nbody new galaxy_collision
      nbody new plummer my_cluster.yaml
      nbody new output/map.h5 --point 1.05,0.2 system.yaml
    """
    from nbody.scenario.packaged import copy, write

    if point is None:
        path = copy(name, target)
    else:
        from nbody.maps.stability_map import StabilityMap

        found = StabilityMap.load(name)
        path = write(found.at(*point[:2]).to_yaml().encode(), found.scenario.name, target)
    print_message(f"edit it, then run it with: nbody run {printable(path)}")
    result(str(path))
    return 0
