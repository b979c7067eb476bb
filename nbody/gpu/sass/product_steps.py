"""The steps of a loop over products: in each, all its left factors meet all its right ones."""

from typing import NamedTuple

from nbody.gpu.sass.block import Block


class Factor(NamedTuple):
    """Half of what a load brings: the load's index in the block, and which half."""

    load: int
    half: int


class Product(NamedTuple):
    """A multiply-add: its index in the block, its factors, and the register of its sum."""

    at: int
    left: Factor
    right: Factor
    sum: int


class NoProducts(Exception):
    """A block is not made of steps in each of which all left factors meet all right ones."""


def steps(block: Block) -> list[list[Product]]:
    """The products of a block, step by step, each step in an order in which they keep a factor. Raises NoProducts."""
    found: list[list[Product]] = []
    for group in _depths(block):
        group = _sided(group)
        rows, columns = sorted({p.left for p in group}), sorted({p.right for p in group})
        by_factors = {(p.left, p.right): p for p in group}
        if not len(by_factors) == len(group) == len(rows) * len(columns) == len(found[0] if found else group):
            raise NoProducts
        order = [(row, column) for k, column in enumerate(columns) for row in (reversed(rows) if k % 2 else rows)]
        found.append([by_factors[pair] for pair in order])
    if not found:
        raise NoProducts
    return found


def _depths(block: Block) -> list[list[Product]]:
    """A block's products by how many of their sum's come before them."""
    factor: dict[int, Factor] = {}  # by the register that holds it
    sums: dict[int, tuple[int, int]] = {}  # by register: the one that the sum had at first, and its products so far
    found: list[list[Product]] = []
    for at, (instruction, known) in enumerate(zip(block.body, block.known, strict=True)):
        if known.kind == "load":
            for k in range(4):
                sums.pop(instruction.dest + k, None)
            factor |= {instruction.dest: Factor(at, 0), instruction.dest + 2: Factor(at, 1)}
        elif known.kind == "double":
            a, b, c = (instruction.register(place) for place in "abc")
            if a not in factor or b not in factor or c in factor:
                raise NoProducts
            first, depth = sums.get(c, (c, 0))
            found += [[]] if depth == len(found) else []
            found[depth].append(Product(at, factor[a], factor[b], first))
            factor.pop(instruction.dest, None)
            sums[instruction.dest] = first, depth + 1
    ends = {first: register for register, (first, depth) in sums.items() if depth == len(found)}
    if any(len(group) != len(found[0]) for group in found) or any(first != end for first, end in ends.items()):
        raise NoProducts
    return found


def _sided(group: list[Product]) -> list[Product]:
    """A step's products with their factors exchanged where these stand on the other side than in the first."""
    left, right = {group[0].left}, {group[0].right}
    found, rest = [], list(group)
    while rest:
        later = []
        for product in rest:
            if product.left in right or product.right in left:
                product = product._replace(left=product.right, right=product.left)
            if product.left in left or product.right in right:
                left.add(product.left)
                right.add(product.right)
                found.append(product)
            else:
                later.append(product)
        if len(later) == len(rest) or left & right:
            raise NoProducts
        rest = later
    return found
