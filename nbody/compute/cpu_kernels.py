"""A cache on disk for the compiled kernels of the ``cpu`` engine, shared by all processes.

Numba's own cache may load the wrong kernel, which then computes wrong forces without an error:

- It numbers the functions that a process compiles 1, 2, 3, …, and names them by these numbers. So functions compiled by
  different processes may have the same name; in a third process that loads both, one kernel calls the other's function.
  (Observed: forces 255 times too large with ``cutoff`` in 3-D, then ``plummer`` in 2-D.) Here our kernels, and the
  functions they call, are numbered from a random 48-bit number per process. The user's own functions keep their numbers.
- It has an index of a function's files. Two processes that compile at the same time both take the next free file, and the
  index may then list one's file for the other's kernel. Here there is no index: a file's name is a hash of everything that
  its kernel depends on.
- It executes what it finds in any folder: beside the source, or where a file ``.numba_config.yaml`` in the current folder
  says. Here kernels are in :mod:`nbody.compute.cache`, which takes nothing that another user could have written.

A damaged file is ignored. If the disk cannot be written, the run continues.
"""

import contextlib
import hashlib
import itertools
import os
import pickle
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numba
import numpy as np
from llvmlite.binding import Linkage
from numba import config, njit
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from nbody.compute.cache import compiling, keep_bytes, kernel_name, kernels, load_bytes
from nbody.errors import DeviceError

SETTINGS = (
    "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "USING_SVML", "LLVM_REFPRUNE_PASS",
)  # fmt: skip
"""Numba's settings that affect the compiled code besides a function's options, each a NUMBA_... in the environment."""

CONSTANTS = (bool, int, float, str, np.generic)
"""The types of constants that kernels read from their modules."""

HASH = hashlib.sha256


@cache
def _numbers(process: int) -> Iterator[int]:
    """The numbers of the functions that a process compiles for our kernels; distinct in all processes."""
    return itertools.count(uuid.uuid4().int >> 80)


@contextlib.contextmanager
def _self_contained() -> Iterator[None]:
    """What our kernels are compiled in.

    Numba numbers functions by :func:`_numbers`. (Its compiler lock lets one function compile at a time. A forked child has
    another process id, and so other numbers.) And each kernel calls its own copies of the functions that it uses: a process
    that compiles them would otherwise call the originals, which may be optimized differently, and get other bits than the
    processes that load the kernel from disk.
    """
    numbers_of_numba, FunctionIdentity._unique_ids = FunctionIdentity._unique_ids, _numbers(os.getpid())
    optimize = CPUCodeLibrary._optimize_final_module

    def optimize_and_enclose(library: Any) -> None:
        optimize(library)
        for function in library._final_module.functions:
            if function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal

    CPUCodeLibrary._optimize_final_module = optimize_and_enclose
    try:
        yield
    finally:
        FunctionIdentity._unique_ids = numbers_of_numba
        CPUCodeLibrary._optimize_final_module = optimize


class CpuKernelCache(FunctionCache):
    """The kernels of one function, with the interface that Numba's dispatcher expects, in :mod:`nbody.compute.cache`.

    A file's name is a hash of the versions of Python and Numba, :data:`SETTINGS`, the :func:`sources` of the function, the
    ``options`` it is compiled with, and Numba's key: signature, processor, code and closure.
    """

    def __init__(self, function: Callable, options: str) -> None:
        self._py_func, self._made_of = function, (sys.version, numba.__version__, sources(function), options)

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(kernels())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kernel for these types, ready to call; None if it must be compiled.

        Numba's method would first import the implementations of everything that Numba can compile, which takes 0.35 s. A
        compiled kernel needs only Numba's memory management; the compiler imports the rest itself.
        """
        rtsys.initialize(target_context)
        found = load_bytes(self.name(self._index_key(sig, target_context.codegen())))
        try:
            return None if found is None else CompileResult._rebuild(target_context, *pickle.loads(found))
        except (ImportError, AttributeError):  # another version of nbody has the types of its arguments in other files
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the kernel to disk, if possible."""
        if data.library.has_dynamic_globals:  # addresses of this process
            return
        try:
            keep_bytes(self.name(self._index_key(sig, data.codegen)), dumps(data._reduce()))
        except RuntimeError as error:
            if "no compiled object" not in str(error):
                raise
            raise KeyboardInterrupt from None  # Ctrl-C during a callback from LLVM, which ignores exceptions

    def name(self, key: tuple) -> str:
        """The name of the kernel for one of Numba's keys."""
        settings = [str(getattr(config, name, None)) for name in SETTINGS]
        return kernel_name(self._py_func, repr((self._made_of, settings, key)))


def sources(function: Any) -> list[str]:
    """Everything in this package and the function's that its code is made of: the hashes of the files that define it and the
    functions that it calls, the constants that these read, and the options they are compiled with. (Numba's stamp is of the
    first file only, and its key has no code of functions that are imported from others.)"""
    packages = {_package(function), __name__.split(".")[0]}
    waiting, seen, files, read = [function], set[int](), set[str](), set[str]()
    while waiting:
        found = waiting.pop()
        if isinstance(found, tuple | np.ndarray):
            waiting += [*found] if isinstance(found, tuple) else [found.dtype.str, HASH(found.tobytes()).hexdigest()]
        if isinstance(found, CONSTANTS):
            read.add(repr(found))
        if hasattr(found, "targetoptions"):
            read.add(_in_order(found.targetoptions))
        found = getattr(found, "py_func", found)
        if id(found) in seen or not isinstance(found, FunctionType) or _package(found) not in packages:
            continue
        seen.add(id(found))
        files.add(found.__code__.co_filename)
        waiting += [found.__globals__.get(name) for name in _names(found.__code__)]
        with contextlib.suppress(ValueError):  # a cell that is not filled yet
            waiting += [cell.cell_contents for cell in found.__closure__ or ()]
    return sorted(map(_file_hash, files)) + sorted(read)


def _package(function: Any) -> str:
    return str(function.__globals__.get("__name__", "")).split(".")[0]


def _names(code: CodeType) -> set[str]:
    """The names that a function's code, or a function inside it, uses."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names, inner))


@cache
def _file_hash(path: str) -> str:
    """The hash of a file; its name if it cannot be read (a function made from a text)."""
    try:
        return HASH(Path(path).read_bytes()).hexdigest()
    except OSError:
        return path


def cpu_kernel(function: Callable, **options: Any) -> Callable:
    """The compiled function, cached on disk; in memory only if the cache folder can't be written, or if the function is in
    no file."""
    options |= {"nogil": True, "error_model": "numpy"}
    compiled = njit(function, **options)
    if config.DISABLE_JIT:
        return _refused
    compile_now = compiled._compiler.compile

    def compile_with_distinct_numbers(*types: Any) -> Any:
        with _self_contained(), compiling(compiled._cache.cache_path or ""):
            return compile_now(*types)

    compiled._compiler.compile = compile_with_distinct_numbers
    if Path(function.__code__.co_filename).is_file():
        compiled._cache = CpuKernelCache(function, _in_order(options))
    return compiled


def _refused(*arguments: Any) -> None:
    """Stands for every kernel where Numba does not compile: most of them do not run as plain Python."""
    raise DeviceError(
        "this needs compiled code, and NUMBA_DISABLE_JIT forbids it; unset that variable, or use --engine reference and "
        "--integrator leapfrog"
    )


def _in_order(options: dict[str, Any]) -> str:
    """The options as text, in an order that is the same in every process."""
    return repr([(name, sorted(value) if isinstance(value, set) else value) for name, value in sorted(options.items())])
