"""The softening length of a pair in a kernel: one for all bodies, or the larger one of the two bodies' own."""

import operator
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from nbody import compute


class Lengths(NamedTuple):
    """Device functions for the ε² of pairs. ``length2`` is the kernel's argument: a number, or an array (N,).

    Attributes:
        of_body: ``of_body(length2, i)``, the number of body i.
        put: ``put(tile2, t, value)`` stores the number of a tile's body in shared memory.
        of_pair: ``of_pair(length2_i, tile2, s)`` for body i and a tile's body s.
        of_two: ``of_two(length2, length2_i, length2_j)`` for bodies i and j.
    """

    of_body: Callable
    put: Callable
    of_pair: Callable
    of_two: Callable


@cache
def lengths(per_species: bool) -> Lengths:
    """The functions for one number; or, if ``per_species``, for one per body, of which a pair has the larger one (Springel,
    Yoshida & White 2001). That costs one load and one maximum per pair."""
    if per_species:
        found = (
            lambda softening2, i: softening2[i],
            lambda tile2, t, value: operator.setitem(tile2, t, value),
            lambda length2_i, tile2, s: max(length2_i, tile2[s]),
            lambda softening2, length2_i, length2_j: max(length2_i, length2_j),
        )
    else:
        found = (
            lambda length2, i: length2,
            lambda tile2, t, value: None,
            lambda length2_i, tile2, s: length2_i,
            lambda length2, length2_i, length2_j: length2,
        )
    return Lengths(*map(compute.device_function, found))
