"""Formulas of one variable in a scenario, such as ``1/(r*(1+r)**3)``. Only arithmetic and a few functions are evaluated."""

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from nbody.errors import counted, did_you_mean

LARGEST = float(np.finfo(float).max)
DEEPEST = 50

FUNCTIONS: dict[str, np.ufunc] = {
    name: getattr(np, name) for name in ("exp", "log", "sqrt", "sin", "cos", "tanh", "cosh", "arctan", "minimum", "maximum")
}
OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: np.power, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip

Function = Callable[[Any], Any]


def compiled(text: str, variable: str) -> Function:
    """The function of ``variable`` that a formula describes. Raises ValueError: what can't be evaluated, and what can."""
    written = text.replace("^", "**")
    try:
        tree = ast.parse(written, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(
            f"is not a formula: {text[:60]!a}; write one in {variable}, as in '1/({variable}*(1+{variable})**3)'"
        ) from None
    found = _compiled(tree, written, variable, 0)
    return lambda value: found(np.asarray(value, float))


def _compiled(node: ast.AST, text: str, variable: str, depth: int) -> Function:
    """The function of one part. Raises ValueError for anything but arithmetic, the variable, pi and the functions."""
    if depth > DEEPEST:
        raise ValueError("this formula is nested too deep; simplify it")
    known = [variable, "pi", *FUNCTIONS]
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            function, parts = OPERATORS[type(op)], [left, right]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            function, parts = OPERATORS[type(op)], [operand]
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]):
            if name not in FUNCTIONS:
                hint = did_you_mean(name, FUNCTIONS)
                raise ValueError(f"unknown function '{name[:40]}'{hint}; one of: {', '.join(FUNCTIONS)}")
            function = FUNCTIONS[name]
            if len(parts) != function.nin:
                raise ValueError(f"{name}() takes {counted(function.nin, 'argument')}, got {len(parts)}")
        case ast.Name(id=name):
            if name not in (variable, "pi"):
                hint = did_you_mean(name, known)
                raise ValueError(f"unknown name '{name[:40]}'{hint}; the variable is {variable}")
            return (lambda x: x) if name == variable else (lambda x: np.pi)
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool) and value <= LARGEST:
            number = np.float64(value)  # so that 1/0 is an infinity
            return lambda x: number
        case _:
            part = ast.get_source_segment(text, node) or text  # (unparse() recurses as deep as the formula)
            raise ValueError(f"can't evaluate '{part[:40]}'; use arithmetic, {variable}, {', '.join(known[1:])}")
    inner = [_compiled(part, text, variable, depth + 1) for part in parts]
    return lambda x: function(*(each(x) for each in inner))
