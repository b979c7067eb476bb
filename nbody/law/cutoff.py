"""The course's rule: a pair at a distance of r_min or less exerts no force. With r_min = 0 it is Newton's law."""

from nbody.law.pair import Law


def _build(flat, cube, rsqrt):
    """f = 1/r³, or 0 where r <= r_min; u = 1/max(r, r_min); see :func:`nbody.law.pair.pair_law`."""

    def cutoff(dx, dy, dz, length2):
        r2 = dx * dx + dy * dy
        if not flat:
            r2 = dz * dz + r2
        f, u = cube(r2), rsqrt(r2)
        u_min, zero = rsqrt(length2), length2 - length2  # computed once; a literal 0.0 would make f a float64
        # Select values instead of branching: every lane runs the same instructions. 'r2 <= …' instead of 'r2 > …', so that
        # a NaN is not treated as a close pair.
        f = zero if r2 <= length2 else f
        u = u_min if r2 <= length2 else u
        return f, u

    return cutoff


CUTOFF = Law("cutoff", _build, support=1.0)
"""No force at r_min or less."""

NONE = Law("cutoff", _build, has_length=False, support=1.0)
"""No softening."""
