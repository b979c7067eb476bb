"""A cache on disk for the compiled kernels of the ``cpu`` engine, shared by all processes.

Numba's own cache may load the wrong kernel, which then computes wrong forces without an error:

- It numbers the functions that a process compiles 1, 2, 3, …, and names them by these numbers. So functions compiled by
  different processes may have the same name; in a third process that loads both, one kernel calls the other's function.
  (Observed: forces 255 times too large with ``cutoff`` in 3-D, then ``plummer`` in 2-D.) Here our kernels, and the
  functions they call, are numbered from a random 48-bit number per process. The user's own functions keep their numbers.
- It has an index of a function's files. Two processes that compile at the same time both take the next free file, and the
  index may then list one's file for the other's kernel. Here there is no index: a file's name is a hash of everything that
  its kernel depends on.

Each file begins with the hash of the rest, and a damaged file is ignored. If the disk cannot be written, the run continues.
"""

import contextlib
import hashlib
import itertools
import os
import pickle
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from llvmlite.binding import Linkage
from numba import config, njit
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import CPUCodeLibrary
from numba.core.runtime import rtsys

from nbody.cache import compiling

SETTINGS = (
    "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "USING_SVML", "LLVM_REFPRUNE_PASS",
)  # fmt: skip
"""Numba's settings that affect the compiled code besides a function's options, each a NUMBA_... in the environment."""

CONSTANTS = (bool, int, float, str, np.generic)
"""The types of constants that kernels read from their modules."""

HASH = hashlib.sha256
HASH_BYTES = HASH().digest_size


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


class KernelFiles(IndexDataCacheFile):
    """The files of one function's kernels.

    A file's name is a hash of Numba's version and :data:`SETTINGS`, the :func:`sources` of the function, the ``options`` it
    is compiled with, and Numba's key: signature, processor, code and constants.
    """

    def __init__(self, folder: str, base: str, stamp: Any, options: str) -> None:
        super().__init__(folder, base, stamp)
        self._options = options

    def save(self, key: tuple, data: Any) -> None:
        """Write the compiled kernel for a key."""
        content = self._dump(data)
        with self._open_for_write(self._path(key)) as file:
            file.write(HASH(content).digest() + content)

    def load(self, key: tuple) -> Any:
        """The compiled kernel for a key; None if its file is missing or damaged."""
        try:
            found = Path(self._path(key)).read_bytes()
        except OSError:
            return None
        digest, content = found[:HASH_BYTES], found[HASH_BYTES:]
        return pickle.loads(content) if HASH(content).digest() == digest else None

    def _path(self, key: tuple) -> str:
        settings = [str(getattr(config, name, None)) for name in SETTINGS]
        whole = repr((self._version, settings, self._source_stamp, self._options, key))
        return self._data_path(self._data_name(int(HASH(whole.encode()).hexdigest()[:16], 16)))


class KernelCache(FunctionCache):
    """The cache of one function, with the interface that Numba's dispatcher expects."""

    def __init__(self, function: Callable, options: str) -> None:
        super().__init__(function)
        self._cache_file = KernelFiles(self.cache_path, self._impl.filename_base, sources(function), options)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kernel for these types, ready to call; None if it must be compiled.

        Numba's method would first import the implementations of everything that Numba can compile, which takes 0.35 s. A
        compiled kernel needs only Numba's memory management; the compiler imports the rest itself.
        """
        rtsys.initialize(target_context)
        return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the kernel to disk, if possible."""
        try:
            super().save_overload(sig, data)
        except OSError:
            pass
        except RuntimeError as error:
            if "no compiled object" not in str(error):
                raise
            raise KeyboardInterrupt from None  # Ctrl-C during a callback from LLVM, which ignores exceptions


def sources(function: Any) -> list[str]:
    """Everything in this package that the code of a function is made of: the hashes of the files that define it and the
    functions that it calls, the constants that these read, and the options they are compiled with. (Numba's stamp is of the
    first file only, and its key has no code of functions that are imported from others.)"""
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
        if id(found) in seen or not isinstance(found, FunctionType) or not _is_ours(found):
            continue
        seen.add(id(found))
        files.add(found.__code__.co_filename)
        waiting += [found.__globals__.get(name) for name in _names(found.__code__)]
        with contextlib.suppress(ValueError):  # a cell that is not filled yet
            waiting += [cell.cell_contents for cell in found.__closure__ or ()]
    return sorted(map(_file_hash, files)) + sorted(read)


def _is_ours(function: FunctionType) -> bool:
    return str(function.__globals__.get("__name__", "")).split(".")[0] == __name__.split(".")[0]


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


def disk_cached(function: Callable, **options: Any) -> Callable:
    """The compiled function, cached on disk; in memory only if no folder can be written."""
    options |= {"nogil": True, "error_model": "numpy"}
    compiled = njit(function, **options)
    compile_now = compiled._compiler.compile

    def compile_with_distinct_numbers(*types: Any) -> Any:
        with _self_contained(), compiling(compiled._cache.cache_path or ""):
            return compile_now(*types)

    compiled._compiler.compile = compile_with_distinct_numbers
    with contextlib.suppress(RuntimeError):
        compiled._cache = KernelCache(function, _in_order(options))
    return compiled


def _in_order(options: dict[str, Any]) -> str:
    """The options as text, in an order that is the same in every process."""
    return repr([(name, sorted(value) if isinstance(value, set) else value) for name, value in sorted(options.items())])
