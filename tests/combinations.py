"""Fewer cases than all combinations of several parameters."""

from itertools import combinations, product
from typing import Any


def every_pair(*values: Any) -> list[tuple]:
    """Combinations of one of each of ``values`` in which every two values of two parameters occur together.

    Greedy, and always the same: the combination with the most pairs that none has had before comes next.
    """

    def pairs(row: tuple) -> set:
        return set(combinations(enumerate(row), 2))

    rows = list(product(*map(list, values)))
    missing, chosen = set().union(*map(pairs, rows)), []
    while missing:
        chosen.append(max(rows, key=lambda row: len(pairs(row) & missing)))
        missing -= pairs(chosen[-1])
    return chosen
