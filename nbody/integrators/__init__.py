"""Integrators: each scheme is a table of moves; one loop, :func:`nbody.integrators.scheme.advance`, makes the steps."""

from nbody.registry import Entry, Registry

INTEGRATORS = Registry(
    "integrator",
    {
        "taylor": Entry("nbody.integrators.taylor:TAYLOR", "the lecture's position update, order 1"),
        "leapfrog": Entry("nbody.integrators.leapfrog:LEAPFROG", "kick-drift-kick, symplectic, order 2"),
    },
)
"""Every scheme a scenario may name."""
