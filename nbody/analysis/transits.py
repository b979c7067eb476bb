"""The O - C diagram: observed minus calculated transit times."""

import numpy as np
from matplotlib.axes import Axes

from nbody.analysis.data import RunData
from nbody.analysis.panel import ABOVE, Plot, View, labelled, time_axis
from nbody.diagnostics.transits import LinearEphemeris, linear_ephemeris
from nbody.errors import InputError
from nbody.figures import GREY
from nbody.scenario.quantities import YEAR

SECONDS = {"yr": YEAR, "a": YEAR, "d": 86400.0, "day": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0}
"""The units of time in which O - C is shown in minutes, and their lengths."""

FEWEST = 3
"""Transits of a planet: two always fit an ephemeris."""


def draw_transits(axes: Axes, view: View) -> None:
    """The residuals of the transit times of each planet to its best linear ephemeris, over time; of one planet with the
    numbers of the transits above."""
    minutes = SECONDS.get(view.unit("time"), 0.0) / 60
    for r, run in enumerate(view.runs):
        for k, name, found in _ephemerides(run, view):
            time = found.start + found.epoch * found.period + found.residual
            label = f"{name}, P = {found.period:.7g} {run.unit('time')}".rstrip()
            style = view.style(r, k, points=True) | {"markersize": 3, "linestyle": "-", "linewidth": 0.5}
            axes.plot(time, found.residual * (minutes or 1), label=label, **style)
    axes.legend(**ABOVE)
    if len(axes.lines) == 1:
        start, period = found.start, found.period
        number = lambda t: (np.asarray(t) - start) / period, lambda n: start + np.asarray(n) * period
        axes.secondary_xaxis("top", functions=number).set_xlabel("epoch")
        axes.legend()
    axes.axhline(0, color=GREY, linewidth=0.6, zorder=1)
    axes.set_ylabel(labelled("O − C", "min" if minutes else view.unit("time")))
    time_axis(axes, view)


def _ephemerides(run: RunData, view: View) -> list[tuple[int, str, LinearEphemeris]]:
    """Those of the chosen planets with enough transits, in the unit of time that is shown, with the numbers of the planets
    in the order of colours and their names. Raises InputError: there is none."""
    rows, ids = run.run.event_rows(), run.run.id[run.rows(view.bodies, view.most_bodies)]
    rows = rows[(rows["kind"] == b"transit") & (np.isin(rows["id_1"], ids) | (not view.bodies))]
    pairs, which = np.unique(rows[["id_1", "event"]], return_inverse=True)
    found = []
    for n, (id, event) in enumerate(pairs.tolist()):
        times = rows["time"][which == n] * run.time_factor
        if len(times) >= FEWEST:
            several = (pairs["id_1"] == id).sum() > 1  # of a planet: seen from two sides
            name = f"{run.name(id)} (event {event})" if several else run.name(id)
            found.append((int(next(iter(np.flatnonzero(ids == id)), n)), name, linear_ephemeris(times)))
    if not found:
        how = "look for them in the run, as in --event 'transit(1, axis=x)'"
        raise InputError(f"{run.run.path}: has no planet with {FEWEST} transits; {how}")
    return found


TRANSITS = Plot(draw_transits, False, ("bodies",))
