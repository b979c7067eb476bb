"""Leapfrog, kick-drift-kick: symplectic, time-reversible, one force evaluation per step.

    v += a dt/2,    x += v dt,    a = a(x),    v += a dt/2

The force at the end of a step is the force at the start of the next, so only the first step evaluates it twice.
Verlet 1967; Hairer, Lubich & Wanner, Geometric Numerical Integration, I.1.4.
"""

from nbody.integrators.table import MoveTable, leapfrogs, table


class Leapfrog(MoveTable):
    """The default."""

    facts = table(leapfrogs(1.0), order=2, source="Verlet 1967")
