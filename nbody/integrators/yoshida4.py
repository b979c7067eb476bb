"""Yoshida's composition of three leapfrogs: symplectic, time-reversible, order 4, three force evaluations per step.

Steps of w₁ dt, w₀ dt and w₁ dt with w₁ = 1/(2 - 2^(1/3)) and w₀ = -2^(1/3) w₁: they add up to dt, their cubes to zero, so
the leapfrog's error of order dt³ cancels. Yoshida 1990, Physics Letters A 150, 262.
"""

from nbody.integrators.table import MoveTable, leapfrogs, table

W1 = 1 / (2 - 2 ** (1 / 3))
W0 = 1 - 2 * W1


class Yoshida4(MoveTable):
    """Long steps, small errors; needs smooth forces."""

    facts = table(leapfrogs(W1, W0, W1), order=4, source="Yoshida 1990")
