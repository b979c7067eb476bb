"""What a force evaluation computes."""

from enum import IntFlag
from functools import cache


class Want(IntFlag):
    """What is to be computed for the positions, or belongs to them already. Each includes the acceleration."""

    NOTHING = 0
    ACCELERATION = 0b0001
    JERK = 0b0011
    """The time derivative of the acceleration too, from positions and velocities."""
    ENERGY = 0b0101
    """Numbers q_i with which W = ½ Σ m_i q_i is the potential energy. Where each pair is computed once, they cost less than
    the potential: the whole term of a pair goes to one of the two bodies."""
    POTENTIAL = 0b1101
    """The potential of each body per unit mass, φ_i = -G Σ_{j≠i} m_j u_ij. These are such numbers q_i, so it includes
    the energy."""


@cache
def missing(want: Want, current: Want) -> Want:
    """What of ``want`` is not in ``current``. (Cached, since Python takes 2 µs for an operation on flags.)"""
    return want & ~current


@cache
def union(want: Want, current: Want) -> Want:
    """Both."""
    return want | current
