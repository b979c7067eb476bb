"""What the plots have in common: a plot's entry, the choices of a figure, labels, axes, lines over time."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from nbody.analysis.data import FEW, RunData
from nbody.analysis.models import GIVEN, MODELS, Model, fitted, given
from nbody.diagnostics import Profile, radial_profile
from nbody.errors import InputError
from nbody.figures import GREY, RED, SERIES, ramp

ENOUGH, FEW_POINTS, SMALL_CHANGE = 10, 5, 0.1
"""Frames per oscillation that show its shape: with 10 a chord is up to 5 % of the amplitude away from a sine, with 5 19 %.
The fewest frames, and the smallest change in units of the mean, from which an oscillation is recognized."""

LINES: tuple[Any, ...] = ("-", "--", ":", "-.")
MARKERS = "os^Dv"
"""Line styles and markers, for what colours do not tell apart."""

BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1), "handlelength": 1.5}
ABOVE: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2, "handlelength": 1.5}
"""A legend's place to the right of a panel or above it, where it hides nothing."""


@dataclass
class View:
    """What a figure shows.

    Attributes:
        runs: one or more runs.
        frames: the frames of profiles and positions; empty for the default.
        bodies: those whose orbits are drawn, by ids or names; empty for the default.
        cylindrical: profiles against the distance from the axis instead of the centre.
        about: the focus of orbital elements, as in :func:`nbody.orbits`.
        resonance: p > q of a resonance p:q; None for the nearest of first order.
        model: the name of the sphere beside profiles, as in :mod:`.models`; empty for none.
        bodies_shown: the bodies of the panels of elements, which share a legend, and a line of each.
        models_named: the models that a legend has described.
    """

    runs: Sequence[RunData]
    frames: Sequence[int] = ()
    bodies: Sequence[int | str] = ()
    cylindrical: bool = False
    about: int | str = "inner"
    resonance: tuple[int, int] | None = None
    model: str = ""
    bodies_shown: dict[str, Line2D] = field(default_factory=dict)
    models_named: list[Model] = field(default_factory=list)
    _profiles: dict[tuple[int, int], Profile] = field(default_factory=dict)
    _models: dict[tuple[int, int], Model] = field(default_factory=dict)

    @property
    def several(self) -> bool:
        """True if there are several runs: then colours tell runs apart, and line styles whatever else there is."""
        return len(self.runs) > 1

    @property
    def most_bodies(self) -> int:
        """The bodies of a run whose orbits are drawn if none is named: of a few, such as the Solar System's, all."""
        few = self.runs[0].count <= FEW
        return (len(LINES) if few else 2) if self.several else FEW if few else 8

    def colour(self, run: int, kind: int = 0) -> Any:
        """The colour of a line of a run: that of the run if there are several, else that of what the line shows."""
        series = _colours()
        if len(self.runs) > len(series):
            return ramp(len(self.runs))[run]
        return series[(run if self.several else kind) % len(series)]

    def style(self, run: int, kind: int = 0, points: bool = False) -> dict[str, Any]:
        """How a line or the points of a run look: of several runs, or where colours are used up, line styles and markers
        tell kinds apart."""
        k = kind if self.several else kind // len(_colours())
        look = {"linestyle": "", "marker": MARKERS[k % len(MARKERS)]} if points else {"linestyle": LINES[k % len(LINES)]}
        return look | {"color": self.colour(run, kind)}

    def unit(self, quantity: str) -> str:
        """The symbol of a unit if all runs have the same one, else nothing."""
        symbols = {run.unit(quantity) for run in self.runs}
        return symbols.pop() if len(symbols) == 1 else ""

    def moments(self) -> Iterator[tuple[int, int, str, Any, int]]:
        """Run, frame, label, colour and number of everything that a plot at a frame shows: by default the first and the last
        frame of one run, the last frame of several."""
        frames = self.frames or ((-1,) if self.several else (0, -1))
        for r, run in enumerate(self.runs):
            chosen = {run.run.index(frame): frame for frame in reversed(frames)}  # each frame once
            colours = [self.colour(r)] * len(chosen) if self.several else ramp(len(chosen))
            for n, (k, colour) in enumerate(zip(reversed(chosen), colours, strict=True)):
                label = f"t = {run.time[k]:.4g} {run.unit('time')}".rstrip()
                if self.several:  # times differ
                    label = {0: "first frame", -1: "last frame"}.get(chosen[k], f"frame {chosen[k]}")
                yield r, k, label, colour, n

    def profile(self, run: int, frame: int) -> Profile:
        """The profile of a run at a frame, around its density centre; computed once per figure.

        Raises:
            InputError: too few bodies.
        """
        if (run, frame) not in self._profiles:
            centre, _ = self.runs[run].centre(frame)
            p = self.runs[run].particles(frame)
            self._profiles[run, frame] = radial_profile(p, centre=centre, cylindrical=self.cylindrical)
            if not len(self._profiles[run, frame].radius):
                raise InputError(
                    f"{self.runs[run].run.path}: frame {frame}: a profile needs more bodies at different radii; plot orbits"
                )
        return self._profiles[run, frame]

    def sphere(self, run: int, frame: int) -> Model:
        """The model beside this profile; fitted once per figure. Raises InputError: there is none."""
        if (run, frame) not in self._models:
            profile, data = self.profile(run, frame), self.runs[run]
            if not self.model:
                raise InputError(f"residuals: of which model? Give one of {', '.join([*MODELS, GIVEN])} (--model king)")
            if profile.cylindrical:
                raise InputError(f"model {self.model}: is a sphere, and the profile is about an axis; leave one out")
            species = "" if data.species is None else data.run.species_names[data.species]
            found = given(data.run, species) if self.model == GIVEN else fitted(self.model, profile, data.run.G)
            self._models[run, frame] = found
        return self._models[run, frame]


@dataclass(frozen=True)
class Plot:
    """A plot: ``draw(axes, view)``; ``over_time`` if it shows a change and needs two frames; the options that count."""

    draw: Callable[[Axes, View], None]
    over_time: bool = True
    options: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        """What it shows."""
        return inspect.getdoc(getattr(self.draw, "func", self.draw)) or ""


def _colours() -> list[Any]:
    return rcParams["axes.prop_cycle"].by_key().get("color", list(SERIES))


def labelled(text: str, unit: str) -> str:
    """An axis' label with its unit, if there is one."""
    return f"{text} [{unit}]" if unit else text


def kinds_legend(axes: Axes, view: View, labels: Sequence[str], **place: Any) -> None:
    """A legend of what the lines show; of several runs, whose lines have colours, of the line styles in order."""
    if not view.several:
        axes.legend(**place)
        return
    lines = [Line2D([], [], color=rcParams["text.color"], linestyle=LINES[k % len(LINES)]) for k in range(len(labels))]
    axes.legend(lines, labels, **place)


def time_axis(axes: Axes, view: View) -> None:
    """Time along x, over all runs."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.set_xlabel(labelled("time", view.unit("time")))
    first, last = min(run.time.min() for run in view.runs), max(run.time.max() for run in view.runs)
    if first < last:
        axes.set_xlim(first, last)


def run_lines(
    axes: Axes, view: View, label: str, values: Callable[[RunData], tuple[np.ndarray, np.ndarray]], smooth: bool = False,
    level: float | None = None,
) -> None:  # fmt: skip
    """One line per run, and a dotted one at a ``level``; of a curve that is smooth in time a warning where the frames do not
    show its shape."""
    if level is not None:
        axes.axhline(level, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
    axes.set_ylabel(label)
    for r, run in enumerate(view.runs):
        time, found = values(run)
        axes.plot(time, found, **view.style(r))
        if smooth:
            warn_if_sparse(axes, run, frames_per_oscillation(found))
    time_axis(axes, view)


def frames_per_oscillation(values: np.ndarray) -> float:
    """How many frames (T,) an oscillation of a curve takes, from the ratio of its second differences to its amplitude: of
    cos(wk) at the frames k it is 2 - 2 cos w. Infinite where the curve changes by less than 10 %: that may be noise."""
    values = values[np.isfinite(values)]
    if len(values) <= FEW_POINTS or not (size := np.std(values)) > SMALL_CHANGE * abs(np.mean(values)):
        return np.inf
    bend = np.sqrt(np.mean(np.diff(values, 2) ** 2)) / size
    return float(2 * np.pi / np.arccos(1 - min(bend, 4.0) / 2)) if bend else np.inf


def warn_if_sparse(axes: Axes, run: RunData, frames: float, what: str = "") -> None:
    """Say above the panel, and in a line, that an oscillation has too few frames for the shape of its curve."""
    if frames < ENOUGH:
        few = f"{frames:.2g} frames per oscillation"
        axes.set_title(f"{few}: too few", loc="right", fontsize=7, color=RED)
        run.notify(f"{run.run.path}: {what or axes.get_ylabel()}: {few}, too few to show its shape; record more often")


def log_y(axes: Axes) -> None:
    """A logarithmic axis, if a line has a positive value; zeros are left out, and of two frames a dot remains."""
    if _positive(axes):
        axes.set_yscale("log", nonpositive="mask")
        for line in axes.lines:
            if np.count_nonzero(np.asarray(line.get_ydata(), float) > 0) == 1:
                line.set(marker="o", markersize=4, clip_on=False)


def _positive(axes: Axes) -> list[np.ndarray]:
    """The positive finite values of each line that has some."""
    values = [np.asarray(line.get_ydata(), float) for line in axes.lines]
    return [each for y in values if len(each := y[(y > 0) & np.isfinite(y)])]


def error_axis(axes: Axes) -> None:
    """A logarithmic axis for errors, which does not follow each change of sign down to rounding."""
    log_y(axes)
    positive = _positive(axes)
    bottom = min((np.quantile(e, 0.02) / 30 for e in positive), default=0.0)
    if any(e.min() < bottom for e in positive):
        axes.set_ylim(bottom=bottom)
