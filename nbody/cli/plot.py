"""``nbody plot``: draws a recorded run's numbers, or those of several runs, into one figure."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nbody.analysis import PLOTS
from nbody.cli.completion import recordings_and_plots
from nbody.cli.groups import grouped
from nbody.cli.options import ABOUT, Overwrite, is_recording, is_scenario, text_option, whole
from nbody.cli.streams import print_message, result, rows
from nbody.errors import InputError

if TYPE_CHECKING:
    from nbody.maps.stability_map import StabilityMap


@dataclass(frozen=True)
class Choices:
    """What the plots of a figure show."""

    frame: Annotated[
        list[int] | None,
        text_option(
            "The frames of bodies and profiles (else the first and the last); negative: from the end.",
            parser=whole,
            metavar="<list[int]>",
        ),
    ] = None
    bodies: Annotated[
        list[str] | None,
        text_option("The bodies of orbits and elements, by ids, 1,2 or 1 2, or names, b,c.", metavar="<list[text]>"),
    ] = None
    about: Annotated[str, typer.Option(help=ABOUT)] = "inner"
    resonance: Annotated[
        str, text_option("The resonance of the plot resonance: 3:2 (else the nearest of first order).", metavar="<p:q>")
    ] = ""
    model: Annotated[
        str,
        text_option("A sphere beside profiles: king, plummer, hernquist or nfw, fitted; or initial, the scenario's."),
    ] = ""
    species: Annotated[
        list[str] | None, text_option("Species that are drawn on their own: names, or all.", metavar="<list[text]>")
    ] = None
    style: Annotated[str, text_option("A matplotlib style, by its name or file (.mplstyle).", metavar="<text>")] = ""
    cylindrical: Annotated[
        bool, typer.Option("--cylindrical", help="Profiles around the axis of rotation: for discs in 3-D.")
    ] = False

    def keywords(self) -> dict[str, Any]:
        """The arguments of :func:`nbody.plot`."""
        bodies, species = ([each for word in words or [] for each in word.split(",") if each]
                           for words in (self.bodies, self.species))  # fmt: skip
        return vars(self) | {"bodies": bodies, "species": species}


@grouped
def plot(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN.h5|PLOT",
            help="Recordings, and what to plot of them: " + ", ".join(PLOTS) + "; or a map, and its quantities.",
            show_default=False,
            autocompletion=recordings_and_plots,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        text_option("The figure's file: .png, .pdf or .svg (else RUN-PLOT.png).", "--output", "-o", "--out"),
    ] = None,
    choices: Choices = Choices(),
    overwrite: Overwrite = False,
    listing: Annotated[bool, typer.Option("--list", help="List the plots and exit.")] = False,
) -> int:
    """Plot a run's numbers, or those of several runs in the same figure.

    Without the name of a plot: an overview on one page. Numbers are those
    that the run recorded; what it did not record is computed from at most
    200 frames.

    \b
    Examples:
      nbody plot output/run.h5
      nbody plot output/run.h5 energy momentum -o conserved.pdf
      nbody plot output/run.h5 profile --frame 0 40 80
      nbody plot output/run.h5 orbits --bodies 1,2
      nbody plot output/run.h5 a e resonance --bodies 1,2 --resonance 3:2
      nbody plot output/run.h5 profile --model king
      nbody plot output/run.h5 density lagrangian --species disc,halo
      nbody plot a.h5 b.h5 energy --style paper.mplstyle
      nbody plot output/map.h5 megno --style paper.mplstyle -o map.pdf
      nbody plot --list
    """
    if listing:
        rows(PLOTS.summaries())
        return 0
    words = words or []
    found = _map_of(words)
    runs, plots = _sorted(words) if found is None else ([Path(words[0])], words[1:])
    given = [name for name, value in vars(choices).items() if value != getattr(Choices(), name) and name != "style"]
    if found and given:
        raise InputError(f"--{given[0]}: is for recordings, and {words[0]} is a map; leave it out")
    if not runs:
        raise InputError("no recording is named; write, for example, 'nbody plot output/run.h5 energy'")
    from nbody.analysis.figure import plot as draw
    from nbody.analysis.saving import check_figure, default_path, save_figure

    path = check_figure(output or default_path(runs, plots), overwrite, runs)
    if found is None:
        figure = draw(runs, *plots, notify=print_message, **choices.keywords())
    else:
        figure = found.plot(*plots, style=choices.style)
    save_figure(figure, path, overwrite, print_message)
    shown = plots or (["overview"] if found is None else list(found.values))
    result(f"{path}: {', '.join(shown)} of {', '.join(map(str, runs))}")
    return 0


def _map_of(words: list[str]) -> "StabilityMap | None":
    """The map that the first word names, or None; the other words are its quantities."""
    from nbody.trajectory.grid_file import is_map

    if not words or not is_map(words[0]):
        return None
    from nbody.maps.stability_map import StabilityMap

    return StabilityMap.load(words[0])


def _sorted(words: list[str]) -> tuple[list[Path], list[str]]:
    """The words that are files, and those that are plots. Raises InputError for one that is neither, or a scenario."""
    runs, plots = [], []
    for word in words:
        path = Path(word)
        if word in PLOTS:
            plots.append(word)
        elif path.suffix and is_scenario(path):
            raise InputError(f"{word}: is a scenario; record it with 'nbody run {word}', then plot the recording")
        elif is_recording(path) or len(path.parts) > 1 or path.exists():
            runs.append(path)
        else:
            PLOTS.check(word)
    return runs, plots
