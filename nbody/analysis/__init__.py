"""Plots of recorded runs. ``PLOTS`` lists them; :func:`nbody.analysis.figure.plot` draws any of them into one figure.

============== ==================================================================
 :mod:`.figure` ``plot``: one figure of several plots and runs
 :mod:`.data`   what a plot reads from a recording, or computes from its frames
 :mod:`.panel`  what the plots have in common: labels, lines of runs, profiles
 :mod:`.saving` the file of a figure
 :mod:`.plots`  one file per plot
============== ==================================================================
"""

from nbody.registry import Entry, Registry

OVERVIEW = ("bodies", "density", "dispersion", "energy", "virial", "lagrangian")
FEW_OVERVIEW = ("orbits", "energy", "momentum", "virial")
"""The overview of a run with few bodies, which has no profiles."""

PROFILE = ("density", "dispersion", "rotation")

PLOTS = Registry(
    "plot",
    {
        "overview": Entry(
            "nbody.analysis:OVERVIEW", "one page: the bodies, their profiles, energy and radii over time"
        ),
        "energy": Entry("nbody.analysis.plots.energy:PLOT", "relative energy error over time"),
        "energies": Entry("nbody.analysis.plots.energies:PLOT", "kinetic, potential and total energy over time"),
        "momentum": Entry("nbody.analysis.plots.momentum:PLOT", "change of the momentum and the angular momentum"),
        "virial": Entry("nbody.analysis.plots.virial:PLOT", "virial ratio T/|W| over time"),
        "lagrangian": Entry("nbody.analysis.plots.lagrangian:PLOT", "radii of 10, 50 and 90 % of the mass over time"),
        "core": Entry("nbody.analysis.plots.core:PLOT", "core radius over time (Casertano & Hut 1985)"),
        "orbits": Entry("nbody.analysis.plots.orbits:PLOT", "paths of chosen bodies (--bodies)"),
        "bodies": Entry("nbody.analysis.plots.bodies:PLOT", "positions at a frame (--frame)"),
        "profile": Entry("nbody.analysis:PROFILE", "density, dispersion and rotation, three panels"),
        "density": Entry("nbody.analysis.plots.density:PLOT", "density against radius at a frame"),
        "dispersion": Entry("nbody.analysis.plots.dispersion:PLOT", "velocity dispersion against radius at a frame"),
        "rotation": Entry("nbody.analysis.plots.rotation:PLOT", "mean rotation velocity against radius at a frame"),
    },
)
"""Every plot a user may name; ``overview`` and ``profile`` stand for several others."""
