"""Leapfrog, drift-kick-drift: symplectic, time-reversible, one force evaluation per step, in its middle.

    x += v dt/2,    a = a(x),    v += a dt,    x += v dt/2

Its error constant differs from that of kick-drift-kick (:mod:`.leapfrog`), and a recorded frame costs one more force
evaluation, for its energy. Hairer, Lubich & Wanner, Geometric Numerical Integration, I.1.4.
"""

from nbody.integrators.table import MoveTable, leapfrogs_from_drifts, table


class LeapfrogDKD(MoveTable):
    """The leapfrog of REBOUND and others, for comparisons with them."""

    facts = table(leapfrogs_from_drifts(1.0), order=2, source="Verlet 1967")
