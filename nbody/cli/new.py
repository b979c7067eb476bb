"""``nbody new`` and ``nbody scenarios``: the scenarios that come with nbody."""

from pathlib import Path
from typing import Annotated

import typer

from nbody.cli.completion import scenario_names
from nbody.cli.options import AsJson
from nbody.cli.streams import print_message, result, result_json, rows


def new(
    name: Annotated[
        str,
        typer.Argument(
            help="A scenario that comes with nbody; 'nbody scenarios' lists them.",
            show_default=False,
            autocompletion=scenario_names,
        ),
    ],
    target: Annotated[
        Path | None,
        typer.Argument(help="The new file (.yaml), or a folder; by default NAME.yaml here.", show_default=False),
    ] = None,
) -> int:
    """Copy a scenario with its comments, to change it. An existing file is never overwritten.

    Examples:

      nbody new galaxy_collision

      nbody new plummer my_cluster.yaml
    """
    from nbody.errors import printable
    from nbody.scenario.packaged import copy

    path = copy(name, target)
    print_message(f"edit it, then run it with: nbody run {printable(path)}")
    result(str(path))
    return 0


def scenarios(
    as_json: AsJson = False,
) -> int:
    """List the scenarios that come with nbody, each with a line about it.

    Examples:

      nbody scenarios
    """
    from nbody.scenario import packaged
    from nbody.scenario.packaged import summary

    found = {name: summary(name) for name in packaged.names()}
    if as_json:
        result_json(found)
    else:
        rows(found)
    return 0
