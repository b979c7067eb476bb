"""Yoshida's composition of seven leapfrogs: symplectic, time-reversible, order 6, seven force evaluations per step.

The fractions w₃ w₂ w₁ w₀ w₁ w₂ w₃ of the time step are his solution A: they add up to 1, and the error terms of order dt³
and dt⁵ cancel. Yoshida 1990, Physics Letters A 150, 262, table 1.
"""

from nbody.integrators.table import MoveTable, leapfrogs, table

W1, W2, W3 = -1.17767998417887100695, 0.23557321335935813368, 0.78451361047755726382
W0 = 1 - 2 * (W1 + W2 + W3)


class Yoshida6(MoveTable):
    """For smooth forces and small errors: pays where yoshida4 would need steps a third as long."""

    facts = table(leapfrogs(W3, W2, W1, W0, W1, W2, W3), order=6, source="Yoshida 1990")
