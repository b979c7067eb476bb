"""What a force evaluation computes."""

from enum import IntFlag


class Want(IntFlag):
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
    ``ENERGY``."""
