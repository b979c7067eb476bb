"""Cases with published answers: nbody computes each and compares. ``CASES`` lists them; ``nbody verify`` runs them.

A case is a function of the engine's name that yields :class:`Check`. To add one, write the function in ``orbits.py``,
``planets.py`` or
``systems.py``, and add a line to ``CASES``: with the tag ``cpu`` if only ``cpu`` can compute it, ``none`` if nothing moves.
"""

from nbody.registry import Entry, Registry
from nbody.verify.check import Check

__all__ = ["CASES", "Check"]

CASES = Registry(
    "case",
    {
        "kepler": Entry("nbody.verify.orbits:kepler", "an ellipse closes after its period"),
        "order": Entry("nbody.verify.orbits:order", "half the step, a quarter or a sixteenth of the error"),
        "figure_eight": Entry("nbody.verify.orbits:figure_eight", "Chenciner & Montgomery's orbit closes"),
        "pythagorean": Entry("nbody.verify.orbits:pythagorean", "Burrau's bodies at t = 10", tags=("cpu",)),
        "lagrange_triangle": Entry("nbody.verify.orbits:lagrange_triangle", "the sides stay equal"),
        "outer_solar_system": Entry("nbody.verify.orbits:outer_solar_system", "periods of the outer planets"),
        "solar_system": Entry("nbody.verify.orbits:solar_system", "the Earth after 29 years, against JPL"),
        "mercury": Entry("nbody.verify.orbits:mercury", "general relativity turns Mercury's ellipse", tags=("cpu",)),
        "stability": Entry("nbody.verify.planets:stability", "MEGNO of a regular system is 2", tags=("cpu",)),
        "kozai": Entry("nbody.verify.planets:kozai", "a companion's cycles of eccentricity", tags=("cpu",)),
        "capture": Entry("nbody.verify.planets:capture", "migration ends in the 2:1 resonance", tags=("cpu",)),
        "star_passage": Entry("nbody.verify.planets:star_passage", "e = 0.99 in long steps of hybrid", tags=("cpu",)),
        "plummer": Entry("nbody.verify.systems:plummer", "Plummer's sphere: radii, energy, equilibrium"),
        "king": Entry("nbody.verify.systems:king", "King's models: tidal and half-mass radii", tags=("none",)),
        "exponential_disk": Entry("nbody.verify.systems:exponential_disk", "Freeman's rotation curve", tags=("none",)),
        "cold_collapse": Entry("nbody.verify.systems:cold_collapse", "a cold sphere shrinks as a cycloid says"),
        "lecture": Entry("nbody.verify.systems:lecture", "action is reaction: the mean position moves evenly"),
    },
)
"""Every case of ``nbody verify``."""


def engine_of(case: str, requested: str) -> str:
    """The engine that computes a case if this one is requested: its tag, if it has one."""
    return next(iter(CASES[case].tags), requested)
