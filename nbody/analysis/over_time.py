"""What changes over time: energies, momenta, the virial ratio, and radii that contain parts of the mass."""

from collections.abc import Callable

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from nbody.analysis.data import RunData
from nbody.analysis.panel import (
    ABOVE,
    BESIDE,
    Plot,
    View,
    error_axis,
    frames_per_oscillation,
    kinds_legend,
    labelled,
    log_y,
    run_lines,
    time_axis,
    warn_if_sparse,
)  # fmt: skip
from nbody.diagnostics import FRACTIONS, relative_energy_error
from nbody.figures import GREY, ramp

NO_ENERGY = "plot lagrangian or momentum, which need no energies, or make the run again with 'nbody rerun'"
ENERGIES_DRAWN = {"kinetic_energy": "T", "potential_energy": "W", "total_energy": "E = T + W"}
MOMENTA = ("|P − P$_0$| / Σ m |v|", "|L − L$_0$| / Σ m |x × v|")


def _energy_error(run: RunData) -> tuple[np.ndarray, np.ndarray]:
    unknown = [f"{force} has no potential" for force in run.run.without_potential]
    run.observable("energy_error" if unknown else "total_energy", (*unknown, NO_ENERGY)[0])  # raises if there is none
    energy = run.run.energy_balance()
    return run.time, np.abs([relative_energy_error(float(value), float(energy[0])) for value in energy])


def _observed(name: str, fix: str) -> Callable[[RunData], tuple[np.ndarray, np.ndarray]]:
    """The time and an observable of a run, as :meth:`RunData.observable`."""
    return lambda run: (run.time, run.observable(name, fix))


def draw_energy(axes: Axes, view: View) -> None:
    """The relative energy error |E - E₀|/|E₀| on a logarithmic axis."""
    run_lines(axes, view, "energy error |E − E$_0$| / |E$_0$|", _energy_error)
    error_axis(axes)


def draw_energies(axes: Axes, view: View) -> None:
    """The kinetic and the potential energy, T and W, and their sum."""
    axes.set_ylabel(labelled("energy", view.unit("energy")))
    for r, run in enumerate(view.runs):
        warn_if_sparse(axes, run, frames_per_oscillation(run.observable("kinetic_energy", NO_ENERGY)))
        for k, (name, symbol) in enumerate(ENERGIES_DRAWN.items()):
            axes.plot(run.time, run.observable(name, NO_ENERGY), label=symbol, **view.style(r, k))
    axes.axhline(0, color=GREY, linewidth=0.6)
    kinds_legend(axes, view, list(ENERGIES_DRAWN.values()), **BESIDE)
    time_axis(axes, view)


def draw_momentum(axes: Axes, view: View) -> None:
    """The change of the momentum and the angular momentum, relative to the sum of magnitudes at the first frame, because the
    sum itself may be zero."""
    for r, run in enumerate(view.runs):
        time, *momenta = run.momenta()
        for k, (values, scale) in enumerate(zip(momenta, _scales(run), strict=True)):
            change = np.linalg.norm(values - values[0], axis=1) / (scale or 1.0)
            axes.plot(time, change, label=MOMENTA[k], **view.style(r, k))
    error_axis(axes)
    axes.set_ylabel("change of momentum")
    kinds_legend(axes, view, MOMENTA, **ABOVE)
    time_axis(axes, view)


def _scales(run: RunData) -> list[float]:
    """Σ m |v| and Σ m |x × v| of the first frame that can be drawn."""
    _, first = next(run.drawable("momenta", range(len(run.time)), run.particles))
    x, v = first.in_space()
    return [float(first.mass @ np.linalg.norm(each, axis=1)) for each in (v, np.cross(x, v))]


def draw_virial(axes: Axes, view: View) -> None:
    """T/|W|, with a line at 1/2, its value in equilibrium. (No line with external fields, whose energy W includes: a system
    that orbits in them has any value.)"""
    level = None if any(data.run.resolved.get("fields") for data in view.runs) else 0.5
    run_lines(axes, view, "virial ratio T / |W|", _observed("virial_ratio", NO_ENERGY), smooth=True, level=level)
    axes.margins(y=0.15)


def draw_lagrangian(axes: Axes, view: View) -> None:
    """The radii about the density centre of all bodies that contain given fractions of the mass, a line each on a
    logarithmic axis; of several runs, a line style per fraction."""
    axes.set_ylabel(labelled("Lagrangian radius", view.unit("length")))
    for r, run in enumerate(view.runs):
        time, radii = run.structure("lagrangian_radii")
        warn_if_sparse(axes, run, frames_per_oscillation(radii[:, 1]))
        for k, (fraction, colour) in enumerate(zip(FRACTIONS, ramp(len(FRACTIONS)), strict=True)):
            axes.plot(time, radii[:, k], **view.style(r, k) | ({} if view.several else {"color": colour}))
            colour = rcParams["text.color"] if view.several else colour
            if r == 0:  # a name at the end of the line, where it hides no other one
                axes.annotate(
                    f"{100 * fraction:g} %", (1, radii[-1, k]), (3, 0), ("axes fraction", "data"), "offset points",
                    va="center", color=colour, fontsize=7.5, annotation_clip=False,
                )  # fmt: skip
    log_y(axes)
    time_axis(axes, view)


def draw_core(axes: Axes, view: View) -> None:
    """The core radius Σ ρ |x − x_d| / Σ ρ about the density centre x_d (Casertano & Hut 1985), on a logarithmic axis."""
    run_lines(axes, view, labelled("core radius", view.unit("length")), lambda run: run.structure("core_radius"))
    log_y(axes)


def draw_escapers(axes: Axes, view: View) -> None:
    """The number of bodies with a positive energy, with those that the run has removed as escaped."""
    run_lines(axes, view, "escaped bodies", lambda run: run.escapers())
    for line in axes.lines:
        line.set_drawstyle("steps-post")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_ylim(0, max(1.0, axes.get_ylim()[1]))


NO_MEGNO = "record it with 'record: {observables: [megno, lyapunov]}'"


def draw_megno(axes: Axes, view: View) -> None:
    """MEGNO (Cincotta & Simó 2000), with a line at 2, its value on regular orbits; it grows as λt/2 on chaotic ones."""
    run_lines(axes, view, "MEGNO", _observed("megno", NO_MEGNO), level=2)


def draw_lyapunov(axes: Axes, view: View) -> None:
    """The estimate of the largest Lyapunov exponent on a logarithmic axis, which falls on regular orbits."""
    unit = f"1/{unit}" if (unit := view.unit("time")) else ""
    run_lines(axes, view, labelled("Lyapunov exponent", unit), _observed("lyapunov", NO_MEGNO))
    log_y(axes)


MEGNO, LYAPUNOV, CORE, ESCAPERS = map(Plot, (draw_megno, draw_lyapunov, draw_core, draw_escapers))
ENERGY, ENERGIES, VIRIAL = map(Plot, (draw_energy, draw_energies, draw_virial))
MOMENTUM, LAGRANGIAN = (Plot(each, options=("species",)) for each in (draw_momentum, draw_lagrangian))
