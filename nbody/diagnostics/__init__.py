"""Quantities of the particles at one moment: functions of :class:`~nbody.particles.Particles`, in float64.

=================== =======================================================================
 :mod:`.structure`   centres, local density, core radius, Lagrangian radii
 :mod:`.energy`      conserved quantities from a run's sums, virial ratio, energy error, escapers
 :mod:`.orbits`      orbital elements about any focus
 :mod:`.transits`    the linear ephemeris of transit times
 :mod:`.profile`     density, velocity dispersion and rotation against radius
 :mod:`.observables` what a run may record with each frame
 :mod:`.gpu_density` the local density on a GPU
=================== =======================================================================

Lengths, masses and velocities are in the units of the particles. Every function is deterministic.
"""

from nbody.diagnostics.energy import escapers as escapers
from nbody.diagnostics.energy import relative_energy_error as relative_energy_error
from nbody.diagnostics.energy import virial_ratio as virial_ratio
from nbody.diagnostics.profile import Profile as Profile
from nbody.diagnostics.profile import radial_profile as radial_profile
from nbody.diagnostics.structure import FRACTIONS as FRACTIONS
from nbody.diagnostics.structure import centre_of_mass as centre_of_mass
from nbody.diagnostics.structure import centre_velocity as centre_velocity
from nbody.diagnostics.structure import core_radius as core_radius
from nbody.diagnostics.structure import density_centre as density_centre
from nbody.diagnostics.structure import half_mass_radius as half_mass_radius
from nbody.diagnostics.structure import lagrangian_radii as lagrangian_radii
from nbody.diagnostics.structure import local_density as local_density
