"""Morton keys, for the CPU and the GPU: the bits of a body's coordinates, interleaved (Morton 1966; Warren & Salmon 1993).

Bodies of a cell of any level have a common prefix, so a cell is a range of the sorted bodies.
"""

from collections.abc import Callable

import numpy as np


def spread3(v):
    """The 21 bits of ``v`` (uint64), two zeros after each."""
    v = (v | (v << np.uint64(32))) & np.uint64(0x1F00000000FFFF)
    v = (v | (v << np.uint64(16))) & np.uint64(0x1F0000FF0000FF)
    v = (v | (v << np.uint64(8))) & np.uint64(0x100F00F00F00F00F)
    v = (v | (v << np.uint64(4))) & np.uint64(0x10C30C30C30C30C3)
    return (v | (v << np.uint64(2))) & np.uint64(0x1249249249249249)


def spread2(v):
    """The 31 bits of ``v`` (uint64), a zero after each."""
    v = (v | (v << np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    v = (v | (v << np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    v = (v | (v << np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    v = (v | (v << np.uint64(2))) & np.uint64(0x3333333333333333)
    return (v | (v << np.uint64(1))) & np.uint64(0x5555555555555555)


def key_for(dimensions: int, compile: Callable[[Callable], Callable]) -> Callable:
    """``key(x, y, z)``: the key of a cell's numbers (uint64) along the axes; in 2-D ``z`` is ignored."""
    spread = compile(spread2 if dimensions == 2 else spread3)
    one, two = np.uint64(1), np.uint64(2)

    def key2(x, y, z):
        return spread(x) << one | spread(y)

    def key3(x, y, z):
        return spread(x) << two | spread(y) << one | spread(z)

    return compile(key2 if dimensions == 2 else key3)
