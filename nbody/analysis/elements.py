"""Orbital elements of chosen bodies over time, and the angles of a resonance between two of them."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from nbody.analysis.data import RunData
from nbody.analysis.panel import ABOVE, Plot, View, frames_per_oscillation, labelled, time_axis, warn_if_sparse
from nbody.diagnostics.orbits import LABELS, Elements, focus_of
from nbody.errors import InputError

CYCLIC, FAST = ("Omega", "omega", "pomega", "f", "M", "l"), ("f", "M", "l")
"""Angles, which are drawn as points: a line would cross the panel at every turn; and those that turn once per period."""

WIDE = 20
"""Lengths and times that differ by more than this factor have a logarithmic axis."""


def draw_element(name: str, axes: Axes, view: View) -> None:
    """One element of each chosen body; of several runs, whose colours differ, a line style or a marker per body."""
    text, unit = LABELS[name]
    axes.set_ylabel(labelled(text, unit if unit in ("", "°") else view.unit(unit)))
    for r, run in enumerate(view.runs):
        shown, (time, orbits) = _orbits(run, view)
        values = getattr(orbits, name) * (run.time_factor if unit == "time" else 1)
        for column, (k, label) in enumerate(shown.items()):
            style = _points(view, r, k, len(time)) if name in CYCLIC else view.style(r, k)
            (line,) = axes.plot(time, np.where(np.isfinite(y := values[:, column]), y, np.nan), **style)
            view.bodies_shown.setdefault(label, line)
        if name in FAST and np.ptp(time) > 0:
            warn_if_sparse(axes, run, np.nanmin(orbits.P) * run.time_factor * (len(time) - 1) / np.ptp(time))
        elif name not in CYCLIC:
            warn_if_sparse(axes, run, min(map(frames_per_oscillation, values.T)))
    if name in CYCLIC:
        _angle_axis(axes, 0)
    elif unit in ("length", "time"):
        y = np.concatenate([line.get_ydata() for line in axes.lines])
        if np.nanmin(y, initial=np.inf) > 0 and np.nanmax(y, initial=0) > WIDE * np.nanmin(y):
            axes.set_yscale("log")
    time_axis(axes, view)


def draw_resonance(axes: Axes, view: View) -> None:
    """The angles p λ' - q λ - (p - q) ϖ and p λ' - q λ - (p - q) ϖ' of the resonance p:q between an inner body (λ, ϖ) and an
    outer one (λ', ϖ'), which librate in the resonance and circulate outside it (Murray & Dermott 1999, section 8.2)."""
    for r, run in enumerate(view.runs):
        shown, (time, orbits) = _orbits(run, view)
        if len(shown) < 2:
            raise InputError(f"{run.run.path}: a resonance needs two bodies with orbits; give the ids of two")
        inner, outer = np.argsort(orbits.a[0, :2])
        p, q = view.resonance or _nearest(orbits, inner, outer)
        longitude, pomega = orbits.l, orbits.pomega
        for k, body in enumerate((inner, outer)):
            angle = p * longitude[:, outer] - q * longitude[:, inner] - (p - q) * pomega[:, body]
            name = f"{p}λ' − {q if q > 1 else ''}λ − {p - q if p - q > 1 else ''}ϖ" + "'" * k
            axes.plot(time, (angle + 180) % 360 - 180, label=name, **_points(view, r, k, len(time)))
        if r == 0:
            bodies = list(shown.values())
            axes.set_ylabel(f"{p}:{q} of {bodies[inner]} and {bodies[outer]} [°]")
    axes.legend(handles=axes.lines[:2], ncols=2, handletextpad=0, markerscale=2, **ABOVE)
    _angle_axis(axes, -180)
    time_axis(axes, view)


def _orbits(run: RunData, view: View) -> tuple[dict[int, str], tuple[np.ndarray, Elements]]:
    """The names of the chosen bodies, by their numbers in the order of colours; times (T,) and orbits (T, K). The focus
    is left out, unless it was chosen."""
    rows, ids = run.rows(view.bodies, view.most_bodies), run.run.id
    about = focus_of(run.run, view.about)
    focus = ids[0] if about == "inner" else about
    shown = {k: run.name(ids[row]) for k, row in enumerate(rows) if view.bodies or ids[row] != focus}
    if not shown:
        raise InputError(f"{run.run.path}: there is no body with an orbit; name two or more")
    return shown, run.orbits([int(ids[rows[k]]) for k in shown], about)


def _points(view: View, run: int, kind: int, count: int) -> dict[str, Any]:
    """A style: points that are larger where there are few."""
    return view.style(run, kind, points=True) | {"markersize": min(max(60 / count**0.5, 1), 3), "markeredgewidth": 0}


def _angle_axis(axes: Axes, low: int) -> None:
    axes.set_ylim(low, low + 360)
    axes.set_yticks(range(low, low + 361, 90))


def _nearest(orbits: Elements, inner: int, outer: int) -> tuple[int, int]:
    """The resonance (q + 1):q that is nearest to the periods of the first frame."""
    ratio = float(orbits.P[0, outer] / orbits.P[0, inner])
    q = round(1 / (ratio - 1)) if 1 < ratio < np.inf else 1
    return max(q, 1) + 1, max(q, 1)


def resonance_of(text: str | Sequence[int]) -> tuple[int, int]:
    """``"3:2"`` or (3, 2) as p > q > 0. Raises InputError."""
    parts = [str(each) for each in text] if np.ndim(text) else str(text).split(":")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts) or len({*map(int, parts)} - {0}) < 2:
        raise InputError(f"resonance: must be two different whole numbers, as in 3:2; got {text!a}")
    return max(map(int, parts)), min(map(int, parts))


a, P, q, e, inc, Omega, omega, pomega, f, M, l = (  # noqa: E741
    Plot(partial(draw_element, name), options=("bodies", "about", "species")) for name in LABELS
)
RESONANCE = Plot(draw_resonance, options=("bodies", "about", "resonance"))
