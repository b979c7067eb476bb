"""Fewer cases than all combinations of several parameters."""

from collections.abc import Callable
from itertools import combinations, product
from typing import Any


def every_pair(*values: Any, where: Callable[..., bool] = lambda *row: True) -> list[tuple]:
    """Combinations of one of each of ``values`` in which every two values of two parameters occur together.

    Only combinations for which ``where`` is true count. Greedy, and always the same: the combination with the most pairs
    that none has had before comes next.
    """
    rows = {row: set(combinations(enumerate(row), 2)) for row in product(*map(list, values)) if where(*row)}
    missing, chosen = set().union(*rows.values()), []
    while missing:
        chosen.append(max(rows, key=lambda row: len(rows[row] & missing)))
        missing -= rows[chosen[-1]]
    return chosen
