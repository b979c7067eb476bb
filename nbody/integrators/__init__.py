"""Integrators advance positions and velocities in time. ``INTEGRATORS`` lists them, ``OF_SYSTEMS`` those of ensembles.

``integrator.py`` defines the interface; ``tables.py`` has the schemes that are tables of kicks and drifts. To add another,
write a file with a subclass, and add a line to ``INTEGRATORS``.
"""

from nbody.registry import Entry, Registry

INTEGRATORS = Registry(
    "integrator",
    {
        "taylor": Entry("nbody.integrators.tables:Taylor", "the lecture's position update, order 1"),
        "leapfrog": Entry("nbody.integrators.tables:Leapfrog", "kick-drift-kick, symplectic, order 2"),
        "leapfrog_dkd": Entry("nbody.integrators.tables:LeapfrogDKD", "drift-kick-drift, symplectic, order 2"),
        "leapfrog_adaptive": Entry(
            "nbody.integrators.leapfrog_adaptive:LeapfrogAdaptive",
            "leapfrog with time-reversible adaptive steps, order 2",
        ),
        "leapfrog_block": Entry(
            "nbody.integrators.leapfrog_block:LeapfrogBlock",
            "for galaxies: leapfrog with individual block steps, order 2",
        ),
        "yoshida4": Entry("nbody.integrators.tables:Yoshida4", "three leapfrogs per step, symplectic, order 4"),
        "forest_ruth": Entry("nbody.integrators.tables:ForestRuth", "yoshida4 with the drift first, order 4"),
        "mclachlan4": Entry("nbody.integrators.tables:McLachlan4", "four optimal stages, symplectic, order 4"),
        "yoshida6": Entry("nbody.integrators.tables:Yoshida6", "seven leapfrogs per step, symplectic, order 6"),
        "hermite4": Entry("nbody.integrators.hermite4:Hermite4", "with the jerk, one step for all bodies, order 4"),
        "hermite4_block": Entry(
            "nbody.integrators.blocks.scheme:Hermite4Block", "for star clusters: individual block steps, order 4"
        ),
        "hermite6_block": Entry(
            "nbody.integrators.blocks.scheme:Hermite6Block", "for star clusters: individual block steps, order 6"
        ),
        "ias15": Entry("nbody.integrators.ias15:IAS15", "for few bodies: Gauss-Radau, adaptive, order 15"),
        "wisdom_holman": Entry(
            "nbody.integrators.wisdom_holman:WisdomHolman", "for planets: symplectic map with corrector, order 2"
        ),
        "hybrid": Entry(
            "nbody.integrators.hybrid:Hybrid",
            "for planets that meet: a symplectic map, encounters as in ias15, order 2",
        ),
    },
)
"""Every scheme a scenario may name."""

OF_SYSTEMS = Registry(
    "ensemble_integrator",
    {
        "ias15": Entry("nbody.integrators.systems.ias15:IAS15Systems", "each system with its own adaptive steps"),
        "wisdom_holman": Entry(
            "nbody.integrators.systems.wisdom_holman:WisdomHolmanSystems", "all systems with one time step"
        ),
    },
)
"""The schemes of :data:`INTEGRATORS` that move the systems of an ensemble, by classes of their own."""
