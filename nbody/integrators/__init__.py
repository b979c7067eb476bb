"""Integrators advance positions and velocities in time. ``INTEGRATORS`` lists them, ``OF_SYSTEMS`` those of ensembles.

``integrator.py`` defines the interface. ``schemes/`` has those that use an engine's forces, ``solvers/`` those with
compiled loops and pair sums, ``collisions/`` finds contacts. To add another, write a subclass and a line of ``INTEGRATORS``.
"""

from nbody.registry import Entry, Registry

_SCHEMES, _SOLVERS = "nbody.integrators.schemes.", "nbody.integrators.solvers."
INTEGRATORS = Registry(
    "integrator",
    {
        "taylor": Entry(_SCHEMES + "tables:Taylor", "the lecture's position update, order 1"),
        "leapfrog": Entry(_SCHEMES + "tables:Leapfrog", "kick-drift-kick, symplectic, order 2"),
        "leapfrog_dkd": Entry(_SCHEMES + "tables:LeapfrogDKD", "drift-kick-drift, symplectic, order 2"),
        "leapfrog_adaptive": Entry(
            _SCHEMES + "leapfrog_adaptive:LeapfrogAdaptive", "leapfrog with time-reversible adaptive steps, order 2"
        ),
        "leapfrog_block": Entry(
            _SCHEMES + "leapfrog_block:LeapfrogBlock", "for galaxies: leapfrog with individual block steps, order 2"
        ),
        "yoshida4": Entry(_SCHEMES + "tables:Yoshida4", "three leapfrogs per step, symplectic, order 4"),
        "forest_ruth": Entry(_SCHEMES + "tables:ForestRuth", "yoshida4 with the drift first, order 4"),
        "mclachlan4": Entry(_SCHEMES + "tables:McLachlan4", "four optimal stages, symplectic, order 4"),
        "yoshida6": Entry(_SCHEMES + "tables:Yoshida6", "seven leapfrogs per step, symplectic, order 6"),
        "hermite4": Entry(_SCHEMES + "hermite4:Hermite4", "with the jerk, one step for all bodies, order 4"),
        "hermite4_block": Entry(
            _SOLVERS + "blocks.scheme:Hermite4Block", "for star clusters: individual block steps, order 4"
        ),
        "hermite6_block": Entry(
            _SOLVERS + "blocks.scheme:Hermite6Block", "for star clusters: individual block steps, order 6"
        ),
        "ias15": Entry(_SOLVERS + "ias15:IAS15", "for few bodies: Gauss-Radau, adaptive, order 15"),
        "wisdom_holman": Entry(
            _SOLVERS + "wisdom_holman:WisdomHolman", "for planets: symplectic map with corrector, order 2"
        ),
        "hybrid": Entry(
            _SOLVERS + "hybrid:Hybrid", "for planets that meet: a symplectic map, encounters as in ias15, order 2"
        ),
    },
    meant={
        "whfast": "wisdom_holman", "whfast512": "wisdom_holman", "saba": "wisdom_holman", "mercurius": "hybrid",
        "trace": "hybrid", "verlet": "leapfrog", "velocity_verlet": "leapfrog", "kdk": "leapfrog", "dkd": "leapfrog_dkd",
        "euler": "taylor", "hermite": "hermite4", "radau": "ias15", "gauss_radau": "ias15",
    },
)  # fmt: skip
"""Every scheme a scenario may name."""

OF_SYSTEMS = Registry(
    "ensemble_integrator",
    {
        "ias15": Entry(_SOLVERS + "systems.ias15:IAS15Systems", "each system with its own adaptive steps"),
        "wisdom_holman": Entry(_SOLVERS + "systems.wisdom_holman:WisdomHolmanSystems", "all systems with one time step"),
    },
)
"""The schemes of :data:`INTEGRATORS` that move the systems of an ensemble, by classes of their own."""
