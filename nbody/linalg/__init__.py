"""Matrix products on a GPU, from the first kernel to one as fast as cuBLAS: a ladder of rungs, one idea per file.

Read the rungs in the order of ``ladder.py``; the head of each file explains its idea and what it gains. :func:`matmul`
uses the fastest. Every rung needs ``rung.py`` (what a rung is, and how it is launched) and NumPy; files that several rungs
share, with the first rung that uses each: staging (k09), intrinsics (k10), register_tile (k14), partial_sums (k17),
tensor_tile (k19), double_tile (k21). ``explain.py`` says what a rung's kernel needs of a card.
"""

from nbody.linalg.call import matmul
from nbody.linalg.ladder import CHAMPIONS, ELEMENTWISE, LADDER

__all__ = ["CHAMPIONS", "ELEMENTWISE", "LADDER", "matmul"]
