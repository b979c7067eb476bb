"""``nbody list``: what exists: scenarios, generators, engines, schemes …"""

from typing import Annotated

import typer

from nbody.cli.streams import result, rows

REGISTRIES = {
    "generators": "nbody.initial:GENERATORS",
    "engines": "nbody.forces:ENGINES",
    "integrators": "nbody.integrators:INTEGRATORS",
    "fields": "nbody.fields:FIELDS",
    "softenings": "nbody.law.gravity:LAWS",
    "observables": "nbody.diagnostics.observables:OBSERVABLES",
    "formats": "nbody.exchange:FORMATS",
}
"""The registries that the command shows, by kind."""

ALSO = {"schemes": "integrators"}
"""Other names of kinds."""


def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(
            help=f"What to list: scenarios, {', '.join(REGISTRIES)}; by default everything.",
            show_default=False,
            autocompletion=lambda incomplete: [
                kind for kind in ("scenarios", *REGISTRIES) if kind.startswith(incomplete)
            ],
        ),
    ] = None,
) -> int:
    """List what a scenario or an option can name, with one line each.

    Examples:

      nbody list

      nbody list engines
    """
    from nbody.errors import unknown

    kinds, kind = ("scenarios", *REGISTRIES), ALSO.get(str(kind), kind)
    if kind is not None and kind not in kinds:
        raise unknown("kind", kind, kinds)
    for each in kinds if kind is None else (kind,):
        result(f"{each}:")
        rows(_rows(each), "  ")
    return 0


def _rows(kind: str) -> dict[str, str]:
    """The names of a kind, and a line about each."""
    from nbody.registry import imported
    from nbody.scenario import packaged
    from nbody.scenario.packaged import summary

    if kind == "scenarios":
        return {name: summary(name) for name in packaged.names()}
    found = imported(REGISTRIES[kind]).summaries()
    return imported("nbody.forces.registry:STAND_FOR") | found if kind == "engines" else found
