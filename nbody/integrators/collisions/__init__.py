"""Collisions between bodies that have radii: found inside a step, in order of time.

===================== ==================================================================================
 :mod:`.span`          a step of all bodies
 :mod:`.contact`       when two bodies first touch on their paths through a step; the search for pairs
 :mod:`.step_paths`    the paths of all bodies through a step, and which touch when
 :mod:`.radii`         the radius of each body, from the scenario or from the bodies themselves
 :mod:`.collisions`    ``Collisions``: which bodies are left, what happened, and to what energy
 :mod:`.outcomes`      what becomes of two bodies that bounce, or by a user's function
 :mod:`.ending`        the contacts on the scheme's own path, where a step ends
===================== ==================================================================================

Bodies touch when their distance is the sum of their radii. Between the beginning and the end of a step each body moves on
the cubic that has its positions and velocities at both (Hermite's interpolation, error ∝ dt⁴), so bodies that fly through
each other within one step are found too. Mergers are made at the end of the step, in order of their times.
"""
