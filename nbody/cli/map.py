"""``nbody map``: a number of each of many planetary systems on a grid of two values."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nbody.cli.groups import Replaced, grouped
from nbody.cli.options import AsJson, Overwrite, Quiet, Scenario, text_option
from nbody.cli.streams import Json, print_message, result_json, rows
from nbody.maps import QUANTITIES

if TYPE_CHECKING:
    from nbody.maps.stability_map import StabilityMap


@dataclass(frozen=True)
class Grid:
    """The axes of a map, and what it shows."""

    x: Annotated[
        str,
        text_option("The axis to the right: a key of the bodies and a range (0.9..1.1:400, 1e-6..1e-3:40:log) or list."),
    ] = ""
    y: Annotated[str, text_option("The axis up; without it the map has one axis.")] = ""
    quantity: Annotated[
        list[str] | None,
        text_option(
            f"What the map shows: {', '.join(QUANTITIES)}; several with commas; by default megno.", metavar="<names>"
        ),
    ] = None


@grouped
def map_systems(
    scenario: Scenario,
    replaced: Replaced,
    grid: Grid = Grid(),
    output: Annotated[Path, typer.Option("--output", "-o", help="The file of the map.")] = Path("output/map.h5"),
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Compute a number of each of many planetary systems, as one ensemble: is a system stable, and how near is chaos?

    Two values of the bodies differ from system to system. Without --x the
    axes are the ranges of the scenario's 'ensemble: {vary: …}'. After Ctrl-C
    or a crash the same command continues. 'nbody plot' draws a map,
    'nbody view' shows a system on a click, and 'nbody new' writes its scenario.

    \b
    Examples:
      nbody map chaotic_planets --x bodies.2.a=1.22..1.38:80 --y bodies.2.e=0..0.06:25
      nbody map ensemble_planets --x bodies.2.a=1.03..1.1:100 --quantity survival,closest
      nbody plot output/map.h5 -o map.png
    """
    from nbody.cli.progress import messages
    from nbody.maps.make import prepared
    from nbody.scenario.packaged import locate

    with messages(quiet) as notify:
        settings = replaced.load(locate(scenario, notify))
        made = prepared(settings, {"x": grid.x, "y": grid.y}, grid.quantity or ["megno"], output, notify, overwrite)
    return compute(made, quiet, as_json)


def compute(made: "StabilityMap", quiet: bool, as_json: bool) -> int:
    """Compute what a map lacks; returns the exit code."""
    from nbody.cli.progress import fraction_bar, messages

    with messages(quiet) as notify, fraction_bar(quiet) as show:
        finished = made.compute(show, notify)
    if as_json or not quiet:
        show_facts(made, as_json)
    if not finished:
        print_message(f"interrupted; continue with the same command, or: nbody resume {made.path}")
        return 130
    return 0


def show_facts(made: "StabilityMap", as_json: bool) -> None:
    """Print the facts about a map."""
    found = facts(made)
    if as_json:
        result_json(found)
    else:
        rows(page(found))


def facts(made: "StabilityMap") -> Json:
    """The facts about a map, in types that JSON has."""
    import numpy as np

    from nbody.trajectory.structure.layout import SYSTEM_STATUS

    axes = {name: axis for name, axis in (("x", made.x), ("y", made.y)) if axis is not None}
    return {
        "file": str(made.path), "kind": "map", "systems": made.status.size, "done": made.done,
        "axes": {
            name: {"path": path, "from": axis[0], "to": axis[-1], "count": len(axis), "unit": made.units[name]}
            for path, (name, axis) in zip(reversed(list(made.axes)), axes.items(), strict=True)
        },
        "ends": {name: int(np.sum(made.status == k)) for k, name in enumerate(SYSTEM_STATUS)},
        "quantities": {
            name: [float(each) for each in np.nanquantile(values, (0.0, 0.5, 1.0))] if made.done else []
            for name, values in made.values.items()
        },
        "provenance": made.provenance, "scenario": made.scenario.resolved(),
    }  # fmt: skip


def page(found: Json) -> dict[str, str]:
    """The same for people, one line per fact."""
    lines = {"map": f"{found['file']}, {found['done']} of {found['systems']} systems"}
    for name, axis in found["axes"].items():
        ends = f"{axis['from']:g} to {axis['to']:g} {axis['unit']}".rstrip()
        lines[name] = f"{axis['path'].removeprefix('initial.')}, {ends}, {axis['count']} values"
    scenario, chosen = found["scenario"], found["scenario"]["integrator"]
    until = "to t = {:g}".format(chosen["end"]) if chosen.get("end") is not None else f"{chosen.get('steps')} steps"
    lines |= {"scenario": str(scenario.get("name") or ""), "integrator": f"{chosen['scheme']}, {until}"}
    lines["ends"] = ", ".join(f"{count} {name}" for name, count in found["ends"].items() if count)
    for name, numbers in found["quantities"].items():
        lines[name] = "{:.4g} to {:.4g}, median {:.4g}".format(*(numbers[k] for k in (0, 2, 1))) if numbers else ""
    return {name: text for name, text in lines.items() if text}
