"""Integrators advance positions and velocities in time. ``INTEGRATORS`` lists them.

``integrator.py`` defines the interface; ``table.py`` has the schemes that are tables of kicks and drifts. To add one, write
a file with a subclass, and add a line to ``INTEGRATORS``.
"""

from nbody.registry import Entry, Registry

INTEGRATORS = Registry(
    "integrator",
    {
        "taylor": Entry("nbody.integrators.taylor:Taylor", "the lecture's position update, order 1"),
        "leapfrog": Entry("nbody.integrators.leapfrog:Leapfrog", "kick-drift-kick, symplectic, order 2"),
        "yoshida4": Entry("nbody.integrators.yoshida4:Yoshida4", "three leapfrogs per step, symplectic, order 4"),
        "hermite4": Entry("nbody.integrators.hermite4:Hermite4", "with the jerk, one step for all bodies, order 4"),
    },
)
"""Every scheme a scenario may name."""
