"""Source text of arithmetic on scalars, from which the operators of :mod:`nbody.forces.tree.expansions.operators` are
made, and the functions that a text defines."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import product
from math import factorial
from typing import Any

Index = tuple[int, int, int]
"""The powers (n_x, n_y, n_z) of a monomial, or the numbers of derivatives."""

Term = tuple[Fraction | int, tuple[str, ...]]
"""A coefficient and the names that it multiplies."""

AXES: tuple[Index, ...] = ((1, 0, 0), (0, 1, 0), (0, 0, 1))


def indices(least: int, most: int, highest_z: int) -> list[Index]:
    """All n with ``least`` ≤ n_x + n_y + n_z ≤ ``most`` and n_z ≤ ``highest_z``, by degree."""
    all_n: Iterable[Index] = product(range(most + 1), range(most + 1), range(highest_z + 1))
    found = [n for n in all_n if least <= sum(n) <= most]
    return sorted(found, key=lambda n: (sum(n), n[2], n[1]))


def plus(a: Index, b: Index) -> Index:
    """The sum of two indices."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def minus(a: Index, b: Index) -> Index:
    """The difference of two indices; some of its numbers may be negative."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def factorials(n: Index) -> int:
    """n! = n_x! n_y! n_z!."""
    return factorial(n[0]) * factorial(n[1]) * factorial(n[2])


def name(letter: str, n: Index) -> str:
    """The variable of an index: M210."""
    return letter + "".join(map(str, n))


def function_of(called: str, lines: Iterable[str], **known: Any) -> Callable:
    """The Python function ``called`` that the lines define, with ``known`` as its globals."""
    known["__name__"] = __name__  # without it pickle searches all modules for the function, and imports numba.cuda
    exec("\n".join(lines), known)
    function: Callable = known[called]
    return function


class Text:
    """Assignments to scalars, one per line, and the constants that they use.

    Constants are names (``c3``, ``c1_6``), which the caller binds to numbers of its precision: a literal would make float32
    arithmetic float64.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Fraction] = {}
        self.operations = 0
        """Multiply-adds, multiplications and additions, each counted once."""

    def constant(self, value: Fraction | int) -> str:
        """The name of a positive constant."""
        number = Fraction(value)
        key = f"c{number.numerator}" + (f"_{number.denominator}" if number.denominator > 1 else "")
        self.constants[key] = number
        return key

    def function(self, called: str, real: type, **known: Any) -> Callable:
        """:func:`function_of` the text, with its constants in the precision ``real``."""
        return function_of(called, self.lines, **{key: real(float(each)) for key, each in self.constants.items()}, **known)

    def sum(self, terms: Iterable[Term], start: str = "") -> str:
        """The expression ``start`` plus the terms; the constant 0 if there is none."""
        parts = []
        for coefficient, names in terms:
            if coefficient == 0:
                continue
            factors = list(names)
            if abs(coefficient) != 1 or not names:
                factors.insert(0, self.constant(abs(Fraction(coefficient))))
            parts.append(("- " if coefficient < 0 else "+ ") + " * ".join(factors))
            self.operations += max(1, len(factors) - 1)
        if start:
            return " ".join((start, *parts))
        if not parts:
            return self.constant(0)
        if parts[0].startswith("- ") and len(parts) > 1:
            positive = next((part for part in parts if part.startswith("+ ")), None)
            if positive:  # no unary minus
                parts.remove(positive)
                parts.insert(0, positive)
        first = parts[0].removeprefix("+ ").replace("- ", "-", 1) if parts[0].startswith("- ") else parts[0][2:]
        return " ".join((first, *parts[1:]))

    def let(self, variable: str, terms: Iterable[Term], start: str = "") -> str:
        """Assign a sum to a variable; returns the variable."""
        self.lines.append(f"{variable} = {self.sum(terms, start)}")
        return variable

    def powers(self, letter: str, vector: tuple[str, str, str], most: int, highest_z: int) -> None:
        """Assign x^n/n! for a vector x to the variables of ``letter``, 1 ≤ |n| ≤ ``most``."""
        for n in indices(1, most, highest_z):
            axis = max(range(3), key=lambda i: n[i])
            rest = minus(n, AXES[axis])
            before = (name(letter, rest),) if sum(rest) else ()
            self.let(name(letter, n), [(Fraction(1, n[axis]), (*before, vector[axis]))])
