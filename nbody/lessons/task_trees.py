"""Tasks of the tree course, in plain Python: the walk of ``barnes-hut``, and the order of bodies of ``cpu-tree``."""

from collections.abc import Callable, Iterator

import numpy as np

from nbody.errors import InputError

NAMES = ("barnes-hut", "cpu-tree")
FUNCTION = "solve"

WALK = '''"""{title}

All bodies act on the target below, one by one. Let cells far away act as a whole, and say
    nbody course check {name} {file}
until every line of the answer begins with "ok".
"""


def solve(target, root, place, side, child, act):
    """Call ``act(node)`` for each node, body or cell, that acts on the body ``target`` as a whole.

    Nodes 0 to root - 1 are the bodies, ``root`` is the cell around all, and those above are cells. ``place[node]`` is the
    centre of mass, ``side[node]`` the side (0 of a body), ``child[node]`` has the eight children, -1 where there is none.
    A cell may act if its side is less than half of the distance from its centre of mass.
    """
    for body in range(root):
        if body != target:
            act(body)
'''

ORDER = '''"""{title}

The bodies below are in the order of x. Find an order in which the bodies of each cell of the tree are neighbours, and say
    nbody course check {name} {file}
until every line of the answer begins with "ok".
"""

import numpy as np


def solve(x):
    """The numbers of bodies (N, 3) in the unit cube, in order. Cells are its eighths, their eighths, and so on."""
    return np.argsort(x[:, 0])
'''

START = {"barnes-hut": WALK, "cpu-tree": ORDER}

BODIES, THETA = 300, 0.5


def check(solve: Callable, name: str) -> Iterator[tuple[bool, str]]:
    """What is right and what is not."""
    x = np.random.default_rng(1).random((BODIES, 3))
    x[: BODIES // 2] **= 4  # deep cells at a corner
    return _walk(solve, x) if name == "barnes-hut" else _order(solve, x)


def _walk(solve: Callable, x: np.ndarray) -> Iterator[tuple[bool, str]]:
    from nbody.forces.tree.barnes_hut import NONE, octree
    from nbody.lessons.trees import acting

    tree = octree(x, np.full(len(x), 1 / len(x)))
    place, mass, side, child, _ = tree

    def bodies(node: int) -> list[int]:
        return [node] if node < BODIES else [each for k in child[node] if k != NONE for each in bodies(int(k))]

    def pull(target: int, nodes: list[int]) -> np.ndarray:
        d = place[nodes] - place[target]
        return mass[nodes] @ (d / ((d * d).sum(axis=1) + 1e-4)[:, None] ** 1.5)

    covered, errors, own, allowed = True, [], 0, 0
    for target in range(BODIES):
        nodes: list[int] = []
        solve(target, BODIES, place.copy(), side.copy(), child.copy(), lambda node, to=nodes: to.append(int(node)))
        others = [k for k in range(BODIES) if k != target]
        covered &= sorted(each for node in nodes for each in bodies(node) if each != target) == others
        allowed += len(acting(target, tree, THETA, BODIES))
        own += len(nodes)
        right = pull(target, others)
        errors.append(np.linalg.norm(pull(target, nodes) - right) / np.linalg.norm(right))
    yield covered, "each other body acts once, alone or in a cell"
    error = float(np.median(errors))
    yield error < 0.02, f"median relative error of the accelerations: {error:.1e}, at most 2e-2"
    yield own <= allowed, f"nodes that act on a body: {own / BODIES:.0f}, the engine has {allowed / BODIES:.0f}"


def _order(solve: Callable, x: np.ndarray) -> Iterator[tuple[bool, str]]:
    order = np.asarray(solve(x.copy()))
    if order.shape != (len(x),) or sorted(order.tolist()) != list(range(len(x))):
        raise InputError(f"solve() returns no order of the {len(x)} bodies: each number from 0 once")
    for level in (1, 2, 3, 6):
        cell = np.floor(x[order] * 2**level).astype(int) @ (1, 2**level, 4**level)
        runs = 1 + int(np.count_nonzero(np.diff(cell)))
        cells = len(np.unique(cell))
        yield runs == cells, f"cells of side 1/{2**level}: {cells} with bodies, in {runs} runs"
