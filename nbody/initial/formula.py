"""Formulas of one variable in a scenario, such as ``1/(r*(1+r)**3)``. Only arithmetic and a few functions are evaluated."""

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from nbody.errors import did_you_mean

LARGEST = float(np.finfo(float).max)

FUNCTIONS: dict[str, np.ufunc] = {
    name: getattr(np, name)
    for name in ("exp", "log", "sqrt", "sin", "cos", "tanh", "cosh", "arctan", "minimum", "maximum")
}
OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: np.power, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip


def compiled(text: str, variable: str) -> Callable[[Any], Any]:
    """The function of ``variable`` that a formula describes.

    Raises:
        ValueError: what can't be evaluated, and what can.
    """
    written = text.replace("^", "**")
    try:
        tree = ast.parse(written, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(
            f"is not a formula: {text[:60]!a}; write one in {variable}, as in '1/({variable}*(1+{variable})**3)'"
        ) from None
    _check(tree, written, variable, 0)
    return lambda value: _value(tree, {variable: np.asarray(value, float)})


def _check(node: ast.AST, text: str, variable: str, depth: int) -> None:
    """Raise ValueError for anything but arithmetic, the variable, pi and the functions."""
    if depth > 50:
        raise ValueError("this formula is nested too deep; simplify it")
    known = [variable, "pi", *FUNCTIONS]
    children: list[ast.AST] = []
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        children = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
        children = [node.operand]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id not in FUNCTIONS:
            hint = did_you_mean(node.func.id, FUNCTIONS)
            raise ValueError(f"unknown function '{node.func.id[:40]}'{hint}; one of: {', '.join(FUNCTIONS)}")
        children, takes = list(node.args), FUNCTIONS[node.func.id].nin
        if len(children) != takes:
            raise ValueError(f"{node.func.id}() takes {takes} argument{'s' * (takes > 1)}, got {len(children)}")
    elif isinstance(node, ast.Name):
        if node.id not in (variable, "pi"):
            raise ValueError(f"unknown name '{node.id[:40]}'{did_you_mean(node.id, known)}; the variable is {variable}")
    elif not (isinstance(node, ast.Constant) and _is_number(node.value)):
        part = ast.get_source_segment(text, node) or text  # (unparse() recurses as deep as the formula)
        raise ValueError(f"can't evaluate '{part[:40]}'; use arithmetic, {variable}, {', '.join(known[1:])}")
    for child in children:
        _check(child, text, variable, depth + 1)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and value <= LARGEST


def _value(node: ast.AST, values: dict[str, Any]) -> Any:
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](_value(node.left, values), _value(node.right, values))
    if isinstance(node, ast.UnaryOp):
        return OPERATORS[type(node.op)](_value(node.operand, values))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return FUNCTIONS[node.func.id](*(_value(each, values) for each in node.args))
    if isinstance(node, ast.Name):
        return values.get(node.id, np.pi)
    assert isinstance(node, ast.Constant)
    return np.float64(node.value)  # type: ignore[arg-type]  # so that 1/0 is an infinity
