"""The operators of :mod:`nbody.forces.tree.expansions.formulas` as functions of scalars, for kernels on the CPU and the GPU.

A function takes an expansion as a tuple of scalars and returns one, so that it stays in registers. Its text is compiled by
whoever asks: ``cpu_inner.inner``, ``compute.device_function``, or Python for tests.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from nbody.forces.tree.expansions.formulas import (
    Basis,
    l2l_text,
    l2p_text,
    m2l_text,
    m2m_text,
    norms_text,
    p2m_text,
)
from nbody.forces.tree.expansions.text import Text, name

__all__ = ["HIGHEST_ORDER", "Basis", "Operators", "operations", "operator_text", "operators", "sources"]

HIGHEST_ORDER = 8
"""The highest order p that an engine offers."""


class Operators(NamedTuple):
    """Compiled functions. ``moments`` and ``local`` are tuples of scalars in the order of :attr:`Basis.moments` and
    :attr:`Basis.locals`; ``sums`` is (ax, ay, az, phi). Vectors have three components also in 2-D, where z is ignored.

    ==========================================  ======================================================================
    p2m(dx, dy, dz, m)                          moments of a body at d from the centre
    m2m(dx, dy, dz, moments)                    moments about another centre; d = old centre - new centre
    m2l(dx, dy, dz, length2, moments, local)    local plus that of a cell; d = its centre of mass - the local centre
    l2l(dx, dy, dz, local)                      local expansion about another centre; d = old centre - new centre
    l2p(dx, dy, dz, local, sums)                sums plus the field at a body; d = centre - body
    norms(moments)                              (P_2², …, P_p²)
    ==========================================  ======================================================================
    """

    p2m: Callable
    m2m: Callable
    m2l: Callable
    l2l: Callable
    l2p: Callable
    norms: Callable


VECTOR, SUMS = ["dx", "dy", "dz"], ["ax", "ay", "az", "phi"]


def operator_text(basis: Basis, arguments: list[str], results: list[str], write: Callable, *given: int) -> Text:
    """The text of a function ``operator`` of some arguments, with the lines of ``write(text, basis, *given)``."""
    moments, local = _names("M", basis.moments), _names("L", basis.locals)
    tuples, text = {"moments": moments, "local": local, "sums": SUMS}, Text()
    write(text, basis, *given)
    unpacked = [f"{', '.join(tuples[each])}, = {each}" for each in arguments if each in tuples]
    text.lines = [
        f"def operator({', '.join(arguments)}):",
        *("    " + line for line in (*unpacked, *text.lines)),
        f"    return ({', '.join(results)},)",
    ]
    return text


def sources(basis: Basis) -> dict[str, Text]:
    """The source text of each of :class:`Operators`, by name."""
    moments, local = _names("M", basis.moments), _names("L", basis.locals)
    functions = {
        "p2m": ([*VECTOR, "m"], moments, p2m_text),
        "m2m": ([*VECTOR, "moments"], _names("N", basis.moments), m2m_text),
        "m2l": ([*VECTOR, "length2", "moments", "local"], local, m2l_text),
        "l2l": ([*VECTOR, "local"], _names("K", basis.locals), l2l_text),
        "l2p": ([*VECTOR, "local", "sums"], SUMS, l2p_text),
        "norms": (["moments"], [f"P{n}" for n in range(2, basis.order + 1)], norms_text),
    }
    return {key: operator_text(basis, *each) for key, each in functions.items()}


def _names(letter: str, indices: Any) -> list[str]:
    return [name(letter, n) for n in indices]


def operators(
    basis: Basis, real: type, rsqrt: Callable, compile: Callable[[Any], Any] = lambda function: function
) -> Operators:
    """The operators of a basis.

    Args:
        real: ``np.float32`` or ``np.float64``: the type of all constants. (Arguments must have it too.)
        rsqrt: 1/√x in that precision.
        compile: turns a Python function into one that kernels can call: ``cpu_inner.inner``, ``compute.device_function``, or
            nothing.
    """
    return Operators(*(compile(text.function("operator", real, rsqrt=rsqrt)) for text in sources(basis).values()))


def operations(basis: Basis) -> dict[str, int]:
    """Multiply-adds, multiplications and additions of each operator, for the lesson and for cost estimates."""
    return {key: text.operations for key, text in sources(basis).items()}
