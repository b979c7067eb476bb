"""Sums whose bits do not depend on the number of ranks: work in segments, which are added in one fixed binary tree.

Work is cut into K segments, a power of two that follows from the number of bodies alone, and each segment is summed in a
fixed order. The segments are the leaves of a binary tree: a node is the sum of its left and its right half. A rank has a
range of segments, adds what lies wholly inside its range (:func:`cover`), and sends these nodes to the ranks that own the
rows; an owner adds the rest of the tree (:func:`add_nodes`). So every number of ranks makes the same additions.
"""

from collections.abc import Sequence

import numpy as np

from nbody.parallel.team import ALONE, Team

WORTH = 1 << 22
"""Fewer interactions than this are computed by every rank: they take a millisecond on one core, an exchange 0.1 ms."""


def worth_dividing(team: Team, interactions: int) -> Team:
    """The team, if it should divide a number of interactions; else :data:`~nbody.parallel.ALONE`. All ranks must ask with
    the same number."""
    return team if interactions >= WORTH else ALONE


def segment_count(pieces: int, most: int) -> int:
    """K: the largest power of two that is at most ``pieces`` and at most ``most``, and at least 1."""
    return 1 << max(0, min(pieces, most).bit_length() - 1)


Node = tuple[int, int]
"""The first segment of a node of the tree, and the number of its segments, a power of two that divides the first."""


def push(stack: list[Node], node: Node) -> int:
    """Put the next node on a stack, and merge it with its sibling, the result with its own, and so on. Returns the number of
    mergers."""
    stack.append(node)
    mergers = 0
    while len(stack) > 1 and stack[-2][1] == stack[-1][1] and stack[-2][0] % (2 * stack[-1][1]) == 0:
        (begin, size), _ = stack[-2:]
        stack[-2:] = [(begin, 2 * size)]
        mergers += 1
    return mergers


def cover(first: int, last: int) -> list[Node]:
    """The largest nodes of the tree that lie in the segments [first, last), in order."""
    nodes = []
    while first < last:
        size = 1 << ((last - first).bit_length() - 1)
        if first:
            size = min(size, first & -first)
        nodes.append((first, size))
        first += size
    return nodes


def add_nodes(nodes: Sequence[Node], values: Sequence[np.ndarray]) -> np.ndarray:
    """The root of the tree from nodes that cover it, in order, with their values, arrays of one shape. Overwrites values."""
    stack: list[Node] = []
    totals: list[np.ndarray] = []
    for node, total in zip(nodes, values, strict=True):
        for _ in range(push(stack, node)):
            left = totals.pop()
            total = np.add(left, total, out=left)
        totals.append(total)
    [root] = totals
    return root


def add_over_ranks(team: Team, segments: int, values: np.ndarray, bounds: list[int]) -> np.ndarray:
    """The sum over all segments, in the rows that this rank owns.

    Args:
        segments: K; rank p has the segments [b_p, b_(p+1)) of ``team.bounds(K)``.
        values: (n, R, …) the n nodes of this rank's :func:`cover`.
        bounds: rank p owns the rows [bounds[p], bounds[p + 1]) of R.
    """
    starts = team.bounds(segments)
    covers = [cover(starts[p], starts[p + 1]) for p in range(team.size)]
    most = max(map(len, covers))  # blocks have one shape for each receiver
    padded = np.zeros((most, *values.shape[1:]), values.dtype)
    padded[: len(values)] = values
    sent = [np.ascontiguousarray(padded[:, bounds[q] : bounds[q + 1]]) for q in range(team.size)]
    received = team.exchange(sent)
    nodes = [node for each in covers for node in each]
    return add_nodes(nodes, [block[k] for each, block in zip(covers, received, strict=True) for k in range(len(each))])
