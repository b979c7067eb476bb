"""Plots of recorded runs. ``PLOTS`` lists them; :func:`nbody.analysis.figure.plot` draws any of them into one figure.

:mod:`.over_time`, :mod:`.elements`, :mod:`.transits`, :mod:`.profiles` and :mod:`.positions` have the plots, functions that
draw into a panel. :mod:`.panel` has what they share, :mod:`.arcs` the paths between frames that are far apart, :mod:`.data`
what a plot reads from a recording or computes from its frames, :mod:`.figure` the function ``plot``, and :mod:`.saving` a
figure's file.
"""

from nbody.registry import Entry, Registry

OVERVIEW = ("bodies", "density", "dispersion", "energy", "virial", "lagrangian")
FEW_OVERVIEW = ("orbits", "energy", "momentum", "virial")
"""The overview of a run with few bodies, which has no profiles."""

PROFILE = ("density", "dispersion", "rotation")

ELEMENTS = ("a", "e", "inc", "pomega")

PLOTS = Registry(
    "plot",
    {
        "overview": Entry("nbody.analysis:OVERVIEW", "one page: the bodies, profiles, energy and radii over time"),
        "energy": Entry("nbody.analysis.over_time:ENERGY", "relative energy error over time"),
        "energies": Entry("nbody.analysis.over_time:ENERGIES", "kinetic, potential and total energy over time"),
        "momentum": Entry("nbody.analysis.over_time:MOMENTUM", "change of the momentum and the angular momentum"),
        "virial": Entry("nbody.analysis.over_time:VIRIAL", "virial ratio T/|W| over time"),
        "lagrangian": Entry("nbody.analysis.over_time:LAGRANGIAN", "radii of 10, 50 and 90 % of the mass over time"),
        "core": Entry("nbody.analysis.over_time:CORE", "core radius over time (Casertano & Hut 1985)"),
        "escapers": Entry("nbody.analysis.over_time:ESCAPERS", "bodies that are unbound or have escaped, over time"),
        "megno": Entry("nbody.analysis.over_time:MEGNO", "chaos over time: MEGNO, which is 2 for regular orbits"),
        "lyapunov": Entry("nbody.analysis.over_time:LYAPUNOV", "estimate of the largest Lyapunov exponent over time"),
        "orbits": Entry("nbody.analysis.positions:ORBITS", "paths of chosen bodies (--bodies)"),
        "elements": Entry("nbody.analysis:ELEMENTS", "orbital elements over time: a, e, inc and pomega, four panels"),
        "resonance": Entry("nbody.analysis.elements:RESONANCE", "angles of a resonance (--resonance 3:2)"),
        "a": Entry("nbody.analysis.elements:A", "semi-major axis over time, of chosen bodies (--bodies, --about)"),
        "P": Entry("nbody.analysis.elements:P", "orbital period over time"),
        "q": Entry("nbody.analysis.elements:Q", "distance of the pericentre over time"),
        "e": Entry("nbody.analysis.elements:E", "eccentricity over time"),
        "inc": Entry("nbody.analysis.elements:INC", "inclination over time"),
        "Omega": Entry("nbody.analysis.elements:NODE", "longitude of the ascending node over time"),
        "omega": Entry("nbody.analysis.elements:ARGUMENT", "argument of the pericentre over time"),
        "pomega": Entry("nbody.analysis.elements:PERICENTRE", "longitude of the pericentre over time"),
        "f": Entry("nbody.analysis.elements:TRUE", "true anomaly over time"),
        "M": Entry("nbody.analysis.elements:MEAN", "mean anomaly over time"),
        "l": Entry("nbody.analysis.elements:LONGITUDE", "mean longitude over time"),
        "transits": Entry("nbody.analysis.transits:TRANSITS", "transit times, observed minus calculated (O − C, TTV)"),
        "bodies": Entry("nbody.analysis.positions:BODIES", "positions at a frame (--frame)"),
        "profile": Entry("nbody.analysis:PROFILE", "density, dispersion and rotation, and residuals with --model"),
        "density": Entry("nbody.analysis.profiles:DENSITY", "density against radius at a frame"),
        "dispersion": Entry("nbody.analysis.profiles:DISPERSION", "velocity dispersion against radius at a frame"),
        "residuals": Entry("nbody.analysis.profiles:RESIDUALS", "the density over that of a model (--model)"),
        "rotation": Entry("nbody.analysis.profiles:ROTATION", "mean rotation velocity against radius at a frame"),
    },
)
"""Every plot a user may name; ``overview``, ``profile`` and ``elements`` stand for several others."""
