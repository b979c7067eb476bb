"""A hash of a kernel's code and of everything that it uses, equal in every process for equal kernels.

Numba's own key of a cached kernel cannot be used: it contains the time stamp of a single source file, and the pickled
closure of the kernel, in which a compiled function is a random number.
"""

import enum
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

LIBRARIES = ("builtins", "llvmlite", "math", "numba", "numpy", "operator")
"""Libraries whose functions, classes and types are identified by their names: the versions are part of a kernel's key."""


class Unknown(Exception):
    """A kernel refers to a value that cannot be described by a text; such a kernel is not cached on disk."""


class Fingerprint(NamedTuple):
    """What identifies a function: a hash; and the bytes of bytecode that it describes, by which compilation takes time."""

    hash: str
    size: int


def fingerprint(function: FunctionType) -> Fingerprint:
    """That of a Python function and, recursively, of everything that it closes over or refers to by name.

    Raises:
        Unknown: the function refers to a value that cannot be described.
    """
    reader = _Reader()
    return Fingerprint(hashlib.sha256(repr(reader.function(function)).encode()).hexdigest(), reader.size)


class _Reader:
    """Turns values into nested tuples of texts; a function becomes a hash, so that two copies of one are the same, as in a
    process that got them from another one."""

    def __init__(self) -> None:
        self._met: dict[int, tuple[str, str]] = {}
        self.size = 0
        self._of_unknown = _refused

    def of(self, value: Any) -> Any:
        """The description of a value."""
        if value is None or (isinstance(value, str | bytes | bool | int | float | complex) and not _is_enum(value)):
            return type(value).__name__, repr(value)
        if isinstance(value, np.generic | np.dtype | np.ndarray):
            return self._numbers(value)
        if isinstance(value, tuple | list):
            return type(value).__qualname__, [self.of(each) for each in value]
        if isinstance(value, Mapping):
            return "dict", [(self.of(name), self.of(each)) for name, each in value.items()]
        if isinstance(value, set | frozenset):
            return "set", sorted(repr(self.of(each)) for each in value)
        return self._of_code(value)

    def _numbers(self, value: Any) -> Any:
        array = np.asarray(value) if not isinstance(value, np.dtype) else np.empty(0, value)
        if array.dtype.hasobject:
            raise Unknown(f"an array of {array.dtype}")
        return type(value).__name__, array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).hexdigest()

    def _of_code(self, value: Any) -> Any:
        """Descriptions of functions, of Numba's compiled functions, and of values identified by name."""
        if _is_enum(value):
            return type(value).__qualname__, value.name, self.of(value.value)
        if hasattr(value, "py_func"):  # a function that Numba compiles
            return "compiled", self.function(value.py_func), self.of(value.targetoptions)
        if hasattr(value, "_defn"):  # an intrinsic
            return "intrinsic", _file_hash(value._defn.__code__.co_filename), self._of_python(value._defn)
        if isinstance(value, ModuleType):
            return "module", value.__name__
        if isinstance(value, type | FunctionType | BuiltinFunctionType | np.ufunc) and _is_of_library(value):
            return "of a library", _module(value), getattr(value, "__qualname__", value.__name__)
        if isinstance(value, FunctionType):
            # Numba finds the code of a function that it overloads by the function's identity: it is in the same file.
            return "overloaded", _file_hash(value.__code__.co_filename), self.function(value)
        if isinstance(value, enum.EnumType):
            members: dict[str, Any] = dict(value.__members__)
            return "enum", value.__qualname__, [(name, self.of(each.value)) for name, each in members.items()]
        if isinstance(value, type) and issubclass(value, tuple):
            return "named tuple", value.__module__, value.__qualname__, getattr(value, "_fields", ())
        if isinstance(value, type):  # no kernel uses it: an attribute has the name of a global, such as a decorator
            return "class", value.__module__, value.__qualname__
        if _is_of_library(type(value)) and hasattr(value, "mangling_args"):  # one of Numba's types
            return "type", repr(value)
        if hasattr(value, "__wrapped__"):  # a cached function
            return "wrapped", self.of(value.__wrapped__)
        return self._of_unknown(value)

    def _of_python(self, function: FunctionType) -> Any:
        """The description of a function that runs as Python while a kernel is compiled: it may use any objects."""
        before, self._of_unknown = self._of_unknown, lambda value: ("of the type", type(value).__qualname__)
        try:
            return self.function(function)
        finally:
            self._of_unknown = before

    def function(self, function: FunctionType) -> Any:
        """The description of a function's code and of what it refers to."""
        if _is_of_library(function):
            return "of a library", _module(function), function.__qualname__
        if id(function) in self._met:
            return self._met[id(function)]
        self._met[id(function)] = "recursive", function.__qualname__
        closure = [cell.cell_contents for cell in function.__closure__ or ()]
        names = _names(function.__code__)
        description = (
            self._code(function.__code__),
            self.of(function.__defaults__),
            self.of(closure),
            [(name, self._named(function.__globals__, name, names)) for name in sorted(names)],
        )
        text = repr((function.__qualname__, description))
        self._met[id(function)] = "function", hashlib.sha256(text.encode()).hexdigest()
        return self._met[id(function)]

    def _code(self, code: CodeType) -> Any:
        constants = [self._code(each) if isinstance(each, CodeType) else self.of(each) for each in code.co_consts]
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        self.size += len(code.co_code)
        return code.co_code.hex(), constants, names, code.co_argcount, code.co_flags

    def _named(self, known: dict[str, Any], name: str, names: set[str]) -> Any:
        """The values of a name in a function's code: a global, or an attribute of a module that the code names and that is
        not of a library."""
        found = [self.of(known[name])] if name in known else []
        rooms = [known[other] for other in sorted(names & known.keys()) if isinstance(known[other], ModuleType)]
        return found + [self.of(getattr(room, name)) for room in rooms if not _is_of_library(room) and hasattr(room, name)]


def _refused(value: Any) -> Any:
    raise Unknown(f"{value!r} of {type(value)}")


def _names(code: CodeType) -> set[str]:
    """The names of globals and attributes in a function's code, nested functions included."""
    nested = (_names(each) for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*nested)


@cache
def _file_hash(path: str) -> str:
    """The hash of a file; its name if it cannot be read (a function made from a text). Read once: the file may change
    before the first kernel is compiled."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return path


def _is_enum(value: Any) -> bool:
    return isinstance(value, enum.Enum)


def _module(value: Any) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    unnamed = "" if isinstance(value, FunctionType) else "numpy"  # a function without a module was made by exec()
    return getattr(value, "__module__", None) or unnamed


def _is_of_library(value: Any) -> bool:
    return _module(value).split(".")[0] in LIBRARIES
