"""``simulation.step``: makes steps when it is called, and refuses to be the number that it was up to nbody 0.2."""

from collections.abc import Callable
from typing import Any, NoReturn

from nbody.errors import InputError


class StepCall:
    """``simulation.step``, which makes steps when it is called; up to nbody 0.2 it was their number. Used as a number it
    raises an InputError that names ``steps_made``."""

    def __init__(self, make_steps: Callable[[int], None]) -> None:
        self._make_steps = make_steps

    def __call__(self, n: int = 1) -> None:
        self._make_steps(n)


def _refuse(*_: Any) -> NoReturn:
    raise InputError("simulation.step makes steps, as in simulation.step(100); their number is simulation.steps_made")


for _name in (
    "int", "index", "float", "format", "eq", "ne", "lt", "le", "gt", "ge", "add", "radd", "sub", "rsub", "mul", "rmul",
    "truediv", "floordiv", "mod", "bool",
):  # fmt: skip
    setattr(StepCall, f"__{_name}__", _refuse)
