"""Stability maps: a number of each of many planetary systems, which differ in two values.

:mod:`.stability_map` has ``nbody.map``, which computes a map in blocks of an ensemble's systems and keeps it in a file;
:mod:`.quantities` what a map may show; :mod:`.picture` draws it.
"""

from nbody.registry import Entry, Registry

QUANTITIES = Registry(
    "quantity",
    {
        name: Entry(f"nbody.maps.quantities:{target}", summary)
        for name, target, summary in (
            ("megno", "Megno", "⟨Y⟩ of the variational equations: 2 is regular, more is chaotic"),
            ("lyapunov", "Lyapunov", "the rate at which near orbits part, per unit of time"),
            ("survival", "Survival", "the time until planets meet or collide, or one is far away: survival(radius=50)"),
            ("closest", "LeastDistance", "the least distance of two bodies"),
            ("e_max", "LargestEccentricity", "the largest eccentricity, of all bodies or of some: e_max(1)"),
            ("amplitude", "Amplitude", "of the angle of a resonance, in degrees: amplitude(1, 2, p=3, q=2)"),
        )
    },
)
"""What 'nbody map --quantity' may name."""
