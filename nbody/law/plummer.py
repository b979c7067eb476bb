"""Plummer softening: each body is a Plummer sphere of scale length ε (Plummer 1911; Aarseth 1963)."""

from nbody.law.pair import Law


def _build(flat, cube, rsqrt):
    """f = (r² + ε²)^(-3/2), u = (r² + ε²)^(-1/2); see :func:`nbody.law.pair.pair_law`."""

    def plummer(dx, dy, dz, length2):
        r2 = dx * dx + length2  # the first multiply-add includes the softening, which costs nothing
        r2 = dy * dy + r2
        if not flat:
            r2 = dz * dz + r2
        return cube(r2), rsqrt(r2)

    return plummer


PLUMMER = Law("plummer", _build, needs_length=True)
"""The law that most scenarios use."""
