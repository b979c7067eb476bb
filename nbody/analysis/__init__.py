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

_OF_ORBITS = {
    "a": "semi-major axis, of chosen bodies (--bodies, --about),", "P": "orbital period", "q": "distance of the pericentre",
    "e": "eccentricity", "inc": "inclination", "Omega": "longitude of the ascending node",
    "omega": "argument of the pericentre", "pomega": "longitude of the pericentre", "f": "true anomaly",
    "M": "mean anomaly", "l": "mean longitude",
}  # fmt: skip

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
        **{name: Entry(f"nbody.analysis.elements:{name}", f"{text} over time") for name, text in _OF_ORBITS.items()},
        "transits": Entry("nbody.analysis.transits:TRANSITS", "transit times, observed minus calculated (O − C, TTV)"),
        "bodies": Entry("nbody.analysis.positions:BODIES", "positions at a frame (--frame)"),
        "profile": Entry("nbody.analysis:PROFILE", "density, dispersion and rotation, and residuals with --model"),
        "density": Entry("nbody.analysis.profiles:DENSITY", "density against radius at a frame"),
        "dispersion": Entry("nbody.analysis.profiles:DISPERSION", "velocity dispersion against radius at a frame"),
        "residuals": Entry("nbody.analysis.profiles:RESIDUALS", "the density over that of a model (--model)"),
        "rotation": Entry("nbody.analysis.profiles:ROTATION", "mean rotation velocity against radius at a frame"),
    },
    meant={"eccentricity": "e", "semi_major_axis": "a", "semimajor_axis": "a", "period": "P", "inclination": "inc"},
)
"""Every plot a user may name; ``overview``, ``profile`` and ``elements`` stand for several others."""
