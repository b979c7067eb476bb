"""``plot``: one figure with one panel per plot, of one run or of several."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any, TypeAlias

import numpy as np
from cycler import cycler
from matplotlib import rc_context, rcParams
from matplotlib import style as styles
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nbody.analysis import FEW_OVERVIEW, OVERVIEW, PLOTS
from nbody.analysis.data import FEW, RunData, spread
from nbody.analysis.elements import resonance_of
from nbody.analysis.models import GIVEN, MODELS
from nbody.analysis.panel import Plot, View
from nbody.errors import InputError, unknown
from nbody.figures import GREY, RC, SERIES, plain, tidy_log
from nbody.trajectory import Trajectory
from nbody.trajectory.reading.systems import System, number_of_systems
from nbody.whole_file import Notify

OPEN = Trajectory, System
Source: TypeAlias = Trajectory | System | str | os.PathLike

PANEL, SINGLE = (3.4, 2.7), (5.0, 3.6)
"""Sizes in inches: of a panel among others, and of the only one."""

DPI = 200

LOOK = RC | {"axes.prop_cycle": cycler(color=SERIES), "figure.facecolor": "white"}
"""What a style may replace."""


class RunFigure(Figure):
    """A matplotlib figure that a notebook shows."""

    def _repr_png_(self) -> bytes:
        drawn = BytesIO()
        with rc_context(RC):
            self.savefig(drawn, format="png", dpi=DPI / 2)
        return drawn.getvalue()


def plot(
    run: Source | Sequence[Source],
    *plots: str,
    frame: int | Sequence[int] | None = None,
    bodies: int | str | Sequence[int | str] = (),
    cylindrical: bool = False,
    about: int | str = "inner",
    resonance: str | Sequence[int] = "",
    model: str = "",
    species: str | Sequence[str] = (),
    style: str | os.PathLike = "",
    notify: Notify = lambda line: None,
) -> RunFigure:
    """Draw plots of a run, or of several runs into the same panels.

        nbody.plot("output/run.h5")
        nbody.plot(["a.h5", "b.h5"], "energy").savefig("energy.pdf")
        nbody.plot(run, "profile", frame=[0, 40, 80])
        nbody.plot(run, "a", "e", "resonance", bodies=[1, 2], resonance="3:2")

    Args:
        run: a Trajectory, the path of a recording, a recorded Simulation, or several; one system of an ensemble is
            ``run.system(7)``.
        plots: names of :data:`~nbody.analysis.PLOTS`; none means ``overview``.
        frame: the frame or frames of ``bodies`` and profiles, from the end if negative; by default the first and the last of
            one run, the last of several.
        bodies: ids or names of the bodies of ``orbits``, of elements and of ``resonance`` (the first two); by default all
            of up to sixteen, else eight.
        cylindrical: profiles around the axis of rotation, for discs in three dimensions.
        about: the focus of elements: "inner", the centre of mass of the bodies before; "centre"; or a body, by id or name.
        resonance: ``"p:q"``, the resonance of ``resonance``; by default the nearest (q + 1):q.
        model: a sphere beside density and dispersion: ``king``, ``plummer``, ``hernquist`` or ``nfw``, fitted to the density
            of each frame, or ``initial``, that of the scenario.
        species: names of species, or ``all`` for all that have bodies: each is drawn on its own, about the centre of all.
        style: the name of a matplotlib style, or a file with one (``.mplstyle``), for fonts, lines, colours and the size.
        notify: receives a line about each quantity that is computed from a part of the frames, or is sparse.

    Raises:
        InputError: one line about a wrong choice, or about what the recording lacks.
    """
    sources: list[Any] = list(run) if isinstance(run, list | tuple) and run else [run]
    given: Any = frame, bodies, species
    frames, bodies, species = (() if x is None else tuple(x) if np.ndim(x) else (x,) for x in given)
    for name in plots:
        PLOTS.check(name)
    if model not in ("", *MODELS, GIVEN):
        raise unknown("model", model, [*MODELS, GIVEN])
    with ExitStack() as opened:
        runs = [each if isinstance(each, OPEN) else opened.enter_context(Trajectory(each)) for each in sources]
        named = zip(runs, _labels(runs), strict=True)
        data = [part for one, label in named for part in _by_system(RunData(one, label, notify))]
        for one in data:
            for each in frames:
                one.run.index(each)
        if species:
            data = [part for one in data for part in _by_species(one, species, len(data) > 1)]
        view = View(data, frames, bodies, cylindrical, about, resonance_of(resonance) if resonance else None, model)
        chosen = bool(plots) and "overview" not in plots
        panels = _panels(plots or ("overview",), view, chosen)
        options = {name for panel in panels.values() for name in panel.options}
        asked = {"model": model, "about": about != "inner", "resonance": resonance, "bodies": len(bodies)}
        if unused := next((name for name in asked if asked[name] and name not in options), ""):
            uses = ", ".join(each for each in PLOTS if unused in getattr(PLOTS.load(each), "options", ()))
            raise InputError(f"{unused}: no panel shows it; plot one of {uses}")
        with rc_context(LOOK):
            return _drawn(panels, view, chosen, style)


def styled_figure(size: tuple[float, float], style: str | os.PathLike) -> RunFigure:
    """A figure of this size, unless the style has one, which is used from now on. Raises InputError: there is no style."""
    rcParams["figure.figsize"] = size
    try:
        styles.use(os.fspath(style) or {})
    except (OSError, TypeError):
        raise InputError(
            f"style {style}: is neither a matplotlib style nor a style file; matplotlib.style.available lists the names"
        ) from None
    return RunFigure(layout="constrained")


def _labels(runs: Sequence[Trajectory | System]) -> list[str]:
    """The names of the files, with the folders that tell them apart if names are alike."""
    paths = [Path(run.path).resolve().with_suffix("") for run in runs]
    if len({path.name for path in paths}) == len(paths):
        return [path.name for path in paths]
    root = os.path.commonpath([path.parent.parent for path in paths])
    return [os.path.relpath(path, root) for path in paths]


def _by_system(data: RunData) -> list[RunData]:
    """A recording; or of an ensemble a recording for each of the systems, evenly spread, for which there are colours."""
    run, count = data.run, number_of_systems(data.run.resolved)
    if not count:
        return [data]
    shown = [run] if isinstance(run, System) else [run.system(k) for k in spread(count, len(SERIES))]
    if run not in shown and len(shown) < count:
        data.notify(f"{run.path}: {len(shown)} of its {count} systems, evenly spread")
    return [RunData(each, f"{data.label}, system {each.number}") for each in shown]


def _by_species(data: RunData, species: Sequence[str], several: bool) -> list[RunData]:
    """A recording for each chosen species, once; of ``all``, for each that has bodies. Raises InputError."""
    chosen = list(dict.fromkeys(species))
    if "all" in chosen and len(chosen) > 1:
        raise InputError("species: 'all' stands for every one; name no other beside it")
    if chosen == ["all"]:
        chosen = [data.run.species_names[k] for k in np.unique(data.run.species)]
    return [data.of_species(name, f"{data.label}, {name}" if several else name) for name in chosen]


def _panels(plots: Sequence[str], view: View, named: bool) -> dict[str, Plot]:
    """The plots by name; ``overview`` and ``profile`` become those that they stand for."""
    few = min(run.count for run in view.runs) <= FEW
    star = all(2 * run.run.mass[0] > run.run.mass.sum() for run in view.runs)  # the others go around it
    overview = ("orbits" if few else "bodies", "energy", "a", "e") if star else FEW_OVERVIEW if few else OVERVIEW
    names: list[str] = []
    for name in plots:
        found = PLOTS.load(name)
        names += [name] if isinstance(found, Plot) else overview if found is OVERVIEW else found
        names += ["residuals"] if name == "profile" and view.model else []
    panels = {name: PLOTS.load(name) for name in names}
    if short := next((run for run in view.runs if len(run.time) < 2), None):
        changes = [name for name, panel in panels.items() if panel.over_time]
        if changes and named:
            raise InputError(
                f"{short.run.path}: has one frame, and '{changes[0]}' shows a change over time; plot bodies or profile, "
                "or record more frames"
            )
        panels = {name: panel for name, panel in panels.items() if name not in changes}
    return panels or {"bodies": PLOTS.load("bodies")}


def _drawn(panels: dict[str, Plot], view: View, named: bool, style: str | os.PathLike) -> RunFigure:
    """A figure with these panels. One of an overview that can't be drawn says why."""
    columns = {1: 1, 2: 2, 4: 2}.get(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = styled_figure(SINGLE if len(panels) == 1 else (columns * PANEL[0], rows * PANEL[1]), style)
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    errors: list[InputError] = []
    for axes, panel in zip(grid, panels.values(), strict=False):
        plain(axes)
        try:
            panel.draw(axes, view)
        except InputError as error:
            errors.append(error)
            if named or len(errors) == len(panels):
                raise errors[0] from None
            axes.clear()
            axes.set_axis_off()
            reason = fill(str(error), 42, break_on_hyphens=False)
            axes.text(0.5, 0.5, reason, ha="center", va="center", fontsize=7, color=GREY, parse_math=False)
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                tidy_log(axis)
    for axes in grid[len(panels) :]:
        axes.remove()
    _headed(figure, view, columns)
    return figure


def _headed(figure: Figure, view: View, columns: int) -> None:
    """Above the panels, the name of the run; or a legend of the runs, which have the same colours in every panel."""
    if view.several:
        lines = [Line2D([], [], color=view.colour(r)) for r in range(len(view.runs))]
        labels = [f"{run.label}, N = {run.count}" for run in view.runs]
        figure.legend(lines, labels, loc="outside upper left", ncols=min(2 * columns, len(lines)))
    else:
        run = view.runs[0]
        figure.suptitle(f"{run.run.name}, N = {run.run.count}", x=0.01, ha="left", fontsize=8.5, color=GREY)
    if names := view.bodies_shown:
        place: Any = "outside right center" if view.several else "outside right upper"  # a legend of runs is above
        figure.legend(names.values(), names.keys(), loc=place, handlelength=1.5, markerscale=2)
