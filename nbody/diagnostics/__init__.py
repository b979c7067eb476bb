"""Quantities of the particles at one moment: functions of :class:`~nbody.particles.Particles`, in float64.

=================== =======================================================================
 :mod:`.energy`      conserved quantities from a run's sums, virial ratio, energy error
 :mod:`.centre`      centre of mass, and its velocity
 :mod:`.density`     local density from the distance to the k-th neighbour
 :mod:`.gpu_density` the same on a GPU, with the sort of :mod:`.gpu_sort`
 :mod:`.core`        density centre and core radius (Casertano & Hut 1985)
 :mod:`.lagrangian`  Lagrangian radii, half-mass radius
 :mod:`.profile`     density, velocity dispersion and rotation against radius
 :mod:`.escapers`    bodies with a positive energy
 :mod:`.observables` what a run may record with each frame
=================== =======================================================================

Lengths, masses and velocities are in the units of the particles. Every function is deterministic.
"""

from nbody.diagnostics.centre import centre_of_mass, centre_velocity
from nbody.diagnostics.core import core_radius, density_centre
from nbody.diagnostics.density import local_density
from nbody.diagnostics.energy import relative_energy_error, virial_ratio
from nbody.diagnostics.escapers import escapers
from nbody.diagnostics.lagrangian import FRACTIONS, half_mass_radius, lagrangian_radii
from nbody.diagnostics.profile import Profile, radial_profile

__all__ = [
    "FRACTIONS",
    "Profile",
    "centre_of_mass",
    "centre_velocity",
    "core_radius",
    "density_centre",
    "escapers",
    "half_mass_radius",
    "lagrangian_radii",
    "local_density",
    "radial_profile",
    "relative_energy_error",
    "virial_ratio",
]
