"""Initial conditions: generators, or the user's own bodies.

========================= ============================================================================================
 :mod:`.make`             the bodies of a scenario
 :mod:`.bodies`           bodies from files; :mod:`.combine`: several parts; :mod:`.ensemble`: many systems
 :mod:`.registry`         ``GENERATORS``; :mod:`.functions`: each of them as a function of :mod:`nbody`
 :mod:`.generator`        the interface of a generator
------------------------- --------------------------------------------------------------------------------------------
 :mod:`.simple`           boxes, clouds, a cold sphere; :mod:`.few`: two and three bodies; :mod:`.solar`
 :mod:`.planets`          orbital elements (:mod:`.orbit`); :mod:`.annulus`: discs of planetesimals, rings
 :mod:`.cluster`          what star clusters share, with :mod:`.masses`: :mod:`.plummer`, :mod:`.spheres`
 :mod:`.eddington`        spheres in equilibrium from their density, which may be a :mod:`.formula`
 :mod:`.exponential_disk` disc galaxies, with :mod:`.softened_forces`; :mod:`.galaxy_collision`
 :mod:`.sampling`         random numbers with the same bits on every machine
========================= ============================================================================================
"""

from nbody.initial.make import check_initial as check_initial
from nbody.initial.make import files_read as files_read
from nbody.initial.make import make_particles as make_particles
from nbody.initial.make import number_of_bodies as number_of_bodies
from nbody.initial.make import resolved_initial as resolved_initial
from nbody.initial.registry import GENERATORS as GENERATORS
