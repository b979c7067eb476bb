"""What a force evaluation computes."""

from enum import IntFlag
from functools import cache


class Outputs(IntFlag):
    """The results to compute for the positions, or that are current for them. Each includes the acceleration."""

    NOTHING = 0
    ACCELERATION = 0b0001
    JERK = 0b0011
    """The time derivative of the acceleration too, from positions and velocities."""
    ENERGY = 0b0101
    """Numbers q_i such that W = ½ Σ m_i q_i is the potential energy. If each pair is computed once, they cost less than the
    potential: the whole term of a pair is added to one of the two bodies."""
    POTENTIAL = 0b1101
    """The potential of each body per unit mass, φ_i = -G Σ_{j≠i} m_j u_ij. The φ_i are valid q_i, so this includes
    ``ENERGY``. (With external fields both are q_i + 2 Φ_i, since the potential Φ of a field counts whole.)"""


@cache
def missing(outputs: Outputs, current: Outputs) -> Outputs:
    """The part of ``outputs`` that is not in ``current``. (Cached, since Python takes 2 µs for an operation on flags.)"""
    return outputs & ~current


@cache
def union(outputs: Outputs, current: Outputs) -> Outputs:
    """Everything in ``outputs`` or ``current``. (Cached too.)"""
    return outputs | current
