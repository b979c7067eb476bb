"""What a user has given, a number or a path: converted, or described in the line of an error."""

import math
import os
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import TypeVar

import numpy as np

from nbody.errors import InputError, shortened

T = TypeVar("T")


class KeyProblem(ValueError):
    """An error about one key of a scenario's group (``"length"``, or ``"gravity.length"``); empty: about the group. Laws,
    units and generators raise it; the scenario adds the file and the line."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.keys = tuple(key.split(".")) if key else ()


def shown(value: object) -> str:
    """Format a value for an error message: short, on one line."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a group of keys"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a very large number"
    text = ascii(value) if isinstance(value, str) else " ".join(repr(value).split())
    return shortened(text, 48)


def number(value: object) -> float:
    """Convert a real number, which may be a NumPy scalar, to a float. Raises ValueError."""
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if not isinstance(value, Real) or isinstance(value, bool):
        quoted = number_in(value) if isinstance(value, str) else None
        hint = "; remove the quotes" if quoted is not None and math.isfinite(quoted) else ""
        raise ValueError(f"must be a number, got {shown(value)}{hint}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("must be a number that a float64 can hold, at most 1.8e308") from None


def whole(value: object) -> int:
    """Convert a whole number to an int; 1e6 is accepted, 10.5 and true are not. Raises ValueError."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    found = number(value)
    if not found.is_integer():
        raise ValueError(f"must be a whole number, got {shown(value)}")
    return int(found)


def converted(where: str, convert: Callable[[object], T], value: object) -> T:
    """``convert(value)``; its ValueError is an InputError that begins with ``where``."""
    try:
        return convert(value)
    except ValueError as error:
        raise InputError(f"{where}{error}") from None


def path_text(path: object) -> str:
    """The text of a path. Raises InputError if it is none."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise InputError(f"the name of a file is needed, as a text or a pathlib.Path; got {shown(path)}")
    return text


def number_in(text: str) -> float | None:
    """The number that a text is; None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None
