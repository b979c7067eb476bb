"""The relative energy error over time, of one run or of several."""

import numpy as np
from matplotlib.axes import Axes

from nbody.analysis.data import RunData
from nbody.analysis.panel import Plot, View, error_axis, run_lines
from nbody.diagnostics import relative_energy_error

NO_ENERGY = "plot lagrangian or momentum, which need no energies, or make the run again with 'nbody rerun'"


def _error(run: RunData) -> tuple[np.ndarray, np.ndarray]:
    run.observable("total_energy", NO_ENERGY)  # raises if it was not recorded
    energy = run.run.energy_balance()
    return run.time, np.abs([relative_energy_error(float(value), float(energy[0])) for value in energy])


def draw(axes: Axes, view: View) -> None:
    """|E - E₀|/|E₀| on a logarithmic axis."""
    run_lines(axes, view, _error)
    error_axis(axes)
    axes.set_ylabel("energy error |E − E$_0$| / |E$_0$|")


PLOT = Plot(draw)
