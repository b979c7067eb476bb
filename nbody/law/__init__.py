"""The law of one pair: the force and its potential, written once for the CPU and the GPU.

With d = x_j - x_i, r² = |d|² and the softening length ε or r_min ("length"):

=========  ==================================  ===============================  ==========================
softening  acceleration of i                   potential of i                   source
=========  ==================================  ===============================  ==========================
plummer    G m_j d / (r² + ε²)^(3/2)           -G m_j / √(r² + ε²)              Plummer 1911; Aarseth 1963
spline     Newton's for r > 2.8 ε; within, of  the same, -G m_j / ε for r = 0   Springel et al. 2001
           a sphere with a spline's density
cutoff     G m_j d / r³ if r > r_min else 0    -G m_j / max(r, r_min)           the course's rule
none       cutoff with r_min = 0               -G m_j / r                       Newton 1687
=========  ==================================  ===============================  ==========================

In each law the force is minus the gradient of the potential, so that energy is conserved. The force of a particle on itself
is zero; sums of the potential must leave j = i out. A source without mass adds nothing to either, also in the same place
(:func:`~nbody.law.pair.potential_factor`). If species have lengths of their own, the ε of a pair is the larger one:
:class:`~nbody.law.gravity.Gravity`.

To add a law, write a file with a :class:`~nbody.law.pair.Law`, add a line to ``LAWS``, and add its formula to
:func:`nbody.forces.reference.pair_factors`, which shares no code with the kernels.
"""

from nbody.law.gravity import LAWS, Gravity
from nbody.law.pair import Law, inverse_root, pair_law, pair_roots, pair_slopes, potential_factor

__all__ = ["LAWS", "Gravity", "Law", "inverse_root", "pair_law", "pair_roots", "pair_slopes", "potential_factor"]
